// The sessions of an account: listing and ending the own sessions, and the visibility of sign-in
// events, including failed sign-ins.
import { describe, expect, it } from 'vitest'
import { adminPassword, type Caller } from '../support/app.ts'
import { openPage, type Page, signedInPage } from '../support/page.ts'
import { password, someone } from '../support/people.ts'
import { useNewServers } from '../support/using.ts'

const server = useNewServers()

const admin = 'admin@example.com'
const agent = 'Mozilla/5.0 (test)'

async function pageOf(email: string, secret = password): Promise<Page> {
  const page = openPage(server)
  await page.get('/csrf-cookie')
  const { status } = await page.post('/session', { email, password: secret }, { 'user-agent': agent })
  if (status !== 200) throw new Error(`Signing in answered ${status}.`)
  return page
}

type Entry = {
  name: string
  entity_id: number | null
  actor: { id: number | null }
  after: any
  before: any
  origin: string
}
const feed = async (caller: Pick<Caller, 'get'>): Promise<Entry[]> => {
  const { body } = await caller.get('/events', { query: { entity_type: 'sessions', per_page: '100' } })
  return body.data
}
const names = (entries: Entry[]): string[] => entries.map(({ name }) => name)
const guess = (email: string, remoteAddress = '203.0.113.5') =>
  server.inject({
    method: 'POST',
    url: '/api/admin/login',
    remoteAddress,
    headers: { accept: 'application/json', 'user-agent': agent },
    payload: { email, password: 'a guess', device_name: 'Phone' },
  })

describe('listAccountSessions', () => {
  it('shows where the own account is signed in, with address and program, and which one this is', async () => {
    const ann = await someone(server, ['leads'])
    const [first, second] = [await pageOf(ann.email), await pageOf(ann.email)]
    await pageOf(admin, adminPassword)
    const { body } = await second.get('/account/sessions')
    expect(body.meta.total).toBe(2)
    const at = '2026-03-01T09:30:00.000Z'
    const one = {
      user_id: ann.id,
      ip: '127.0.0.1',
      user_agent: agent,
      is_remembered: false,
      created_at: at,
      last_used_at: at,
    }
    expect(body.data).toEqual([
      { id: expect.any(Number), ...one, expires_at: '2026-03-02T09:30:00.000Z', is_current: true },
      { id: expect.any(Number), ...one, expires_at: '2026-03-02T09:30:00.000Z', is_current: false },
    ])
    expect((await first.get('/account/sessions')).body.data.map((each: any) => each.is_current)).toEqual([false, true])
    expect((await ann.caller.get('/account/sessions')).body.data.some((each: any) => each.is_current)).toBe(false)
    // The list has pages.
    const { body: page } = await ann.caller.get('/account/sessions', { query: { per_page: '1', page: '2' } })
    expect(page.data).toHaveLength(1)
  })

  it('leaves out those that are over', async () => {
    await pageOf(admin, adminPassword)
    server.clock.advanceMs(8 * 3_600_000)
    expect((await server.admin.get('/account/sessions')).body.data).toEqual([])
  })
})

describe('deleteAccountSession', () => {
  it('ends one, this or another, and tells of it; the others go on', async () => {
    const [first, second] = [await signedInPage(server), await signedInPage(server)]
    const ids: number[] = (await first.get('/account/sessions')).body.data
      .map((each: any) => each.id)
      .sort((one: number, other: number) => one - other)
    server.events()
    expect((await first.call('DELETE', `/account/sessions/${ids[1]}`)).status).toBe(200)
    expect([(await first.get('/session')).status, (await second.get('/session')).status]).toEqual([200, 401])
    expect((await first.call('DELETE', `/account/sessions/${ids[0]}`)).status).toBe(200)
    expect([first.jar.has('accord_session'), (await first.get('/session')).status]).toEqual([false, 401])
    const pair = ['user.session.delete.before', 'user.session.delete.after']
    expect(server.events()).toEqual([...pair, ...pair])
  })

  it('finds none of others, and none that is over', async () => {
    const ann = await someone(server, 'all')
    await pageOf(ann.email)
    const { id } = (await ann.caller.get('/account/sessions')).body.data[0]
    expect((await server.admin.delete(`/account/sessions/${id}`)).status).toBe(404)
    server.clock.advanceMs(24 * 3_600_000)
    expect((await ann.caller.delete(`/account/sessions/${id}`)).status).toBe(404)
  })
})

