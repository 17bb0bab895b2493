// Rules of tokens that the generated contract tests do not check: a token cannot create a more
// powerful token, and a secret is shown only once.
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { signedInAs } from '../../src/kernel/auth/tokens.ts'
import { systemContext } from '../../src/kernel/context.ts'
import { handlers } from '../../src/resources/tokens/handlers.ts'
import { type Caller, startServer, type TestServer } from '../support/app.ts'
import { given } from '../support/given.ts'
import { password, someone } from '../support/people.ts'

let server: TestServer
beforeEach(async () => {
  server = await startServer()
})
afterEach(() => server.close())

const created = ['user.token.create.before', 'user.token.create.after']

describe('listTokens', () => {
  it('answers the own tokens, and refuses those of others without the permission', async () => {
    const ann = await someone(server, ['leads'])
    const { body } = await ann.caller.get('/tokens')
    expect(body.data).toMatchObject([{ user_id: ann.id, name: 'test', kind: 'personal' }])
    expect((await ann.caller.get(`/tokens?user_id=${ann.id}`)).body.meta.total).toBe(1)
    for (const asked of ['1', `${ann.id},1`]) {
      const { status, body } = await ann.caller.get(`/tokens?user_id=${asked}`)
      expect([status, body.required]).toEqual([403, 'settings.user.tokens'])
    }
  })

  it('lists the tokens of visible users to callers who may manage tokens, on request', async () => {
    const ann = await someone(server, ['settings.user.tokens'], { view_permission: 'individual' })
    expect((await server.admin.get(`/tokens?user_id=${ann.id}`)).body.data).toMatchObject([{ user_id: ann.id }])
    expect((await server.admin.get('/tokens')).body.data).toMatchObject([{ user_id: 1 }])
    expect((await ann.caller.get('/tokens?user_id=1')).body.data).toEqual([])
  })

  it('filters and sorts by name in any case and by expiry', async () => {
    for (const name of ['beta', 'Alpha']) await server.admin.post('/tokens', { name, expires_in_days: 10 })
    await server.admin.post('/tokens', { name: 'gamma', expires_at: null })
    expect((await server.admin.get('/tokens?name=ALPHA')).body.data).toMatchObject([{ name: 'Alpha' }])
    const sorted = await server.admin.get('/tokens?sort=name&name[not]=test')
    expect(sorted.body.data.map((token: { name: string }) => token.name)).toEqual(['Alpha', 'beta', 'gamma'])
    expect(
      (await server.admin.get('/tokens?expires_at[lt]=2026-03-12&q=a&per_page=1&cursor=&sort=name')).body.data,
    ).toMatchObject([{ name: 'Alpha' }])
    expect((await server.admin.get('/tokens?expires_at[null]=true&name=gamma')).body.meta.total).toBe(1)
  })
})

describe('getToken', () => {
  it('answers 404 for a token of another user, as if it did not exist', async () => {
    const ann = await someone(server, ['leads'])
    const [{ id }] = (await server.admin.get('/tokens')).body.data
    expect((await ann.caller.get(`/tokens/${id}`)).status).toBe(404)
    const { body, text } = await server.admin.get(`/tokens/${id}`)
    expect(body.data).toMatchObject({ id, user_id: 1, abilities: ['*'] })
    expect(text).not.toMatch(/secret|hash/)
  })
})

