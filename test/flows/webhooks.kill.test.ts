// A server is killed while it delivers webhooks. Every committed event is delivered. Deliveries
// that were running at the kill may arrive twice, with the same message id.
import { rmSync } from 'node:fs'
import { Webhook as Verifier } from 'standardwebhooks'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { accordServing, type Serving } from '../support/accord.ts'
import { workingFolder } from '../support/installed.ts'
import { type Received, type Receiver, startReceiver } from '../support/receiver.ts'

const kills = 2
/** The number of concurrent deliveries of a worker. */
const atOnce = 8
const leadsPerRound = 40
const environment = {
  ACCORD_LOG_LEVEL: 'info',
  ACCORD_ADMIN_PASSWORD: 'correct horse battery',
  ACCORD_WEBHOOK_ALLOW_HTTP: 'on',
  ACCORD_WEBHOOK_ALLOW_CIDRS: '127.0.0.1/32',
}

let folder: string
let receiver: Receiver
let serving: Serving | undefined
beforeEach(async () => {
  folder = await workingFolder()
  receiver = await startReceiver()
})
afterEach(async () => {
  await serving?.stop()
  await receiver.close()
  rmSync(folder, { recursive: true, force: true })
})

let token = ''
async function post(path: string, body: object) {
  const answer = await fetch(`${serving?.url}/api/admin${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...(token && { authorization: `Bearer ${token}` }) },
    body: JSON.stringify(body),
  })
  const { data } = (await answer.json()) as { data: { id: number; secret: string; token: string } }
  if (!answer.ok) throw new Error(`${path} answered ${answer.status}.`)
  return data
}

const leadIdOf = ({ body }: Received): number => JSON.parse(body).data.entity_id as number

describe('a server that is killed while it delivers', () => {
  it('tells everything it had accepted, and little of it twice', async () => {
    serving = await accordServing(folder, 'serve', environment)
    const account = { email: 'admin@example.com', password: environment.ACCORD_ADMIN_PASSWORD, device_name: 'test' }
    token = (await post('/login', account)).token
    const webhook = { name: 'Warehouse', url: receiver.url, events: ['lead.create.after'] }
    const { secret } = await post('/settings/webhooks', webhook)
    const person = await post('/contacts/persons', {
      name: 'Ada',
      emails: [{ value: 'ada@example.com', label: 'work' }],
    })
    receiver.behave({ mode: 'late', ms: 30 })

    const accepted: number[] = []
    for (let round = 0; round <= kills; round++) {
      const before = receiver.received.length
      const title = `Round ${round}`
      const writing = Array.from({ length: leadsPerRound }, () =>
        post('/leads', { title, lead_value: 1, person_id: person.id, lead_source_id: 1, lead_type_id: 1 }).then(
          ({ id }) => void accepted.push(id),
          // The server was killed before the reply, so the lead may or may not exist.
          () => undefined,
        ),
      )
      if (round < kills) {
        await expect.poll(() => receiver.received.length - before, { timeout: 60_000, interval: 5 }).toBeGreaterThan(10)
        await serving.stop('SIGKILL')
      }
      await Promise.all(writing)
      if (round < kills) serving = await accordServing(folder, 'serve', environment)
    }
    const missing = () => accepted.filter((id) => !receiver.received.some((each) => leadIdOf(each) === id))
    await expect.poll(missing, { timeout: 60_000, interval: 100 }).toEqual([])

    expect(accepted.length).toBeGreaterThan(leadsPerRound)
    const messages = new Map<string, Received[]>()
    for (const each of receiver.received) {
      const message = new Verifier(secret).verify(each.body, each.headers as Record<string, string>) as { id: string }
      messages.set(message.id, [...(messages.get(message.id) ?? []), each])
    }
    const twice = [...messages.values()].filter((each) => each.length > 1)
    expect(twice.length).toBeLessThanOrEqual(kills * atOnce)
    for (const [first, ...more] of twice) for (const each of more) expect(each.body).toBe(first?.body)
    // Each lead has one event, so there are as many messages as leads.
    expect(new Set([...messages.values()].map(([first]) => leadIdOf(first as Received))).size).toBe(messages.size)
  }, 300_000)
})
