// Cookie sessions: the hosts that accept the cookie, the conditions for writes, expiry, and that
// ending a session in one process ends it in all processes.
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { openStore } from '../../db/store.ts'
import { identify } from '../../src/kernel/auth/sessions.ts'
import { systemContext } from '../../src/kernel/context.ts'
import { followEvents } from '../../src/resources/events/stream.ts'
import { adminPassword, type Caller, startServer, type TestServer, type testConfig } from '../support/app.ts'
import { isPostgres, openAt } from '../support/engine.ts'
import { useNewFolder } from '../support/folders.ts'
import { listeningServer } from '../support/listening.ts'
import { openPage, origin, type Page, signedInPage } from '../support/page.ts'
import { password, someone } from '../support/people.ts'
import { settle } from '../support/settle.ts'
import { readStream } from '../support/sse.ts'
import { useNewServers, useOne } from '../support/using.ts'

let server: TestServer
const restart = async (config: Partial<ReturnType<typeof testConfig>> = {}): Promise<void> => {
  await server?.close()
  server = await startServer({ config })
  await server.keep()
}
beforeAll(() => restart())
afterEach(() => server.rewind())
afterAll(() => server.close())

const hourMs = 60 * 60 * 1000
const credentials = { email: 'admin@example.com', password: adminPassword }
const sessions = () => server.store.db.selectFrom('sessions').selectAll().orderBy('id').execute()
const who = async (page: Page): Promise<number> => (await page.get('/session')).status

describe('cookies over https', () => {
  const https = { 'x-forwarded-proto': 'https', origin: 'https://localhost' }

  it('have names that no other host and no page without encryption can set, and are believed by no other name', async () => {
    await restart({ trustedProxies: ['127.0.0.1'] })
    const page = openPage(server)
    await page.get('/csrf-cookie', https)
    expect(page.set).toEqual([
      expect.stringMatching(/^__Host-XSRF-TOKEN=[\w-]{22}\.[0-9a-f]{64}; Path=\/; SameSite=Lax; Secure$/),
    ])
    expect((await page.post('/session', credentials, https)).status).toBe(200)
    expect(page.set).toEqual([
      expect.stringMatching(/^__Host-accord_session=[\w-]{43}; Path=\/; SameSite=Lax; HttpOnly; Secure$/),
      expect.stringMatching(/^__Host-XSRF-TOKEN=[0-9a-f]{64}; Path=\/; SameSite=Lax; Secure$/),
      expect.stringMatching(/^__Host-accord_device=[\w-]{43}; .*; HttpOnly; Secure$/),
    ])
    expect((await page.get('/session', https)).status).toBe(200)
    const own = page.jar.get('__Host-accord_session') ?? ''
    // A cookie without the prefix `__Host-` is refused, because another host of the domain could
    // have set it.
    expect((await page.get('/session', { ...https, cookie: `accord_session=${own}` })).status).toBe(401)
    const both = `accord_session=${'x'.repeat(43)}; __Host-accord_session=${own}`
    expect((await page.get('/session', { ...https, cookie: both })).status).toBe(200)
    expect((await page.call('DELETE', '/session', undefined, https)).status).toBe(200)
    expect(page.set.map((each) => each.split('=')[0])).toEqual(['__Host-accord_session', '__Host-XSRF-TOKEN'])
    expect([...page.jar.keys()]).toEqual(['__Host-accord_device'])
    await restart()
  })

  it('keep their plain names without it', async () => {
    const page = openPage(server)
    await page.get('/csrf-cookie')
    expect([...page.jar.keys()]).toEqual(['XSRF-TOKEN'])
  })
})