describe('createToken', () => {
  it('shows the secret once and lets the token do no more than it says', async () => {
    const { status, body, headers } = await server.admin.post('/tokens', {
      name: 'nightly',
      abilities: ['leads:read', 'leads:read'],
    })
    expect(status).toBe(201)
    expect(body.data).toMatchObject({
      name: 'nightly',
      kind: 'personal',
      abilities: ['leads:read'],
      allowed_ips: [],
      expires_at: '2026-05-30T09:30:00.000Z',
    })
    expect(body.data.token).toMatch(new RegExp(`^${body.data.id}\\|[\\w-]{43}$`))
    expect(headers.location).toMatch(new RegExp(`/api/admin/tokens/${body.data.id}$`))
    const secret = body.data.token.split('|')[1]
    const log = await server.store.db.selectFrom('events').selectAll().execute()
    expect(JSON.stringify([server.seen, log])).not.toContain(secret)
    expect(server.events()).toEqual(created)
    const caller = server.caller(body.data.token)
    expect((await caller.get('/leads')).status).toBe(200)
    expect((await caller.get('/account')).body).toMatchObject({ status: 403, required: 'account:read' })
  })

  it('gives on no ability the calling token lacks', async () => {
    const narrow = await server.as(1, ['account:*', 'leads:read'])
    for (const abilities of [['*'], ['leads:*'], ['account:read', 'leads:write'], ['*:read'], undefined]) {
      const { status, body } = await narrow.post('/tokens', { name: 'wider', abilities })
      expect(status).toBe(403)
      expect(body.required).toBeDefined()
    }
    expect(server.events()).toEqual([])
    expect((await narrow.post('/tokens', { name: 'equal', abilities: ['leads:read', 'account:write'] })).status).toBe(
      201,
    )
  })

  it.each(['expires_at', 'expires_in_days'])('takes no empty text for a token without an end: %s', async (field) => {
    const { status, body } = await server.admin.post('/tokens', { name: 'n', [field]: '' })
    expect([status, Object.keys(body.errors)]).toEqual([422, [field]])
  })

  it('says everything that is wrong at once, and creates nothing', async () => {
    const { status, body } = await server.admin.post('/tokens', {
      name: 'wrong',
      abilities: ['leads:read', 'lead:read', 'everything'],
      allowed_ips: ['10.0.0.0/8', '10.0.0.0/33', '::1', 'localhost'],
      expires_at: '2027-01-01T00:00:00Z',
      expires_in_days: 3,
    })
    expect(status).toBe(422)
    expect(body.errors).toEqual({
      'abilities.1': ['Unknown ability. Did you mean `leads:read`?'],
      'abilities.2': ['Unknown ability.'],
      'allowed_ips.1': ['Must be an address or a CIDR range such as 10.0.0.0/8.'],
      'allowed_ips.3': ['Must be an address or a CIDR range such as 10.0.0.0/8.'],
      expires_in_days: ['Send either expires_at or expires_in_days.'],
    })
    const both = { name: '', abilities: ['lead:read'], allowed_ips: ['::1/'], expires_in_days: 999 }
    expect((await server.admin.post('/tokens', both)).body.errors).toEqual({
      name: ['The field is required.'],
      'abilities.0': ['Unknown ability. Did you mean `leads:read`?'],
      'allowed_ips.0': ['Must be an address or a CIDR range such as 10.0.0.0/8.'],
      expires_in_days: ['Must be at most 365.'],
    })
    for (const expires_at of ['2026-03-01T09:30:00Z', '2027-03-01T09:30:00.001Z']) {
      expect((await server.admin.post('/tokens', { name: 'wrong', expires_at })).body.errors).toHaveProperty(
        'expires_at',
      )
    }
    expect(server.events()).toEqual([])
  })

  it('creates a token without expiry only for callers who may manage tokens', async () => {
    const ann = await someone(server, ['leads'])
    for (const never of [{ expires_at: null }, { expires_in_days: null }]) {
      expect((await ann.caller.post('/tokens', { name: 'for ever', ...never })).body).toMatchObject({
        status: 403,
        required: 'settings.user.tokens',
      })
      expect((await server.admin.post('/tokens', { name: 'for ever', ...never })).body.data.expires_at).toBeNull()
    }
    expect((await ann.caller.get('/tokens')).body.meta.total).toBe(1)
  })

  it('refuses the fifty-first token alive; expired ones do not count', async () => {
    for (let count = 1; count < 50; count++)
      await server.admin.post('/tokens', { name: `token ${count}`, expires_in_days: count === 1 ? 1 : 90 })
    expect((await server.admin.post('/tokens', { name: 'one too many' })).body).toMatchObject({
      status: 409,
      code: 'state_conflict',
    })
    server.clock.advanceMs(2 * 24 * 60 * 60 * 1000)
    expect((await server.admin.post('/tokens', { name: 'in time' })).status).toBe(201)
  })

  it('is refused from elsewhere than its addresses say', async () => {
    const { body } = await server.admin.post('/tokens', { name: 'elsewhere', allowed_ips: ['203.0.113.0/24'] })
    expect((await server.caller(body.data.token).get('/account')).status).toBe(401)
  })

  it('hands on the addresses of the calling token, and no wider ones', async () => {
    const { body } = await server.admin.post('/tokens', { name: 'at home', allowed_ips: ['127.0.0.0/8', 'fd00::/8'] })
    const home = server.caller(body.data.token)
    server.events()
    for (const sent of [{}, { allowed_ips: [] }]) {
      const { body } = await home.post('/tokens', { name: 'next', ...sent })
      expect(body.data.allowed_ips).toEqual(['127.0.0.0/8', 'fd00::/8'])
    }
    server.events()
    const wider = await home.post('/tokens', {
      name: 'wider',
      allowed_ips: ['127.0.0.1', '126.0.0.0/7', '10.0.0.1', 'fd00:1::/32', '127.1.0.0/16'],
    })
    expect([wider.status, Object.keys(wider.body.errors)]).toEqual([422, ['allowed_ips.1', 'allowed_ips.2']])
    expect(server.events()).toEqual([])
    const narrower = await home.post('/tokens', { name: 'narrower', allowed_ips: ['127.0.0.1', 'fd00:1::/32'] })
    expect(narrower.body.data.allowed_ips).toEqual(['127.0.0.1', 'fd00:1::/32'])
  })
})

