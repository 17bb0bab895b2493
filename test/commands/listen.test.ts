// `accord listen` beside a server, as a process: it forwards signed events while the receiver and
// the server come and go.
import { rmSync } from 'node:fs'
import { Webhook as Verifier } from 'standardwebhooks'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { listenCommand } from '../../src/commands/listen.ts'
import { accord, accordServing, type Serving } from '../support/accord.ts'
import { testConfig } from '../support/app.ts'
import { workingFolder } from '../support/installed.ts'
import { firstReceived, startReceiver } from '../support/receiver.ts'

const environment = { ACCORD_ADMIN_PASSWORD: 'correct horse battery' }

let folder: string
const running: Serving[] = []
beforeAll(async () => {
  folder = await workingFolder()
})
afterAll(async () => {
  for (const each of running) await each.stop()
  rmSync(folder, { recursive: true, force: true })
})

async function serve(): Promise<Serving> {
  const serving = await accordServing(folder, 'serve', environment)
  running.push(serving)
  return serving
}

async function tokenOf({ url }: Serving): Promise<string> {
  const account = { email: 'admin@example.com', password: 'correct horse battery', device_name: 'test' }
  const reply = await fetch(`${url}/api/admin/login`, { method: 'POST', headers: json, body: JSON.stringify(account) })
  return ((await reply.json()) as { data: { token: string } }).data.token
}

const json = { 'content-type': 'application/json', accept: 'application/json' }

async function addTag({ url }: Serving, token: string, name: string): Promise<void> {
  const headers = { ...json, authorization: `Bearer ${token}` }
  const body = JSON.stringify({ name, color: '#337CFF' })
  const { status } = await fetch(`${url}/api/admin/tags`, { method: 'POST', headers, body })
  expect(status).toBe(201)
}

describe('accord listen', () => {
  it('forwards signed events while receiver and server come and go', { timeout: 120_000 }, async () => {
    const receiver = await startReceiver()
    const first = await serve()
    const token = await tokenOf(first)
    const args = [`${receiver.url}/hook`, '--events', 'settings.tag.create.after']
    const listening = await accordServing(folder, 'listen', {}, { args })
    running.push(listening)
    const { said } = listening
    await addTag(first, token, 'One')
    await expect.poll(() => said.stdout, { timeout: 20_000 }).toMatch(/ {2}200 {2}settings\.tag\.create\.after/)
    const { headers, body } = firstReceived(receiver)
    const names = ['webhook-id', 'webhook-timestamp', 'webhook-signature']
    const signed = Object.fromEntries(names.map((name) => [name, String(headers[name])]))
    expect(new Verifier(listening.url).verify(body, signed)).toMatchObject({ data: { after: { name: 'One' } } })

    await receiver.stop()
    await addTag(first, token, 'Two')
    await expect.poll(() => said.stdout, { timeout: 20_000 }).toContain('No connection to 127.0.0.1')
    await first.stop()
    await receiver.start()
    await addTag(await serve(), token, 'Three')
    await expect.poll(() => receiver.received.length, { timeout: 20_000 }).toBe(2)

    await expect.poll(() => said.stdout.match(/ {2}200 {2}/g)?.length, { timeout: 20_000 }).toBe(2)
    expect((await listening.stop('SIGINT')).code).toBe(0)
    expect(said.stdout).toMatch(/\n3 events sent, 1 not accepted\.\n$/)
    expect(said.stderr).toBe('')
    await receiver.close()
  })

  it('says first that nothing is installed', { timeout: 60_000 }, async () => {
    const { code, stderr } = await accord(folder, ['listen', 'http://127.0.0.1:9/'], { ACCORD_DATA_DIR: 'elsewhere' })
    expect([code, stderr]).toEqual([1, expect.stringMatching(/^There is no database at \S+ Run: accord install\n$/)])
  })

  it.each([
    ['127.0.0.1:3000/hook', '*', 'Write the address as http://127.0.0.1:3000/hook, not 127.0.0.1:3000/hook.'],
    ['ftp://127.0.0.1/', '*', 'Write the address as http://127.0.0.1:3000/hook, not ftp://127.0.0.1/.'],
    ['http://a:b@127.0.0.1/', '*', 'The address must not carry a name or password.'],
    ['http://127.0.0.1/', 'lead.creat.after', 'Did you mean `lead.create.after`?'],
    ['http://127.0.0.1/', ' , ', '--events needs the name of an event, such as lead.create.after.'],
    ['http://127.0.0.1/', 'user.token.create.after', 'Events of webhooks, tokens and the configuration are not sent.'],
  ])('refuses %s with --events %s', async (url, events, sentence) => {
    await expect(listenCommand(testConfig(), url, { events })).rejects.toThrow(sentence)
  })

  it('refuses a position that is no number', async () => {
    const call = listenCommand(testConfig(), 'http://127.0.0.1/', { events: '*', since: 'yesterday' })
    await expect(call).rejects.toThrow('--since must be the id of an event, not "yesterday".')
  })
})