describe('getCsrfCookie', () => {
  it('sets a cookie that scripts can read, and answers nothing else', async () => {
    const page = openPage(server)
    const { status, text, headers } = await page.get('/csrf-cookie')
    expect([status, text, headers['cache-control']]).toEqual([204, '', 'no-store'])
    expect(page.set).toEqual([expect.stringMatching(/^XSRF-TOKEN=[\w-]{22}\.[0-9a-f]{64}; Path=\/; SameSite=Lax$/)])
  })

  it('gives each visitor another value for the login, and a session always the same', async () => {
    const [one, two] = [openPage(server), openPage(server)]
    await one.get('/csrf-cookie')
    await two.get('/csrf-cookie')
    expect(one.jar.get('XSRF-TOKEN')).not.toBe(two.jar.get('XSRF-TOKEN'))
    const page = await signedInPage(server)
    const own = page.jar.get('XSRF-TOKEN')
    await page.get('/csrf-cookie')
    expect(page.jar.get('XSRF-TOKEN')).toBe(own)
  })
})

describe('getCsrfCookie with a session', () => {
  it('sets no cookie for a foreign page, which would replace the value of ours', async () => {
    const page = await signedInPage(server)
    const own = page.jar.get('XSRF-TOKEN')
    for (const headers of [
      { origin: '', referer: 'https://evil.example/page' },
      { origin: 'https://evil.example' },
      { origin: 'null' },
    ]) {
      const { status, text } = await page.get('/csrf-cookie', headers)
      expect([status, text, page.set]).toEqual([204, '', []])
    }
    expect((await page.post('/sources', { name: 'Fair' })).status).toBe(201)
    expect(page.jar.get('XSRF-TOKEN')).toBe(own)
  })

  it('gives a page of ours whose session is over a value to sign in with', async () => {
    const page = await signedInPage(server)
    server.clock.advanceMs(9 * hourMs)
    await page.get('/csrf-cookie')
    expect(page.set).toEqual([expect.stringMatching(/^XSRF-TOKEN=[\w-]{22}\.[0-9a-f]{64};/)])
    expect((await page.post('/session', credentials)).status).toBe(200)
  })
})