describe('signing in with a cookie', () => {
  it('leaves who, from where and with what in the log, and no secret', async () => {
    const page = await pageOf(admin, adminPassword)
    const { id } = (await page.get('/account/sessions')).body.data[0]
    const secret = page.jar.get('accord_session') ?? 'none'
    await page.call('DELETE', '/session')
    const entries = await feed(server.admin)
    expect(names(entries)).toEqual(['user.session.create.after', 'user.session.delete.after'])
    expect(entries[0]).toMatchObject({
      entity_id: id,
      actor: { id: 1 },
      origin: 'session',
      after: { user_id: 1, ip: '127.0.0.1', user_agent: agent },
    })
    expect(entries[1]).toMatchObject({ entity_id: id, before: { user_id: 1, ip: '127.0.0.1' }, after: null })
    expect(JSON.stringify([entries, server.seen])).not.toContain(secret)
    expect(Object.keys(entries[0]?.after)).not.toContain('secret_hash')
  })

  it('tells of each session that a new password, another owner of the account or the fifty-first one ends', async () => {
    const ann = await someone(server, ['leads'])
    for (let count = 0; count < 3; count++) await pageOf(ann.email)
    server.events()
    const fresh = { password: 'quite another password', password_confirmation: 'quite another password' }
    expect((await server.admin.put(`/settings/users/${ann.id}`, fresh)).status).toBe(200)
    expect(server.events().filter((name) => name === 'user.session.delete.after')).toHaveLength(3)
    for (let count = 0; count < 51; count++) await pageOf(ann.email, fresh.password)
    expect(server.events().filter((name) => name === 'user.session.delete.after')).toHaveLength(1)
    expect((await server.admin.delete(`/settings/users/${ann.id}`)).status).toBe(200)
    expect(server.events().filter((name) => name === 'user.session.delete.after')).toHaveLength(50)
  })
})

describe('a failed attempt to sign in', () => {
  it('records the account, address and browser of a failed login, and no text typed for an unknown account', async () => {
    await guess(admin)
    await guess('my-password-by-mistake')
    const ann = await someone(server, ['leads'], { is_active: false })
    await server.anonymous.post('/login', { email: ann.email, password, device_name: 'Phone' })
    const entries = await feed(server.admin)
    expect(names(entries)).toEqual(Array(3).fill('user.session.failed'))
    expect(entries.map(({ actor, entity_id, after }) => [actor.id, entity_id, after])).toEqual([
      [
        null,
        null,
        { user_id: 1, email: admin, reason: 'invalid_credentials', failures: 1, ip: '203.0.113.5', user_agent: agent },
      ],
      [
        null,
        null,
        {
          user_id: null,
          email: null,
          reason: 'invalid_credentials',
          failures: 1,
          ip: '203.0.113.5',
          user_agent: agent,
        },
      ],
      [null, null, expect.objectContaining({ user_id: ann.id, reason: 'account_inactive' })],
    ])
    expect((await server.store.image()).includes('my-password-by-mistake')).toBe(false)
    expect((await server.store.image()).includes('a guess')).toBe(false)
  })

  it('is told once a minute for an account and a network, with how many there were, and thirty times a minute in all', async () => {
    for (let tries = 0; tries < 4; tries++) await guess(admin)
    server.clock.advanceMs(60_001)
    await guess(admin)
    expect((await feed(server.admin)).map(({ after }) => after.failures)).toEqual([1, 4])
    for (let tries = 0; tries < 100; tries++) await guess(`unknown-${tries}@example.com`, `198.51.100.${tries}`)
    expect(await feed(server.admin)).toHaveLength(31)
  })

  it('leaves the same for an account that exists and for one that does not', async () => {
    const count = async (email: string) => {
      const before = (await feed(server.admin)).length
      for (let tries = 0; tries < 3; tries++) await guess(email, `198.51.100.${tries}`)
      return (await feed(server.admin)).length - before
    }
    expect(await count(admin)).toBe(await count('unknown@example.com'))
  })
})

describe('events of signing in', () => {
  it('are shown to the user, and to those who may read the users in sight', async () => {
    const group = (await server.admin.post('/settings/groups', { name: 'Sales', user_ids: [] })).body.data.id
    const inSales = { view_permission: 'group', group_ids: [group] }
    const ann = await someone(server, ['events', 'leads'], { ...inSales, view_permission: 'individual' })
    const reader = await someone(server, ['events', 'settings.user.users'], inSales)
    const peer = await someone(server, ['events', 'leads'], inSales)
    const stranger = await someone(server, ['events', 'settings.user.users'], { view_permission: 'individual' })
    const page = await pageOf(ann.email)
    await page.call('DELETE', '/session')
    await guess(ann.email)
    await guess('unknown@example.com')
    const all = ['user.session.create.after', 'user.session.delete.after', 'user.session.failed']
    expect(names(await feed(server.admin))).toEqual([...all, 'user.session.failed'])
    expect(names(await feed(ann.caller))).toEqual(all)
    expect(names(await feed(reader.caller))).toEqual(all)
    expect(names(await feed(peer.caller))).toEqual([])
    expect(names(await feed(stranger.caller))).toEqual([])
    // Without the ability to read users, a token sees only session events of its own user.
    const limited = await server.as(reader.id, ['events:read', 'account:read'])
    expect(names(await feed(limited))).toEqual([])
  })
})
