// Rules of signing in and out that the generated contract tests do not check.
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { isStatefulHost } from '../../src/kernel/auth/stateful-domains.ts'
import { adminPassword, startServer, type TestServer, type testConfig } from '../support/app.ts'
import { password, someone } from '../support/people.ts'

let server: TestServer
beforeEach(async () => {
  server = await startServer()
})
afterEach(() => server.close())

const credentials = { email: 'admin@example.com', password: adminPassword, device_name: 'laptop' }
const login = (changes: object = {}, headers: Record<string, string> = {}) =>
  server.anonymous.post('/login', { ...credentials, ...changes }, { headers })

async function restart(config: Partial<ReturnType<typeof testConfig>>): Promise<void> {
  await server.close()
  server = await startServer({ config })
}

describe('login', () => {
  it('cannot be tried, because a dry run would answer with a token that does not work', async () => {
    const { status, body } = await login({}, { 'accord-dry-run': 'true' })
    expect([status, Object.keys(body.errors)]).toEqual([422, ['header.Accord-Dry-Run']])
    expect((await login({}, { 'accord-dry-run': 'false' })).status).toBe(200)
  })

  it('issues a bearer token that works, named after the device, for a year', async () => {
    const { status, body } = await login({ email: ' ADMIN@example.com ' })
    expect(status).toBe(200)
    expect(body).toMatchObject({
      data: { id: 1, name: 'Example Admin', email: 'admin@example.com' },
      meta: { abilities: ['*'], expires_at: '2027-03-01T09:30:00.000Z' },
      message: 'Signed in.',
    })
    const caller = server.caller(body.data.token)
    expect((await caller.get(`/tokens/${body.meta.token_id}`)).body.data).toMatchObject({
      name: 'laptop',
      kind: 'login',
    })
    expect(JSON.stringify(server.seen)).not.toContain(body.data.token.split('|')[1])
    expect(JSON.stringify(server.seen)).not.toContain(adminPassword)
    expect(server.seen.map(({ actor }) => actor.id)).toEqual([1, 1])
    expect(server.events()).toEqual(['user.token.create.before', 'user.token.create.after'])
    expect((await server.admin.get('/account')).status).toBe(200)
  })

  it.each([
    ['curl/8.5.0', 'curl/8.5.0'],
    [' ', 'API'],
    ['x'.repeat(300), 'x'.repeat(100)],
  ])('without a device name calls the token by the program that signs in: %s', async (agent, name) => {
    const { status, body } = await login({ device_name: undefined }, { 'user-agent': agent })
    expect([status, (await server.admin.get(`/tokens/${body.meta.token_id}`)).body.data.name]).toEqual([200, name])
  })

  it('takes form fields too', async () => {
    const form = new URLSearchParams(credentials).toString()
    const { status } = await server.anonymous.post('/login', form, {
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
    })
    expect(status).toBe(200)
  })

  it('answers the same to a wrong password and to an unknown address, and issues nothing', async () => {
    const wrong = await login({ password: 'a wrong password' })
    const unknown = await login({ email: 'unknown@example.com' })
    for (const { status, body } of [wrong, unknown]) {
      expect(status).toBe(401)
      expect(body).toMatchObject({
        code: 'invalid_credentials',
        errors: { email: ['These credentials do not match our records.'] },
      })
    }
    expect(server.events()).toEqual(['user.session.failed', 'user.session.failed'])
    expect((await server.admin.get('/tokens')).body.meta.total).toBe(1)
  })

  it('reveals that an account is inactive only with the right password', async () => {
    const ann = await someone(server, ['leads'], { is_active: false })
    expect((await login({ email: ann.email, password: 'a wrong password' })).body.code).toBe('invalid_credentials')
    expect((await login({ email: ann.email, password })).body).toMatchObject({ status: 401, code: 'account_inactive' })
    expect(server.events()).toEqual(['user.session.failed'])
  })

  it('accepts no password for an account without one', async () => {
    const ann = await someone(server, ['leads'], { password: undefined, password_confirmation: undefined })
    expect((await login({ email: ann.email, password })).body.code).toBe('invalid_credentials')
  })

  it('answers 429 after five failures for an account, until the minute is over, and never to others', async () => {
    const ann = await someone(server, ['leads'])
    for (let tries = 0; tries < 5; tries++) expect((await login({ password: 'a guess' })).status).toBe(401)
    const blocked = await login()
    expect(blocked.status).toBe(429)
    expect(blocked.headers['retry-after']).toBe('60')
    expect((await login({ email: ann.email, password })).status).toBe(200)
    server.clock.advanceMs(60_001)
    expect((await login()).status).toBe(200)
  })

  it('counts anew after a success', async () => {
    for (const guess of ['1', '2', '3', '4', adminPassword, '5', '6', '7', '8']) await login({ password: guess })
    expect((await login()).status).toBe(200)
  })

  it('answers 429 after twenty failures from one address, whatever the accounts', async () => {
    for (let tries = 0; tries < 20; tries++)
      expect((await login({ email: `user${tries}@example.com` })).status).toBe(401)
    expect((await login()).status).toBe(429)
    const elsewhere = await server.inject({
      method: 'POST',
      url: '/api/admin/login',
      remoteAddress: '203.0.113.9',
      payload: credentials,
    })
    expect(elsewhere.statusCode).toBe(200)
  })

  it('takes the addresses of one network of IPv6 for one', async () => {
    const from = async (remoteAddress: string, word: string, email = credentials.email) => {
      const payload = { ...credentials, email, password: word }
      return (await server.inject({ method: 'POST', url: '/api/admin/login', remoteAddress, payload })).statusCode
    }
    for (let tries = 0; tries < 5; tries++) expect(await from(`2001:db8:0:1:${tries}::1`, 'a guess')).toBe(401)
    expect(await from('2001:db8:0:1:ffff::', adminPassword)).toBe(429)
    expect(await from('2001:db8:0:2::1', 'a guess')).toBe(401)
    // A successful sign-in resets the count of the network.
    for (let tries = 0; tries < 3; tries++) expect(await from(`2001:db8:0:2:${tries}::`, 'a guess')).toBe(401)
    for (const word of [adminPassword, 'a guess', adminPassword])
      expect(await from('2001:db8:0:2:7::', word)).toBe(word === adminPassword ? 200 : 401)
  })

  it('gives many guesses at once no more tries than one after another', async () => {
    const guesses = Array.from({ length: 30 }, (_, index) => (index === 29 ? adminPassword : `guess ${index}`))
    const answers = await Promise.all(guesses.map((guess) => login({ password: guess })))
    expect(answers.at(-1)?.status).toBe(429)
    expect(answers.filter(({ status }) => status === 401).length).toBeLessThan(20)
    expect(server.events()).toEqual(['user.session.failed'])
  })

  it('lets many people with the right password in at once', async () => {
    const answers = await Promise.all(Array.from({ length: 12 }, () => login()))
    expect(answers.map(({ status }) => status)).toEqual(Array(12).fill(200))
  })

  it('revokes the login token used least recently beyond fifty, and no personal one', async () => {
    await server.admin.get('/account')
    const first = (await login()).body.data.token
    const second = (await login()).body.data.token
    server.clock.advanceMs(60_000)
    await server.caller(first).get('/account')
    for (let count = 0; count < 48; count++) await login()
    server.events()
    // 50 login tokens and the personal token of the test.
    expect((await server.admin.get('/tokens')).body.meta.total).toBe(51)
    expect((await login()).status).toBe(200)
    expect(server.events()).toEqual([
      'user.token.create.before',
      'user.token.delete.before',
      'user.token.create.after',
      'user.token.delete.after',
    ])
    expect((await server.caller(second).get('/account')).status).toBe(401)
    expect((await server.caller(first).get('/account')).status).toBe(200)
    expect((await server.admin.get('/account')).status).toBe(200)
  })

  it('takes no place of personal tokens, and those none of its', async () => {
    const personal = async () => (await server.admin.post('/tokens', { name: 'script' })).status
    for (let count = 0; count < 50; count++) await login()
    for (let count = 1; count < 50; count++) expect(await personal()).toBe(201)
    expect(await personal()).toBe(409)
    const last = (await login()).body.data.token
    const counts = await Promise.all(
      ['login', 'personal'].map(async (kind) => (await server.admin.get(`/tokens?kind=${kind}`)).body.meta.total),
    )
    expect(counts).toEqual([50, 50])
    expect((await server.caller(last).get('/account')).status).toBe(200)
  })

  it('renews a hash made with other parameters', async () => {
    const hash = () =>
      server.store.db
        .selectFrom('users')
        .select(['password_hash', 'version'])
        .where('id', '=', 1)
        .executeTakeFirstOrThrow()
    const before = await hash()
    await login()
    expect(await hash()).toEqual(before)
    server.app.services.config.passwordMemoryKiB = 2048
    await login()
    const after = await hash()
    expect(after.password_hash).toContain('m=2048')
    expect(after.version).toBe(before.version)
    expect((await login()).status).toBe(200)
  })

  it('lets two in at once while their hash is renewed', async () => {
    server.app.services.config.passwordMemoryKiB = 2048
    const answers = await Promise.all([login(), login(), login({ password: 'a guess' })])
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 401])
    const { password_hash: kept } = await server.store.db
      .selectFrom('users')
      .select('password_hash')
      .where('id', '=', 1)
      .executeTakeFirstOrThrow()
    expect(kept).toContain('m=2048')
    expect((await login()).status).toBe(200)
  })

  it('issues tokens that never expire when so configured', async () => {
    await restart({ tokenTtlDays: 0 })
    expect((await login()).body.meta.expires_at).toBeNull()
  })

  it('refuses hosts that are not listed, whatever the credentials, but reports missing fields first', async () => {
    const origin = { origin: 'https://evil.example' }
    const refused = await login({}, origin)
    expect(refused.status).toBe(401)
    expect(refused.body).toMatchObject({ code: 'stateful_domain_mismatch', errors: { email: [expect.any(String)] } })
    expect((await login({ password: 'a guess' }, origin)).body.code).toBe('stateful_domain_mismatch')
    expect((await login({ password: undefined }, origin)).status).toBe(422)
    expect((await login({}, { origin: 'http://localhost' })).status).toBe(200)
    expect((await login({}, { host: 'crm.example' })).status).toBe(401)
  })

  it('names the refused host and the setting in the reply and in the log, but not the allowed hosts', async () => {
    const lines: string[] = []
    await server.close()
    server = await startServer({ lines: { write: (line) => void lines.push(line) } })
    const told = () =>
      lines
        .splice(0)
        .map((line) => JSON.parse(line))
        .filter(({ level }) => level === 40)
    for (const [headers, host] of [
      [{ origin: 'https://CRM.example:8443' }, 'crm.example:8443'],
      [{ host: '192.168.1.5:8000' }, '192.168.1.5:8000'],
      [{ host: '[fd00::5]:8000' }, '[fd00::5]:8000'],
    ] as const) {
      const { body } = await login({}, headers)
      const sentence = `Signing in from ${host} is not allowed. Add ${host} to ACCORD_STATEFUL_DOMAINS, or sign in from a host that it lists.`
      expect(body).toMatchObject({ status: 401, detail: sentence, message: sentence, errors: { email: [sentence] } })
      expect(told()).toEqual([
        expect.objectContaining({
          msg: expect.stringContaining(`ACCORD_STATEFUL_DOMAINS lacks ${host}, so a sign-in from there was refused.`),
          listed: expect.arrayContaining(['localhost', '127.0.0.1:8000']),
        }),
      ])
    }
    const { body } = await login({}, { origin: 'nonsense' })
    expect(body.detail).toContain('its Origin or Referer header names no host')
    expect(told()).toHaveLength(1)
  })

  it('believes a forwarded host only from a trusted proxy, and no external URL in its place', async () => {
    const forwarded = { host: 'crm.example', 'x-forwarded-host': 'localhost' }
    expect((await login({}, forwarded)).body.code).toBe('stateful_domain_mismatch')
    await restart({ trustedProxies: ['127.0.0.1'] })
    expect((await login({}, forwarded)).status).toBe(200)
    await restart({ appUrl: 'https://crm.example' })
    expect((await login({}, { host: 'evil.example' })).body.code).toBe('stateful_domain_mismatch')
    expect((await login({}, { origin: 'https://crm.example' })).status).toBe(200)
  })
})