describe('createSession', () => {
  it('signs in with a cookie that scripts cannot read, and stores nothing it could be made from', async () => {
    const page = await signedInPage(server)
    const [session = '', csrf = ''] = page.set
    expect(session).toMatch(/^accord_session=[\w-]{43}; Path=\/; SameSite=Lax; HttpOnly$/)
    expect(csrf).toMatch(/^XSRF-TOKEN=[0-9a-f]{64}; Path=\/; SameSite=Lax$/)
    for (const secret of page.jar.values()) expect((await server.store.image()).includes(secret)).toBe(false)
    const { status, body, headers } = await page.get('/session')
    expect([status, body.data.email, body.data.permissions, body.data.abilities]).toEqual([
      200,
      'admin@example.com',
      ['*'],
      ['*'],
    ])
    expect(headers['cache-control']).toBe('no-store')
    expect(server.events()).toEqual(['user.session.create.before', 'user.session.create.after'])
  })

  it('sets all cookies for encrypted connections only where the installation has one', async () => {
    const cookies = async (headers: Record<string, string>): Promise<string[]> => {
      const page = openPage(server)
      await page.get('/csrf-cookie', headers)
      const [first = ''] = page.set
      await page.post('/session', credentials, headers)
      return [first, ...page.set].map((each) => String(each.endsWith('; Secure')))
    }
    const https = { 'x-forwarded-proto': 'https' }
    expect(await cookies(https)).toEqual(['false', 'false', 'false', 'false'])
    await restart({ trustedProxies: ['127.0.0.1'] })
    expect(await cookies({ ...https, origin: 'https://localhost' })).toEqual(['true', 'true', 'true', 'true'])
    await restart({ appUrl: 'https://crm.example' })
    expect(await cookies({ origin: 'https://crm.example' })).toEqual(['true', 'true', 'true', 'true'])
    await restart()
  })

  it('answers 403 without the header, with that of another page, and with a cookie that is not of this server', async () => {
    const [page, other] = [openPage(server), openPage(server)]
    await other.get('/csrf-cookie')
    const strange = other.jar.get('XSRF-TOKEN') ?? ''
    for (const prepare of [
      async () => page.post('/session', credentials),
      async () => page.post('/session', credentials, { 'x-xsrf-token': strange }),
      async () => {
        await page.get('/csrf-cookie')
        return page.post('/session', credentials, { 'x-xsrf-token': '' })
      },
      async () => page.post('/session', credentials, { 'x-xsrf-token': strange }),
      async () => page.post('/session', credentials, { origin: 'null' }),
      async () => {
        page.jar.set('XSRF-TOKEN', `${'a'.repeat(22)}.${'b'.repeat(64)}`)
        return page.post('/session', credentials)
      },
    ]) {
      const { status, body } = await prepare()
      expect([status, body.code]).toEqual([403, 'csrf_mismatch'])
    }
    expect(await sessions()).toEqual([])
    expect(page.jar.has('accord_session')).toBe(false)
  })

  it('takes the value in either header', async () => {
    const page = openPage(server)
    await page.get('/csrf-cookie')
    const value = page.jar.get('XSRF-TOKEN') ?? ''
    const { status } = await page.post('/session', credentials, { 'x-xsrf-token': '', 'x-csrf-token': value })
    expect(status).toBe(200)
  })

  it('fails as login does: for wrong credentials, an inactive account, another host, and too many guesses', async () => {
    const ann = await someone(server, ['leads'], { is_active: false })
    const page = openPage(server)
    await page.get('/csrf-cookie')
    const codes = async (body: object, headers = {}) => (await page.post('/session', body, headers)).body.code
    expect(await codes({ ...credentials, password: 'a guess' })).toBe('invalid_credentials')
    expect(await codes({ email: 'unknown@example.com', password: 'a guess' })).toBe('invalid_credentials')
    expect(await codes({ email: ann.email, password })).toBe('account_inactive')
    expect(await codes(credentials, { origin: 'https://evil.example' })).toBe('stateful_domain_mismatch')
    for (let tries = 0; tries < 4; tries++) await codes({ ...credentials, password: 'a guess' })
    expect(await codes(credentials)).toBe('rate_limited')
    expect(await sessions()).toEqual([])
    expect(page.jar.has('accord_session')).toBe(false)
  })

  it('gives a new session to a user who signs in again, and ends the old one', async () => {
    const page = await signedInPage(server)
    const first = page.jar.get('accord_session') ?? ''
    await page.post('/session', credentials)
    expect(page.jar.get('accord_session')).not.toBe(first)
    expect(await who(page)).toBe(200)
    page.jar.set('accord_session', first)
    expect(await who(page)).toBe(401)
    expect(await sessions()).toHaveLength(1)
  })

  it('lets a user have fifty, and ends the one used least recently for another', async () => {
    const first = await signedInPage(server)
    server.clock.advanceMs(1000)
    const { id: _, ...like } = (await sessions())[0] ?? { id: 0 }
    const at = server.clock.now().toISOString()
    const more = Array.from({ length: 49 }, (_each, index) => ({ ...like, secret_hash: `${index}`, last_used_at: at }))
    await server.store.db
      .insertInto('sessions')
      .values(more as never)
      .execute()
    expect(await who(first)).toBe(200)
    await signedInPage(server)
    expect([(await sessions()).length, await who(first)]).toEqual([50, 401])
  })
})