describe('deleteToken', () => {
  it('ends the token at once, and no other', async () => {
    const { body } = await server.admin.post('/tokens', { name: 'short-lived' })
    const caller = server.caller(body.data.token)
    server.events()
    expect((await caller.get('/account')).status).toBe(200)
    expect((await server.admin.delete(`/tokens/${body.data.id}`)).body).toEqual({ message: 'Token revoked.' })
    expect(server.events()).toEqual(['user.token.delete.before', 'user.token.delete.after'])
    expect((await caller.get('/account')).status).toBe(401)
    expect((await server.admin.get('/account')).status).toBe(200)
  })

  it('answers 404 for a token of another user unless the caller may manage tokens', async () => {
    const [ann, bob] = [await someone(server, ['leads']), await someone(server, ['leads', 'settings.user.tokens'])]
    const id = (await ann.caller.get('/tokens')).body.data[0].id
    expect((await (await someone(server, ['leads'])).caller.delete(`/tokens/${id}`)).status).toBe(404)
    expect(server.events()).toEqual([])
    expect((await ann.caller.get('/account')).status).toBe(200)
    expect((await bob.caller.delete(`/tokens/${id}`)).status).toBe(200)
    expect((await ann.caller.get('/account')).status).toBe(401)
  })
  it('needs users:* besides the permission for a token of another user, and account:* alone for the own', async () => {
    const ann = await someone(server, ['leads'])
    const id = (await ann.caller.get('/tokens')).body.data[0].id
    const narrow = await server.as(1, ['account:*', 'settings:*'])
    const own = (await narrow.get('/tokens')).body.data[0].id
    server.events()
    for (const [reply, required] of [
      [await narrow.get(`/tokens?user_id=${ann.id}`), 'users:read'],
      [await narrow.get(`/tokens/${id}`), 'users:read'],
      [await narrow.delete(`/tokens/${id}`), 'users:write'],
    ] as const)
      expect(reply.body).toMatchObject({ status: 403, required })
    expect(server.events()).toEqual([])
    const manager = await server.as(1, ['account:*', 'users:*'])
    expect((await manager.get(`/tokens?user_id=${ann.id}`)).body.data).toMatchObject([{ id }])
    expect((await manager.get(`/tokens/${id}`)).status).toBe(200)
    expect((await narrow.delete(`/tokens/${own}`)).status).toBe(200)
    expect((await manager.delete(`/tokens/${id}`)).status).toBe(200)
  })
})

