// Rules of the own account that the generated contract tests do not check.
import { describe, expect, it } from 'vitest'
import { adminPassword } from '../support/app.ts'
import { password, someone } from '../support/people.ts'
import { useNewServers } from '../support/using.ts'

const server = useNewServers()

const fresh = 'a brand new password'
const updated = ['user.account.update.before', 'user.account.update.after']
const passwordUpdated = [
  'user.account.update-password.before',
  'user.account.update-password.after',
  'user.account.update-password',
]
const change = { password: fresh, password_confirmation: fresh }

const login = (email: string, secret: string) =>
  server.anonymous.post('/login', { email, password: secret, device_name: 'laptop' })

describe('getAccount', () => {
  it('says who is calling, and that a role with every permission holds *', async () => {
    const { body, headers } = await (await server.as(1, ['account:read'])).get('/account')
    expect(body.data).toMatchObject({
      id: 1,
      email: 'admin@example.com',
      permissions: ['*'],
      abilities: ['account:read'],
    })
    expect(headers.etag).toMatch(/^"1-[\w-]{22}"$/)
  })

  it('lists the permissions of a custom role with their ancestors, also for a role without any', async () => {
    const ann = await someone(server, ['leads.view', 'dashboard'], { view_permission: 'individual' })
    expect((await ann.caller.get('/account')).body.data).toMatchObject({
      id: ann.id,
      permissions: ['dashboard', 'leads', 'leads.view'],
    })
    const bob = await someone(server, [])
    expect((await bob.caller.get('/account')).body.data.permissions).toEqual([])
  })
})

describe('updateAccount', () => {
  it('changes the name without asking for the password, and nothing an administrator decides', async () => {
    const { body } = await server.admin.put('/account', { name: 'Ada', is_active: false, role_id: 7, permissions: [] })
    expect(body.data).toMatchObject({ name: 'Ada', is_active: true, role_id: 1, permissions: ['*'], version: 2 })
    expect(server.events()).toEqual(updated)
  })

  it('changes nothing when everything is as it was', async () => {
    const { body } = await server.admin.get('/account')
    expect((await server.admin.put('/account', body.data)).body.data).toEqual(body.data)
    expect(server.seen.at(-1)?.changed).toEqual([])
    expect(server.events()).toEqual(updated)
    expect(await server.store.db.selectFrom('events').select('id').execute()).toEqual([])
  })

  it('asks for the current password before the address changes', async () => {
    const email = 'ada@example.com'
    for (const current_password of [undefined, 'a wrong password']) {
      const { status, body } = await server.admin.put('/account', { email, current_password })
      expect(status).toBe(422)
      expect(Object.keys(body.errors)).toEqual(['current_password'])
    }
    expect(server.events()).toEqual([])
    expect((await server.admin.put('/account', { email, current_password: adminPassword })).body.data.email).toBe(email)
    expect((await login(email, adminPassword)).status).toBe(200)
  })

  it('refuses an address that another user has with 409', async () => {
    const ann = await someone(server, ['leads'])
    const { body } = await server.admin.put('/account', {
      email: ann.email.toUpperCase(),
      current_password: adminPassword,
    })
    expect(body).toMatchObject({ status: 409, conflicts: [{ entity_type: 'users', id: ann.id, field: 'email' }] })
    expect(server.events()).toEqual([])
  })

  it('changes the password, says so to listeners of the bare name too, and keeps only the calling token', async () => {
    const ann = await someone(server, ['leads'])
    const other = await server.as(ann.id)
    const { status, body } = await ann.caller.put('/account', { ...change, current_password: password })
    expect(status).toBe(200)
    expect(body.data.version).toBe(2)
    const seen = JSON.stringify(server.seen)
    expect(server.seen.map(({ changed }) => changed)).toEqual([undefined, undefined, ['password'], ['password'], []])
    expect(server.seen.at(-1)?.entityId).toBe(Number(other.token?.split('|')[0]))
    const [before, ...rest] = passwordUpdated
    expect(server.events()).toEqual([before, 'user.token.delete.before', ...rest, 'user.token.delete.after'])
    const log = await server.store.db.selectFrom('events').selectAll().orderBy('id').execute()
    expect(log.slice(-2).map(({ name }) => name)).toEqual(['user.account.update-password', 'user.token.delete.after'])
    for (const text of [seen, JSON.stringify(log)])
      for (const secret of [password, fresh, 'argon2']) expect(text).not.toContain(secret)
    expect((await ann.caller.get('/account')).status).toBe(200)
    expect((await other.get('/account')).status).toBe(401)
    expect((await login(ann.email, password)).status).toBe(401)
    expect((await login(ann.email, fresh)).status).toBe(200)
  })

  it('fires both pairs when name and password change together', async () => {
    const { body } = await server.admin.put('/account', { ...change, name: 'Ada', current_password: adminPassword })
    expect(body.data).toMatchObject({ name: 'Ada', version: 3 })
    expect(server.events()).toEqual([updated[0], passwordUpdated[0], updated[1], ...passwordUpdated.slice(1)])
  })

  it('refuses a password that is not repeated or equals the address, and keeps the old one', async () => {
    const wrong = {
      password: 'Admin@Example.com',
      password_confirmation: 'admin@example.com',
      current_password: adminPassword,
    }
    const { status, body } = await server.admin.put('/account', wrong)
    expect(status).toBe(422)
    expect(Object.keys(body.errors).sort()).toEqual(['password', 'password_confirmation'])
    expect((await server.admin.put('/account', { password: fresh, current_password: adminPassword })).status).toBe(422)
    expect(server.events()).toEqual([])
    expect((await login('admin@example.com', adminPassword)).status).toBe(200)
  })

  it('counts a wrong current password like a failed login', async () => {
    for (let tries = 0; tries < 5; tries++) {
      expect((await server.admin.put('/account', { ...change, current_password: 'a guess' })).status).toBe(422)
    }
    const { status, headers } = await server.admin.put('/account', { ...change, current_password: adminPassword })
    expect(status).toBe(429)
    expect(headers['retry-after']).toBe('60')
    expect((await login('admin@example.com', adminPassword)).status).toBe(429)
    expect((await server.admin.put('/account', { name: 'Ada' })).status).toBe(200)
  })

  it('keeps nothing of a dry run', async () => {
    const { status, body } = await server.admin.put(
      '/account',
      { ...change, current_password: adminPassword },
      { headers: { 'accord-dry-run': 'true' } },
    )
    expect(status).toBe(200)
    expect(body.data.version).toBe(2)
    expect(server.events()).toEqual([])
    expect((await login('admin@example.com', adminPassword)).status).toBe(200)
  })

  it('refuses a change to a version that is gone', async () => {
    const headers = { 'if-match': '"7"' }
    expect((await server.admin.put('/account', { name: 'Ada' }, { headers })).status).toBe(412)
    expect(server.events()).toEqual([])
  })
})