describe('a session', () => {
  it('reads without, and writes with the value of its cookie, and no other session can lend it one', async () => {
    const [page, other] = [await signedInPage(server), await signedInPage(server)]
    expect((await page.get('/leads')).status).toBe(200)
    server.events()
    const wrong = ['', 'x', other.jar.get('XSRF-TOKEN') ?? '', `${page.jar.get('XSRF-TOKEN')}x`]
    for (const value of wrong) {
      const { status, body } = await page.post('/sources', { name: 'Forged' }, { 'x-xsrf-token': value })
      expect([status, body.code]).toEqual([403, 'csrf_mismatch'])
    }
    // A CSRF cookie that another host has set is not accepted.
    const own = page.jar.get('XSRF-TOKEN') ?? ''
    page.jar.set('XSRF-TOKEN', 'planted')
    expect((await page.post('/sources', { name: 'Forged' })).status).toBe(403)
    expect(server.events()).toEqual([])
    expect((await page.post('/sources', { name: 'Own' }, { 'x-xsrf-token': own })).status).toBe(201)
    const [before, after] = server.seen
    expect([before?.origin, before?.actor.id, before?.tokenId, after?.origin]).toEqual(['session', 1, null, 'session'])
  })

  it('needs its CSRF value before permissions are checked', async () => {
    const ann = await someone(server, [])
    const page = await signedInPage(server, { email: ann.email, password })
    const codes = async (headers = {}) => (await page.post('/sources', { name: 'a' }, headers)).body.code
    expect([await codes({ 'x-xsrf-token': '' }), await codes()]).toEqual(['csrf_mismatch', 'forbidden'])
  })

  it.each([
    ['of this host', { origin: '' }, 200],
    ['of a listed page', { origin }, 200],
    ['of a page that is not listed', { origin: 'http://localhost:3000' }, 401],
    ['of another host', { origin: 'https://evil.example' }, 401],
    ['of a page that hides where it is from', { origin: 'null' }, 401],
    ['of one that hides it behind a good referer', { origin: 'null', referer: `${origin}/x` }, 401],
    ['by a referer of this host', { origin: '', referer: `${origin}/x` }, 200],
    ['by a referer of another host', { origin: '', referer: 'https://evil.example/x' }, 401],
    ['to a name that is not ours', { origin: '', host: 'evil.example' }, 401],
  ])('is believed %s: %j answers %d', async (_what, headers, status) => {
    const page = await signedInPage(server)
    expect((await page.get('/session', headers)).status).toBe(status)
  })

  it('is not looked at where a bearer token is sent, and stays behind any other kind of authorization', async () => {
    const page = await signedInPage(server)
    expect((await page.get('/session', { authorization: 'Bearer nonsense' })).status).toBe(401)
    expect((await page.get('/session', { authorization: 'Basic YTpi' })).status).toBe(200)
    const authorization = `Bearer ${server.admin.token}`
    expect((await page.post('/sources', { name: 'By token' }, { authorization, 'x-xsrf-token': '' })).status).toBe(201)
    expect(server.seen.at(-1)?.origin).toBe('api')
  })

  it('is none when there are two of its name, or something else than a secret', async () => {
    const page = await signedInPage(server)
    const own = page.jar.get('accord_session') ?? ''
    const cookies = [`accord_session=x; accord_session=${own}`, 'accord_session=', `accord_session=${own}x`, '=;;;']
    for (const cookie of cookies) expect((await page.get('/session', { cookie })).status).toBe(401)
    expect((await page.get('/session', { cookie: `a=b; accord_session=${own};c` })).status).toBe(200)
  })

  it('ends after eight hours without a call, and after twenty-four with', async () => {
    const page = await signedInPage(server)
    for (const hours of [7, 7, 7]) {
      server.clock.advanceMs(hours * hourMs)
      expect(await who(page)).toBe(200)
      await settle(server)
    }
    server.clock.advanceMs(3 * hourMs - 1)
    expect(await who(page)).toBe(200)
    server.clock.advanceMs(1)
    expect(await who(page)).toBe(401)
    const idle = await signedInPage(server)
    server.clock.advanceMs(8 * hourMs)
    expect(await who(idle)).toBe(401)
  })

  it('that is remembered ends after thirty days, used or not', async () => {
    const page = await signedInPage(server, { remember: true })
    expect(page.set[0]).toContain('; Max-Age=2592000; HttpOnly')
    server.clock.advanceMs(30 * 24 * hourMs - 1)
    expect(await who(page)).toBe(200)
    server.clock.advanceMs(1)
    expect(await who(page)).toBe(401)
  })

  it('has its use written down at most once a minute', async () => {
    const page = await signedInPage(server)
    const seen: (string | undefined)[] = []
    for (const ms of [30_000, 31_000, 30_000]) {
      server.clock.advanceMs(ms)
      await who(page)
      await settle(server)
      seen.push((await sessions())[0]?.last_used_at)
    }
    expect(seen).toEqual(['2026-03-01T09:30:00.000Z', '2026-03-01T09:31:01.000Z', '2026-03-01T09:31:01.000Z'])
  })

  it('that is over gets the login page, or a problem when it asks for JSON', async () => {
    const page = await signedInPage(server)
    server.clock.advanceMs(8 * hourMs)
    const html = await page.get('/leads', { accept: 'text/html', origin: '' })
    expect([html.status, html.headers['www-authenticate'], html.headers['content-type']]).toEqual([
      401,
      'Bearer',
      'text/html; charset=utf-8',
    ])
    expect((await page.get('/leads')).body.code).toBe('unauthenticated')
    await server.tick()
    server.clock.set('2026-03-03T03:30:00.000Z')
    await server.tick()
    await server.work()
    expect(await sessions()).toEqual([])
  })

  it('makes a personal token that does what it says', async () => {
    const page = await signedInPage(server)
    const made = await page.post('/tokens', { name: 'from a page', abilities: ['leads:read'] })
    expect([made.status, made.body.data.kind, made.body.data.abilities]).toEqual([201, 'personal', ['leads:read']])
    const caller = server.caller(made.body.data.token)
    expect([(await caller.get('/leads')).status, (await caller.get('/account')).status]).toEqual([200, 403])
  })

  it('has idempotency keys of its own, and no cookie is ever kept under one', async () => {
    const [page, other] = [await signedInPage(server), await signedInPage(server)]
    const key = { 'idempotency-key': 'the same' }
    const first = await page.post('/sources', { name: 'Once' }, key)
    const again = await page.post('/sources', { name: 'Once' }, key)
    expect([again.text, again.headers['idempotency-replayed']]).toEqual([first.text, 'true'])
    expect((await other.post('/sources', { name: 'Of another' }, key)).status).toBe(201)
    expect((await server.admin.post('/sources', { name: 'By token' }, { headers: key })).status).toBe(201)
    const rows = () => server.store.db.selectFrom('idempotency_keys').select(['token_id', 'headers']).execute()
    expect((await rows()).filter(({ token_id }) => token_id === null)).toHaveLength(2)
    expect(await rows()).toHaveLength(3)
    expect(JSON.stringify(await rows())).not.toMatch(/cookie/i)
    await page.post('/logout', {}, { 'idempotency-key': 'leaving' })
    expect(page.set).toHaveLength(2)
    expect(await rows()).toHaveLength(2)
  })
})