describe('a token that made another one', () => {
  type Body = { id: number; token: string; expires_at: string | null; parent_id: number | null }
  const mint = async (by: Caller, about: object = {}): Promise<Body> =>
    (await by.post('/tokens', { name: 'minted', ...about })).body.data
  const works = async (token: string): Promise<number> => (await server.caller(token).get('/account')).status
  const dayMs = 24 * 60 * 60 * 1000

  /** Creates a token, its child and its grandchild: each token creates the next. */
  async function line(about: object = {}) {
    const parent = await mint(server.admin, about)
    const child = await mint(server.caller(parent.token))
    const grandchild = await mint(server.caller(child.token))
    expect([child.parent_id, grandchild.parent_id]).toEqual([parent.id, child.id])
    server.events()
    return { parent, all: [parent, child, grandchild] }
  }
  const statuses = (all: readonly Body[]) => Promise.all(all.map(({ token }) => works(token)))

  it("limits its expiry to the token's own", async () => {
    const parent = await mint(server.admin, { expires_in_days: 1 })
    const caller = server.caller(parent.token)
    const later = '2026-03-20T00:00:00Z'
    for (const about of [{}, { expires_in_days: 365 }, { expires_at: later }, { expires_at: null }])
      expect((await mint(caller, about)).expires_at).toBe(parent.expires_at)
    expect((await mint(caller, { expires_at: '2026-03-01T10:00:00Z' })).expires_at).toBe('2026-03-01T10:00:00.000Z')
    const child = await mint(caller, { expires_in_days: 365 })
    server.clock.advanceMs(dayMs)
    expect(await works(child.token)).toBe(401)
  })

  it('takes all that came of it along when it is revoked, with a pair of events each', async () => {
    const { parent, all } = await line()
    expect(await statuses(all)).toEqual([200, 200, 200])
    expect((await server.admin.delete(`/tokens/${parent.id}`)).status).toBe(200)
    expect(server.events()).toEqual(['before', 'after'].flatMap((when) => Array(3).fill(`user.token.delete.${when}`)))
    expect(await statuses(all)).toEqual([401, 401, 401])
  })

  it.each([
    ['signs out', async ({ parent }: { parent: Body }) => server.caller(parent.token).post('/logout', {})],
    ['was not used for the configured days', async () => undefined],
  ])('takes them along when it %s', async (how, end) => {
    await server.close()
    server = await startServer({ config: { tokenIdleDays: 30 } })
    const { parent, all } = await line()
    if (how.startsWith('was not')) {
      server.clock.advanceMs(20 * dayMs)
      expect(await statuses(all.slice(1))).toEqual([200, 200])
      server.clock.advanceMs(20 * dayMs)
    } else await end({ parent })
    expect(await statuses(all)).toEqual([401, 401, 401])
  })

  it('takes them along when the password changes, and keeps itself', async () => {
    const ann = await someone(server, ['leads'])
    const child = await mint(ann.caller)
    const change = { password: 'another password', password_confirmation: 'another password' }
    const { status } = await ann.caller.put('/account', { ...change, current_password: password })
    expect([status, await works(child.token), (await ann.caller.get('/account')).status]).toEqual([200, 401, 200])
  })

  it('takes them along when its user is made inactive, for good', async () => {
    const ann = await someone(server, ['leads'])
    const child = await mint(ann.caller)
    await server.admin.put(`/settings/users/${ann.id}`, { is_active: false })
    await server.admin.put(`/settings/users/${ann.id}`, { is_active: true })
    expect(await works(child.token)).toBe(401)
  })

  it('is deleted a month after it expired, with the tokens it created', async () => {
    const { all } = await line({ expires_in_days: 1 })
    const count = async () =>
      (
        await server.store.db
          .selectFrom('tokens')
          .select('id')
          .where(
            'id',
            'in',
            all.map(({ id }) => id),
          )
          .execute()
      ).length
    expect(await count()).toBe(3)
    await server.tick()
    server.clock.advanceMs(40 * dayMs)
    await server.tick()
    await server.work()
    expect(await count()).toBe(0)
  })

  it('makes none with a call that came in before it was revoked, nor does a session that has ended', async () => {
    const parent = await mint(server.admin)
    const { services } = server.app
    const caller = { ...systemContext(services, 'api'), user: await signedInAs(server.store.db, 1) }
    const token = { id: parent.id, abilities: ['*'], allowedIps: [], expiresAt: parent.expires_at }
    await server.admin.delete(`/tokens/${parent.id}`)
    server.events()
    const input = { params: {}, query: {} as never, body: { name: 'late' } }
    for (const ctx of [
      { ...caller, token },
      { ...caller, session: { id: 99, csrf: '' } },
    ])
      await expect(handlers.createToken(ctx, input)).rejects.toMatchObject({ status: 401 })
    expect(server.events()).toEqual([])
  })

  it('ends them with its row, whichever way that goes', async () => {
    const { parent, all } = await line()
    await server.store.db.deleteFrom('tokens').where('id', '=', parent.id).execute()
    expect(await statuses(all)).toEqual([401, 401, 401])
  })
})

describe('a manager of tokens', () => {
  const keys = ['leads', 'settings.user.tokens']

  it('revokes none of a user whose role holds more, and lists it all the same', async () => {
    const bob = await someone(server, keys)
    const { id } = (await bob.caller.get('/tokens?user_id=1')).body.data[0]
    const refused = await bob.caller.delete(`/tokens/${id}`)
    expect(refused.body).toMatchObject({ status: 403, required: '*' })
    expect(server.events()).toEqual([])
    expect((await server.admin.get('/account')).status).toBe(200)
  })

  it('revokes none of a user who sees records beyond the own view', async () => {
    const [bob, ann] = [
      await someone(server, keys, { view_permission: 'group' }),
      await someone(server, keys, { view_permission: 'group' }),
    ]
    const make = given(server.admin)
    await make.group({ user_ids: [bob.id, ann.id] })
    const beyond = await make.group({ user_ids: [1, ann.id] })
    const { id } = (await bob.caller.get(`/tokens?user_id=${ann.id}`)).body.data[0]
    server.events()
    const revoked = () => bob.caller.delete(`/tokens/${id}`)
    expect((await revoked()).body).toMatchObject({ status: 403, required: 'view_permission=global' })
    expect(server.events()).toEqual([])
    await server.admin.put(`/settings/groups/${beyond.id}`, { user_ids: [1] })
    expect((await revoked()).status).toBe(200)
    expect((await ann.caller.get('/account')).status).toBe(401)
  })
})
