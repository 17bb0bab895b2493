// What tokens promise beyond what the contract walkers check: no token makes a greater one, no secret is shown twice.
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { startServer, type TestServer } from '../support/app.ts'
import { someone } from '../support/people.ts'

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

  it('answers the tokens of users in sight to whoever may manage tokens, when asked', async () => {
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
  it('answers 404 for a token of somebody else, as if it did not exist', async () => {
    const ann = await someone(server, ['leads'])
    expect((await ann.caller.get('/tokens/1')).status).toBe(404)
    const { body, text } = await server.admin.get('/tokens/1')
    expect(body.data).toMatchObject({ id: 1, user_id: 1, abilities: ['*'] })
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
    for (const expires_at of ['2026-03-01T09:30:00Z', '2027-03-01T09:30:00.001Z']) {
      expect((await server.admin.post('/tokens', { name: 'wrong', expires_at })).body.errors).toHaveProperty(
        'expires_at',
      )
    }
    expect(server.events()).toEqual([])
  })

  it('creates a token that never expires only for whoever may manage tokens', async () => {
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

  it('answers 404 for a token of somebody else unless the caller may manage tokens', async () => {
    const [ann, bob] = [await someone(server, ['leads']), await someone(server, ['settings.user.tokens'])]
    const id = (await ann.caller.get('/tokens')).body.data[0].id
    expect((await (await someone(server, ['leads'])).caller.delete(`/tokens/${id}`)).status).toBe(404)
    expect(server.events()).toEqual([])
    expect((await ann.caller.get('/account')).status).toBe(200)
    expect((await bob.caller.delete(`/tokens/${id}`)).status).toBe(200)
    expect((await ann.caller.get('/account')).status).toBe(401)
  })
})