describe('deleteSession', () => {
  it('ends the calling session, takes its cookies away, and leaves others', async () => {
    const [page, other] = [await signedInPage(server), await signedInPage(server)]
    const before = new Map(page.jar)
    expect((await page.call('DELETE', '/session', undefined, { 'accord-dry-run': 'true' })).status).toBe(200)
    expect([page.set, await who(page)]).toEqual([[], 200])
    expect((await page.call('DELETE', '/session', undefined, { 'x-xsrf-token': '' })).status).toBe(403)
    const { status, body } = await page.call('DELETE', '/session')
    expect([status, body]).toEqual([200, { message: 'Signed out.' }])
    expect(page.set).toEqual([
      'accord_session=; Path=/; SameSite=Lax; Max-Age=0; HttpOnly',
      'XSRF-TOKEN=; Path=/; SameSite=Lax; Max-Age=0',
    ])
    for (const [name, value] of before) page.jar.set(name, value)
    expect([await who(page), await who(other)]).toEqual([401, 200])
    expect(server.events().slice(4)).toEqual(['user.session.delete.before', 'user.session.delete.after'])
  })

  it('answers 409 to a token, which has no session', async () => {
    const { status, body } = await server.admin.delete('/session')
    expect([status, body.code]).toEqual([409, 'state_conflict'])
    expect((await server.admin.get('/session')).body.data.id).toBe(1)
  })
})

