// The mailbox password is sent only to the server that it was set for. A user
// with the permission `configuration` cannot redirect it to another server.
import { describe, expect, it } from 'vitest'
import { systemContext } from '../../src/kernel/context.ts'
import { configuredMailbox } from '../../src/resources/configuration/mailbox.ts'
import { pollEmails } from '../../src/resources/emails/poll.ts'
import { startImap } from '../support/imap.ts'
import { useNew, useNewServers } from '../support/using.ts'

const path = '/settings/configuration'
const account = 'email.imap.account'
const password = `${account}.password`
const secret = 'password-of-the-mailbox'
const environment = {
  host: 'imap.example.com',
  port: 993,
  encryption: 'ssl',
  validateCert: true,
  username: 'crm',
  password: 'password-of-the-environment',
} as const

const thief = useNew(startImap)
const server = useNewServers({ config: { mailReceiver: 'webklex-imap', imap: { ...environment, password: null } } })

const save = (values: object, headers: Record<string, string> = {}) => server.admin.put(path, { values }, { headers })
const isStored = async (): Promise<boolean> =>
  (await server.admin.get(path)).body.data.find(({ code }: { code: string }) => code === password).is_set
const system = () => systemContext(server.app.services, 'inbound_mail')
const mailbox = () => configuredMailbox(system())
const setEnvironment = (changes: object): void =>
  void Object.assign(server.app.services.config, { imap: { ...environment, ...changes } })

/** Each part of a connection with a changed value. */
const moves: [string, unknown][] = [
  ['host', 'imap.example.net'],
  ['port', 1143],
  ['encryption', 'none'],
  ['validate_cert', false],
  ['username', 'ada'],
]

describe('the stored password', () => {
  it.each(moves)('goes with a change of %s', async (name, value) => {
    await save({ [password]: secret })
    expect(await mailbox()).toMatchObject({ host: 'imap.example.com', password: secret })
    const { status, body } = await save({ [`${account}.${name}`]: value })
    expect([status, body.message]).toEqual([
      200,
      'Configuration saved. The password of the mailbox was removed, because its connection changed.',
    ])
    expect(body.data.find(({ code }: { code: string }) => code === password)).toMatchObject({ is_set: false })
    expect(await isStored()).toBe(false)
    expect(await mailbox()).toContain('No mailbox is set')
    expect(server.seen.at(-1)?.changed).toEqual([`${account}.${name}`, password])
    const { text } = await server.admin.get(`${path}/history`)
    expect(text + JSON.stringify(server.seen)).not.toContain(secret)
  })

  it.each(moves)('goes when a reset of %s to the environment changes it', async (name, value) => {
    await save({ [`${account}.${name}`]: value, [password]: secret })
    expect(await isStored()).toBe(true)
    await save({ [`${account}.${name}`]: null })
    expect(await isStored()).toBe(false)
  })

  it('stays when it is sent along, when nothing of the connection changes, and in a dry run', async () => {
    await save({ [password]: secret, [`${account}.host`]: 'imap.example.net' })
    expect(await mailbox()).toMatchObject({ host: 'imap.example.net', password: secret })
    await save({ [`${account}.port`]: 1143, [password]: secret })
    expect(await mailbox()).toMatchObject({ port: 1143, password: secret })
    await save({ [`${account}.port`]: 1143, 'general.settings.menu.leads': 'Deals' })
    expect(await isStored()).toBe(true)
    const trial = await save({ [`${account}.host`]: '127.0.0.1' }, { 'accord-dry-run': 'true' })
    expect(trial.body.message).toContain('was removed')
    expect(await mailbox()).toMatchObject({ host: 'imap.example.net', password: secret })
    await save({ [`${account}.host`]: '127.0.0.1', [password]: null })
    expect(await isStored()).toBe(false)
  })

  it('never reaches a server that was named afterwards', async () => {
    await save({ [password]: secret })
    await save({
      [`${account}.host`]: thief.host,
      [`${account}.port`]: thief.port,
      [`${account}.encryption`]: 'none',
    })
    const { failure } = await pollEmails(system(), new AbortController().signal)
    expect(failure).toContain('No mailbox is set')
    expect(thief.commands).toEqual([])
  })
})

describe('the password of the environment', () => {
  it.each(moves)('is not used once the configuration names another %s', async (name, value) => {
    setEnvironment({})
    expect(await mailbox()).toEqual(environment)
    await save({ [`${account}.${name}`]: value })
    expect(await mailbox()).toContain('so ACCORD_IMAP_PASSWORD is not used')
    await save({ [`${account}.${name}`]: null })
    expect(await mailbox()).toEqual(environment)
  })

  it('never reaches a server that the configuration names', async () => {
    setEnvironment({})
    await save({
      [`${account}.host`]: thief.host,
      [`${account}.port`]: thief.port,
      [`${account}.encryption`]: 'none',
      [`${account}.username`]: thief.username,
    })
    const { failure } = await pollEmails(system(), new AbortController().signal)
    expect(failure).toContain('so ACCORD_IMAP_PASSWORD is not used')
    expect(thief.commands).toEqual([])
  })
})
