// Secrets are encrypted in the database. With another key, operations that need a secret report the
// reason, all others work, and the API can set the secrets again.
import { sql } from 'kysely'
import { describe, expect, it } from 'vitest'
import { createEncryption, DecryptionError } from '../../../src/kernel/auth/encryption.ts'
import { systemContext } from '../../../src/kernel/context.ts'
import { pollEmails } from '../../../src/resources/emails/poll.ts'
import { unsubscribeUrl } from '../../../src/resources/marketing/unsubscribe.ts'
import { seeded, validBody } from '../../support/given.ts'
import { useReceiver } from '../../support/outside.ts'
import { useServer } from '../../support/using.ts'

const stranger = createEncryption('another secret of at least thirty-two characters')

const receiver = useReceiver()
const server = useServer({ config: { webhookAllowHttp: true, webhookAllowCidrs: ['127.0.0.0/8'] } })

/** Returns every stored value, as a thief of the database file would see it. */
async function wholeDatabase(): Promise<string> {
  const tables = await server.store.db.introspection.getTables()
  const found: unknown[] = []
  for (const { name } of tables) found.push((await sql`select * from ${sql.table(name)}`.execute(server.store.db)).rows)
  return JSON.stringify(found)
}

describe('the database', () => {
  it('holds no password, token, signing secret or kept answer that anybody could read', async () => {
    const { admin, anonymous } = server
    const password = 'correct horse battery staple 77'
    const imap = 'imap-password-that-nobody-reads'
    const user = {
      ...validBody('createUser', seeded),
      email: 'grace@example.com',
      password,
      password_confirmation: password,
    }
    const made = await admin.post('/settings/users', user, { headers: { 'idempotency-key': 'k1' } })
    expect(made.status, made.text).toBe(201)
    const login = await anonymous.post('/login', { email: user.email, password, device_name: 'Test' })
    expect(login.status, login.text).toBe(200)
    const token = await admin.post(
      '/tokens',
      { name: 'CI', abilities: ['*'] },
      { headers: { 'idempotency-key': 'k2' } },
    )
    const hook = await admin.post(
      '/settings/webhooks',
      { name: 'Warehouse', url: 'https://example.com/' },
      { headers: { 'idempotency-key': 'k3' } },
    )
    const saved = await admin.put('/settings/configuration', { values: { 'email.imap.account.password': imap } })
    expect([saved.status, hook.status]).toEqual([200, 201])
    const all = await wholeDatabase()
    const secrets = [password, imap, login.body.data.token, token.body.data.token, hook.body.data.secret]
    for (const secret of secrets) {
      expect(String(secret).length).toBeGreaterThan(20)
      expect(all).not.toContain(secret)
      expect(all).not.toContain(String(secret).split('|').at(-1))
      expect(all).not.toContain(Buffer.from(String(secret)).toString('base64'))
    }
  })

  it('uses separate keys to encrypt and to sign', () => {
    const encryption = createEncryption('a secret of at least thirty-two characters')
    expect(encryption.hmac('x')).not.toBe(stranger.hmac('x'))
    expect(() => stranger.decrypt(encryption.encrypt('x'))).toThrow(DecryptionError)
    for (const sealed of [
      '',
      'AAAA',
      '!!!!',
      encryption.encrypt('x').slice(0, 30),
      Buffer.alloc(28).toString('base64'),
    ])
      expect(() => encryption.decrypt(sealed)).toThrow(DecryptionError)
  })
})

describe('with another ACCORD_SECRET', () => {
  it('a webhook is not sent unsigned: its test says why, and rotating its secret mends it', async () => {
    const { admin, store } = server
    const url = `http://127.0.0.1:${receiver.port}/hook`
    const { body } = await admin.post('/settings/webhooks', { name: 'Old', url, events: ['lead.*.after'] })
    const { id } = body.data
    await store.db
      .updateTable('webhooks')
      .set({ secret_sealed: stranger.encrypt('whsec_AAAA') })
      .execute()

    const tried = await admin.post(`/settings/webhooks/${id}/test`)
    expect(tried.status, tried.text).toBe(200)
    expect(tried.text).toContain('stored with another ACCORD_SECRET. Rotate it.')
    expect(receiver.received).toEqual([])
    for (const path of ['', `/${id}`, `/${id}/history`])
      expect((await admin.get(`/settings/webhooks${path}`)).status).toBe(200)

    expect((await admin.post(`/settings/webhooks/${id}/rotate-secret`)).status).toBe(200)
    expect((await admin.post(`/settings/webhooks/${id}/test`)).text).not.toContain('ACCORD_SECRET')
    expect(receiver.received).toHaveLength(1)
    expect(String(receiver.received[0]?.headers['webhook-signature']).split(' ')).toHaveLength(1)
  })

  it('the mailbox says that its password is to be set again, and it can be', async () => {
    const { admin, app, store } = server
    const values = { 'email.imap.account.host': '127.0.0.1', 'email.imap.account.username': 'crm' }
    const secret = { 'email.imap.account.password': 'a long enough password' }
    expect((await admin.put('/settings/configuration', { values: { ...values, ...secret } })).status).toBe(200)
    await store.db
      .updateTable('core_config')
      .set({ value: JSON.stringify(stranger.encrypt('x')) })
      .where('code', '=', 'email.imap.account.password')
      .execute()
    const polled = await pollEmails(systemContext(app.services, 'inbound_mail'), new AbortController().signal)
    expect(polled.failure).toContain('stored with another ACCORD_SECRET. Set it again.')
    expect((await admin.get('/settings/configuration')).status).toBe(200)
    const again = await admin.put('/settings/configuration', { values: secret })
    expect(again.status, again.text).toBe(200)
  })

  it('links and cursors of another secret are refused as foreign', async () => {
    const { anonymous, admin, app } = server
    const token = Buffer.from(stranger.encrypt('unsubscribe:ada@example.com'), 'base64').toString('base64url')
    const ours = unsubscribeUrl({ ...systemContext(app.services, 'cli'), baseUrl: '' }, 'ada@example.com')
    expect((await anonymous.get(`/${ours}`)).status).toBe(200)
    expect((await anonymous.get(`/${ours.replace(/[^/]+$/, token)}`)).status).toBe(404)
    const cursor = stranger.hmac('x').slice(0, 22) + Buffer.from('{"of":"x"}').toString('base64url')
    expect((await admin.get(`/leads?cursor=${cursor}`)).status).toBe(422)
    const signature = stranger.hmac('file:1:9999999999')
    expect((await anonymous.get(`/files/1/content?expires=9999999999&signature=${signature}`)).status).toBe(403)
  })
})