describe('logout in a session', () => {
  it('ends the session and no token', async () => {
    const [page, other] = [await signedInPage(server), await signedInPage(server)]
    expect((await page.post('/logout')).body).toEqual({ message: 'Signed out.' })
    expect([page.jar.has('accord_session'), await who(other), (await server.admin.get('/account')).status]).toEqual([
      false,
      200,
      200,
    ])
    expect(await sessions()).toHaveLength(1)
  })

  it('ends every token and session of the user when asked to, and none of others', async () => {
    const ann = await someone(server, [])
    const [page, other] = [await signedInPage(server), await signedInPage(server)]
    const hers = await signedInPage(server, { email: ann.email, password })
    server.events()
    await page.post('/logout', { all: true })
    expect(server.events()).toEqual([
      'user.token.delete.before',
      'user.session.delete.before',
      'user.session.delete.before',
      'user.token.delete.after',
      'user.session.delete.after',
      'user.session.delete.after',
    ])
    expect([await who(other), (await server.admin.get('/account')).status]).toEqual([401, 401])
    expect([await who(hers), (await ann.caller.get('/account')).status]).toEqual([200, 200])
    await ann.caller.post('/logout', { all: true })
    expect(await who(hers)).toBe(401)
  })
})

describe('a new password', () => {
  it('of the own account ends all tokens and sessions but the calling one', async () => {
    const [page, other] = [await signedInPage(server), await signedInPage(server)]
    const fresh = 'quite another password'
    const body = { current_password: adminPassword, password: fresh, password_confirmation: fresh }
    expect((await page.call('PUT', '/account', body)).status).toBe(200)
    expect([await who(page), await who(other), (await server.admin.get('/account')).status]).toEqual([200, 401, 401])
  })

  it.each([
    ['set by an administrator', { password: 'another password', password_confirmation: 'another password' }],
    ['or an end of the account', { is_active: false }],
  ])('%s ends the sessions of the user', async (_what, changes) => {
    const ann = await someone(server, ['leads'])
    const [hers, page] = [await signedInPage(server, { email: ann.email, password }), await signedInPage(server)]
    expect((await page.call('PUT', `/settings/users/${ann.id}`, changes)).status).toBe(200)
    expect([await who(hers), await who(page)]).toEqual([401, 200])
    expect(await sessions()).toHaveLength(1)
  })
})

