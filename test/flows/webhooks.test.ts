// A webhook receiver is down for an hour while users work. When it is back, it gets every event
// once, in order for each record, with valid signatures of Standard Webhooks.
import { Webhook as Verifier } from 'standardwebhooks'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { given } from '../support/given.ts'
import { type Received, startReceiver } from '../support/receiver.ts'
import { useNew, useNewServers } from '../support/using.ts'

const minute = 60_000
const events = ['lead.*.after', 'contacts.person.*.after']

let webhook: { id: number; secret: string }
const receiver = useNew(startReceiver)
const server = useNewServers({ config: { webhookAllowHttp: true, webhookAllowCidrs: ['127.0.0.1/32'] } })
beforeEach(async () => {
  const body = { name: 'Warehouse', url: `${receiver.url}/hooks`, events }
  webhook = (await server.admin.post('/settings/webhooks', body)).body.data
})
afterEach(() => {
  vi.useRealTimers()
})

interface Versioned {
  version: number
}

interface Message {
  id: string
  type: string
  data: { entity_type: string; entity_id: number; before: Versioned | null; after: Versioned | null }
}

/** Returns the message of a request after verifying its signature at the time of sending. */
function verified({ body, headers }: Received): Message {
  vi.useFakeTimers({ toFake: ['Date'], now: Number(headers['webhook-timestamp']) * 1000 })
  const message = new Verifier(webhook.secret).verify(body, headers as Record<string, string>) as Message
  vi.useRealTimers()
  return message
}

/** Returns the expected events in order. */
const told = async (): Promise<string[]> =>
  (
    await server.store.db
      .selectFrom('events')
      .select(['id', 'created_at'])
      .where('name', 'in', [
        'lead.create.after',
        'lead.update.after',
        'lead.delete.after',
        'contacts.person.update.after',
      ])
      .orderBy('id')
      .execute()
  ).map(({ id, created_at }) => `msg_${id}_${webhook.id}_${Date.parse(created_at).toString(36)}`)

/** Groups messages by record. */
function byRecord(messages: readonly Message[]): Map<string, Message[]> {
  const records = new Map<string, Message[]>()
  for (const message of messages) {
    const key = `${message.data.entity_type} ${message.data.entity_id}`
    records.set(key, [...(records.get(key) ?? []), message])
  }
  return records
}

async function anHourWithoutReceiver(): Promise<void> {
  const make = given(server.admin)
  const person = await make.person()
  const leads = [await make.lead(), await make.lead(), await make.lead()]
  await server.work()
  receiver.received.length = 0
  await server.store.db.deleteFrom('events').execute()
  await receiver.stop()
  for (let passed = 0; passed < 60; passed += 5) {
    for (const [index, { id }] of leads.entries())
      if (passed < 40 || index > 0) await server.admin.put(`/leads/${id}`, { title: `Lead ${index} after ${passed}` })
    await server.admin.put(`/contacts/persons/${person.id}`, { job_title: `Buyer ${passed}` })
    if (passed === 40) await server.admin.delete(`/leads/${leads[0]?.id}`)
    await server.work()
    server.clock.advanceMs(5 * minute)
  }
  await server.work()
  expect(receiver.received).toEqual([])
  await receiver.start()
}

async function expectEverything(): Promise<void> {
  const messages = receiver.received.map(verified)
  const expected = await told()
  expect(messages.map(({ id }) => id).sort()).toEqual([...expected].sort())
  expect(messages.length).toBeGreaterThan(40)
  for (const [record, list] of byRecord(messages)) {
    const order = list.map(({ id }) => expected.indexOf(id))
    expect(order, record).toEqual([...order].sort((a, b) => a - b))
    const versions = list.map(({ data }) => (data.after ?? data.before)?.version ?? 0)
    expect(versions, record).toEqual([...versions].sort((a, b) => a - b))
  }
  const { body } = await server.admin.get(`/settings/webhooks/${webhook.id}/deliveries?state[not]=succeeded`)
  expect(body.meta.total).toBe(0)
  expect((await server.admin.get(`/settings/webhooks/${webhook.id}`)).body.data).toMatchObject({
    is_active: true,
    failing_since: null,
    last_status: 200,
  })
}

describe('a receiver that was down for an hour', () => {
  it('gets everything as soon as something new reaches it', async () => {
    await anHourWithoutReceiver()
    await given(server.admin).lead({ title: 'Something new' })
    await server.work()
    await expectEverything()
    expect(verified(receiver.received[0] as Received).data.after).toMatchObject({ title: 'Something new' })
  })

  it('gets everything with the next try, when nothing new happens', async () => {
    await anHourWithoutReceiver()
    server.clock.advanceMs(5 * minute)
    await server.work()
    // Retries are after five minutes, half an hour and two hours. The two-hour retry is due next.
    expect(receiver.received).toEqual([])
    server.clock.advanceMs(130 * minute)
    await server.work()
    await expectEverything()
  })
})