describe('isStateful', () => {
  const from = (origin: string | undefined, domains: string[], referer?: string) =>
    isStatefulHost({ origin, referer, requestOrigin: 'http://localhost:8000' }, domains)

  it('looks at Origin, then at Referer, then at the host itself', () => {
    expect(from('https://a.example', ['a.example'], 'https://b.example/x')).toBe(true)
    expect(from('https://a.example', ['b.example'], 'https://b.example/x')).toBe(false)
    expect(from(undefined, ['b.example'], 'https://b.example/x')).toBe(true)
    expect(from('null', ['b.example'], 'https://b.example/x')).toBe(true)
    expect(from(undefined, ['localhost:8000'])).toBe(true)
    expect(from('null', ['localhost:8000'])).toBe(true)
  })

  it('takes the port seriously, but for the default one of the scheme', () => {
    expect(from('http://localhost:3000', ['localhost'])).toBe(false)
    expect(from('http://localhost', ['localhost:3000'])).toBe(false)
    expect(from('https://a.example:443', ['a.example'])).toBe(true)
    expect(from('https://a.example', ['a.example:443'])).toBe(true)
    expect(from('http://a.example', ['a.example:443'])).toBe(false)
    expect(from('http://a.example:443', ['a.example'])).toBe(false)
  })

  it('compares in lower case, and IPv6 in brackets', () => {
    expect(from('https://A.Example', ['a.EXAMPLE'])).toBe(true)
    expect(from('http://[::1]:8000', ['[::1]:8000'])).toBe(true)
    expect(from('http://[::1]', ['[::1]'])).toBe(true)
  })

  it('reads * as one or more characters and every other character as itself', () => {
    expect(from('https://x.a.example', ['*.a.example'])).toBe(true)
    expect(from('https://a.example', ['*.a.example'])).toBe(false)
    expect(from('https://.a.example.evil', ['*.a.example'])).toBe(false)
    expect(from('https://axexample', ['a.example'])).toBe(false)
    expect(from('http://localhost:3000', ['localhost:*'])).toBe(true)
    expect(from('no url at all', ['*'])).toBe(true)
  })

  it('matches nothing that cannot be read as a host', () => {
    expect(from('no url at all', ['localhost:8000', 'no*'])).toBe(false)
    expect(from('', ['localhost:8000'])).toBe(false)
    expect(from('file:///etc/passwd', ['localhost'])).toBe(false)
    expect(from('https://a.example', [])).toBe(false)
  })
})

describe('logout', () => {
  it('ends the calling token and no other', async () => {
    const one = server.caller((await login()).body.data.token)
    const two = server.caller((await login()).body.data.token)
    server.events()
    expect((await one.post('/logout')).body).toEqual({ message: 'Signed out.' })
    expect(server.events()).toEqual(['user.token.delete.before', 'user.token.delete.after'])
    expect((await one.get('/account')).status).toBe(401)
    expect((await two.get('/account')).status).toBe(200)
  })

  it('ends every token of the user when asked to, and none of others', async () => {
    const ann = await someone(server, [])
    const other = await server.as(ann.id)
    expect((await ann.caller.post('/logout', { all: true })).status).toBe(200)
    expect(server.events().filter((name) => name === 'user.token.delete.after')).toHaveLength(2)
    expect((await other.get('/account')).status).toBe(401)
    expect((await server.admin.get('/account')).status).toBe(200)
  })
})