// Uses an SQLite file. test/postgres/processes.test.ts tests processes on PostgreSQL.
describe.runIf(!isPostgres)('in two processes on one database', () => {
  const folder = useNewFolder('two')
  const file = join(folder, 'accord.db')
  const here = useNewServers({ open: openAt(file) })
  const there = useNewServers({ open: () => openStore(`sqlite:${file}`) })

  it('what ends a token or session, or changes what its user may, counts at the next call', async () => {
    const ann = await someone(here, ['leads', 'leads.view'])
    const status = async (caller: Caller | Page, path = '/leads') => (await caller.get(path)).status
    const elsewhere = there.caller(ann.caller.token)
    const signIn = (email: string, secret = password) => signedInPage(there, { email, password: secret })
    expect(await status(elsewhere)).toBe(200)

    const role = (permissions: string[]) => here.admin.put(`/settings/roles/${ann.roleId}`, { permissions })
    await role([])
    expect(await status(elsewhere)).toBe(403)
    await role(['leads', 'leads.view'])
    expect(await status(elsewhere)).toBe(200)
    const person = { name: 'Owner', emails: [{ value: 'owner@example.com' }] }
    await here.admin.post('/leads', { title: 'Of another', lead_value: 1, person, user_id: 1 })
    const seen = async () => (await elsewhere.get('/leads')).body.meta.total
    expect(await seen()).toBe(1)
    await here.admin.put(`/settings/users/${ann.id}`, { view_permission: 'individual' })
    expect(await seen()).toBe(0)

    await here.admin.delete(`/tokens/${ann.caller.token?.split('|')[0]}`)
    expect(await status(elsewhere)).toBe(401)

    // A session works in all processes, and ending it in one process ends it in all.
    const page = await signIn(ann.email)
    const mirror = openPage(here)
    for (const [name, value] of page.jar) mirror.jar.set(name, value)
    expect([await who(page), await who(mirror)]).toEqual([200, 200])
    expect((await mirror.call('DELETE', '/session')).status).toBe(200)
    expect(await who(page)).toBe(401)

    const [kept, token] = [await signIn(ann.email), there.caller((await here.as(ann.id)).token)]
    expect([await who(kept), await status(token)]).toEqual([200, 200])
    await here.admin.put(`/settings/users/${ann.id}`, {
      password: 'a new one here',
      password_confirmation: 'a new one here',
    })
    expect([await who(kept), await status(token)]).toEqual([401, 401])

    const last = await signIn(ann.email, 'a new one here')
    await here.admin.put(`/settings/users/${ann.id}`, { is_active: false })
    expect(await who(last)).toBe(401)
  })
})

describe('a stream of events that a session follows', () => {
  const listening = useOne(listeningServer)

  it('ends with the session, and counts by session', async () => {
    const injected = { inject: (request: object) => listening.app.http.inject(request) }
    const pages = [await signedInPage(injected), await signedInPage(injected)]
    const follow = ({ jar }: Page) =>
      readStream(`${listening.url}/api/admin/events?entity_type=sources`, '', {
        authorization: '',
        cookie: `accord_session=${jar.get('accord_session')}`,
      })
    const [one, two] = pages as [Page, Page]
    const five = await Promise.all([1, 2, 3, 4, 5].map(() => follow(one)))
    expect(five.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200])
    expect((await follow(one)).status).toBe(429)
    const other = await follow(two)
    expect(other.status).toBe(200)
    await one.call('DELETE', '/session')
    await two.post('/sources', { name: 'Something happens' })
    await Promise.all(five.map(({ ended }) => ended))
    expect((await other.until(1))[0]?.data.after.name).toBe('Something happens')
    expect(five.flatMap(({ told }) => told)).toEqual([])
    other.cut()
  })

  it('ends at the next sign of life when the session is over, which following it does not put off', async () => {
    const { services } = server.app
    const { jar } = await signedInPage(server)
    const headers = { cookie: `accord_session=${jar.get('accord_session')}` }
    const who = await identify(services, { headers, ip: '127.0.0.1', requestOrigin: origin })
    const ctx = { ...systemContext(services, 'session'), ...who, headers, requestOrigin: origin }
    const { id } = await server.store.db.selectFrom('events').select('id').executeTakeFirstOrThrow()
    const { body } = followEvents(ctx, [], id, { beatMs: 10, lookMs: 10 }).parts
    const stream = (body as AsyncIterable<string>)[Symbol.asyncIterator]()
    const next = async () => (await stream.next()).value
    expect([await next(), await next()]).toEqual([`retry: 2000\nid: ${id}\n\n`, `: still here\nid: ${id}\n\n`])
    server.clock.advanceMs(7 * hourMs)
    expect(await next()).toBe(`: still here\nid: ${id}\n\n`)
    server.clock.advanceMs(hourMs)
    expect((await stream.next()).done).toBe(true)
  })
})
