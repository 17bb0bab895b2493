// `accord listen` beside a server: it forwards signed events, whether or not the receiver answers.
import { dirname } from 'node:path'
import { Webhook as Verifier } from 'standardwebhooks'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { listenCommand } from '../../src/commands/listen.ts'
import { accordServing } from '../support/accord.ts'
import { testConfig } from '../support/app.ts'
import { type Installed, installed, said } from '../support/installed.ts'
import { firstReceived, startReceiver } from '../support/receiver.ts'

let beside: Installed
beforeAll(async () => {
  beside = await installed()
}, 60_000)
afterAll(() => beside.close())

async function addTag(name: string): Promise<void> {
  expect((await beside.server.admin.post('/tags', { name, color: '#337CFF' })).status).toBe(201)
}

describe('accord listen', () => {
  it('forwards signed events beside a server while the receiver comes and goes', { timeout: 200_000 }, async () => {
    const receiver = await startReceiver()
    const args = [`${receiver.url}/hook`, '--events', 'settings.tag.create.after']
    await addTag('Before')
    const listening = await accordServing(dirname(beside.dataDir), 'listen', {}, { args })
    const printed = listening.said
    const waiting = { timeout: 60_000 }
    await addTag('One')
    await expect.poll(() => printed.stdout, waiting).toMatch(/ {2}200 {2}settings\.tag\.create\.after/)
    expect(receiver.received).toHaveLength(1)
    const sentId = JSON.parse(firstReceived(receiver).body).data.id
    expect(printed.stdout).toMatch(new RegExp(`^\\S+ +${sentId}  200  settings`, 'm'))
    const { headers, body } = firstReceived(receiver)
    const names = ['webhook-id', 'webhook-timestamp', 'webhook-signature']
    const signed = Object.fromEntries(names.map((name) => [name, String(headers[name])]))
    expect(new Verifier(listening.url).verify(body, signed)).toMatchObject({ data: { after: { name: 'One' } } })

    await receiver.stop()
    await addTag('Two')
    await expect.poll(() => printed.stdout, waiting).toContain('No connection to 127.0.0.1')
    await receiver.start()
    await addTag('Three')
    await expect.poll(() => printed.stdout.match(/ {2}200 {2}/g)?.length, waiting).toBe(2)
    expect((await listening.stop('SIGINT')).code).toBe(0)
    expect(printed.stdout).toMatch(/\n3 events sent, 1 not accepted\.\n$/)
    expect(printed.stderr).toBe('')
    await receiver.close()
  })

  it('says first that nothing is installed', async () => {
    const config = testConfig({ databaseUrl: 'sqlite:/nowhere/accord.db', dataDir: '/nowhere' })
    const { code, stderr } = await said(() => listenCommand(config, 'http://127.0.0.1:9/', { events: '*' }))
    const sentence = 'There is no database at sqlite:/nowhere/accord.db. Run it in the folder of the installation, '
    const advice = 'or set ACCORD_DATA_DIR. For a new installation, run: accord install'
    expect([code, stderr]).toEqual([1, `${sentence}${advice}\n`])
  })

  it.each([
    ['127.0.0.1:3000/hook', '*', 'Write the address as http://127.0.0.1:3000/hook, not 127.0.0.1:3000/hook.'],
    ['ftp://127.0.0.1/', '*', 'Write the address as http://127.0.0.1:3000/hook, not ftp://127.0.0.1/.'],
    ['http://a:b@127.0.0.1/', '*', 'The address must not carry a name or password.'],
    ['http://127.0.0.1/', 'lead.creat.after', 'Did you mean `lead.create.after`?'],
    // Other services name events by the past tense.
    ['http://127.0.0.1/', 'lead.created', 'Did you mean `lead.create.after`?'],
    ['http://127.0.0.1/', 'lead.update', 'Did you mean `lead.update.after`?'],
    ['http://127.0.0.1/', 'person.deleted', 'Did you mean `contacts.person.delete.after`?'],
    ['http://127.0.0.1/', 'lead.win', 'Did you mean `lead.won`?'],
    ['http://127.0.0.1/', 'unicorn.*', /No event matches this pattern\.$/],
    ['http://127.0.0.1/', ' , ', '--events needs the name of an event, such as lead.create.after.'],
    ['http://127.0.0.1/', 'user.token.create.after', 'Events of webhooks, tokens and the configuration are not sent.'],
  ])('refuses %s with --events %s', async (url, events, sentence) => {
    await expect(listenCommand(testConfig(), url, { events })).rejects.toThrow(sentence)
  })

  it('refuses a position that is not a number', async () => {
    const call = listenCommand(testConfig(), 'http://127.0.0.1/', { events: '*', since: 'yesterday' })
    await expect(call).rejects.toThrow('--since must be the id of an event, not "yesterday".')
  })
})
