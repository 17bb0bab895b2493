// Tokens: their expiry, their allowed addresses, the scope of abilities, and how often their last
// use is stored.
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Config } from '../../../src/config/config.ts'
import { covers } from '../../../src/kernel/auth/abilities.ts'
import { isNetwork } from '../../../src/kernel/auth/ip-ranges.ts'
import { issueToken } from '../../../src/kernel/auth/tokens.ts'
import { start, startServer, type TestServer } from '../../support/app.ts'
import { settle } from '../../support/settle.ts'

let server: TestServer
const restart = async (config: Partial<Config> = {}): Promise<void> => {
  await server?.close()
  server = await startServer({ config })
}
beforeEach(async () => {
  server = await startServer()
})
afterEach(() => server.close())

const dayMs = 24 * 60 * 60 * 1000

const issue = async (changes: { expiresAt?: string; allowedIps?: string[] } = {}): Promise<string> => {
  const token = {
    userId: 1,
    name: 'test',
    kind: 'personal',
    abilities: ['*'],
    expiresAt: null,
    allowedIps: [],
    ...changes,
  } as const
  return (await issueToken(server.store.db, token, start)).text
}
const statusFrom = async (token: string, remoteAddress = '127.0.0.1'): Promise<number> => {
  const headers = { accept: 'application/json', authorization: `Bearer ${token}` }
  return (await server.inject({ method: 'GET', url: '/api/admin/account', headers, remoteAddress })).statusCode
}

describe('a token', () => {
  it('is good until the moment it expires', async () => {
    const token = await issue({ expiresAt: '2026-03-01T10:30:00.000Z' })
    server.clock.set('2026-03-01T10:29:59.999Z')
    expect(await statusFrom(token)).toBe(200)
    server.clock.set('2026-03-01T10:30:00.000Z')
    expect(await statusFrom(token)).toBe(401)
  })

  it('that is not used for the configured days is refused, and use keeps it alive', async () => {
    await restart({ tokenIdleDays: 30 })
    const [used, idle] = [await issue(), await issue()]
    server.clock.advanceMs(20 * dayMs)
    expect(await statusFrom(used)).toBe(200)
    await settle(server)
    server.clock.advanceMs(20 * dayMs)
    expect([await statusFrom(used), await statusFrom(idle)]).toEqual([200, 401])
  })

  it('never idles out when no days are configured', async () => {
    const token = await issue()
    server.clock.advanceMs(4000 * dayMs)
    expect(await statusFrom(token)).toBe(200)
  })

  it.each([
    [['10.0.0.0/8'], '10.200.3.4', 200],
    [['10.0.0.0/8'], '11.0.0.1', 401],
    [['192.0.2.7'], '192.0.2.7', 200],
    [['192.0.2.7'], '192.0.2.8', 401],
    [['192.0.2.7'], '::ffff:192.0.2.7', 200],
    [['10.0.0.0/8'], '::ffff:10.1.1.1', 200],
    [['2001:db8::/32'], '2001:db8:1::1', 200],
    [['2001:db8::1'], '2001:0db8:0:0::1', 200],
    [['2001:db8::/32'], '10.0.0.1', 401],
    [['198.51.100.0/24', '10.0.0.1'], '10.0.0.1', 200],
    [['0.0.0.0/0'], '203.0.113.9', 200],
  ])('allowed from %j is, from %s, answered %d', async (allowedIps, from, status) => {
    expect(await statusFrom(await issue({ allowedIps }), from)).toBe(status)
  })

  it.each([
    ['no proxy is trusted', [], '198.51.100.1', '203.0.113.5', 401],
    ['the proxy is trusted', ['10.0.0.0/8'], '10.0.0.1', '203.0.113.5', 200],
    ['the trusted proxy is mapped into IPv6', ['10.0.0.0/8'], '::ffff:10.0.0.1', '203.0.113.5', 200],
    ['it names an address mapped into IPv6', ['10.0.0.0/8'], '10.0.0.1', '::ffff:203.0.113.5', 200],
    ['the caller has put a better one before its own', ['10.0.0.0/8'], '10.0.0.1', '203.0.113.5, 198.51.100.9', 401],
    ['somebody else than the proxy says so', ['10.0.0.0/8'], '198.51.100.1', '203.0.113.5', 401],
  ])('is good for the address that a proxy names, when %s', async (_what, trustedProxies, from, named, status) => {
    await restart({ trustedProxies })
    const { statusCode } = await server.inject({
      method: 'GET',
      url: '/api/admin/account',
      headers: {
        accept: 'application/json',
        authorization: `Bearer ${await issue({ allowedIps: ['203.0.113.0/24'] })}`,
        'x-forwarded-for': named,
      },
      remoteAddress: from,
    })
    expect(statusCode).toBe(status)
  })

  it('is refused as soon as its user is inactive, with a code that says so', async () => {
    const caller = server.caller(await issue())
    await server.store.db.updateTable('users').set({ is_active: 0 }).where('id', '=', 1).execute()
    const { status, body } = await caller.get('/account')
    expect([status, body.code]).toEqual([401, 'account_inactive'])
  })

  it('has its use written down at most once a minute', async () => {
    const token = await issue()
    const last = async () =>
      (
        await server.store.db
          .selectFrom('tokens')
          .select('last_used_at')
          .orderBy('id', 'desc')
          .limit(1)
          .executeTakeFirstOrThrow()
      ).last_used_at
    const seen: (string | null)[] = [await last()]
    for (const ms of [0, 30_000, 31_000]) {
      server.clock.advanceMs(ms)
      await statusFrom(token)
      await settle(server)
      seen.push(await last())
    }
    expect(seen).toEqual([null, start, start, '2026-03-01T09:31:01.000Z'])
  })

  it('is stored as a digest only', async () => {
    const [, secret = ''] = (await issue()).split('|')
    expect(secret).toMatch(/^[\w-]{43}$/)
    expect((await server.store.image()).includes(secret)).toBe(false)
  })

  it.each([
    '',
    'Bearer',
    'Basic YTpi',
    'Bearer 1',
    'Bearer 0|x',
    'Bearer 1|',
    'Bearer 1|%00',
    'Bearer 1|x y',
    `Bearer ${'9'.repeat(40)}|${'x'.repeat(43)}`,
  ])('is not made of %j', async (authorization) => {
    const { statusCode } = await server.inject({
      method: 'GET',
      url: '/api/admin/account',
      headers: { accept: 'application/json', authorization },
    })
    expect(statusCode).toBe(401)
  })
})

describe('covers', () => {
  it.each([
    [['*'], 'leads:write', true],
    [['leads:*'], 'leads:write', true],
    [['leads:read'], 'leads:write', false],
    [['*:read'], 'leads:read', true],
    [['*:read'], 'leads:write', false],
    [['leads:write'], 'leads:read', false],
    [['leads:read', 'leads:write'], 'leads:*', true],
    [['leads:read'], 'leads:*', false],
    [['leads:*'], 'persons:read', false],
    [[], 'leads:read', false],
    [['*:read', 'leads:write'], '*', false],
    [['leads:read'], 'any:read', true],
    [['leads:*'], 'any:read', true],
    [['*:read'], 'any:read', true],
    [['leads:write'], 'any:read', false],
    [['leads:write'], 'any:write', true],
    [['leads:*'], 'any:write', true],
    [['leads:read', '*:read'], 'any:write', false],
    [[], 'any:read', false],
  ])('%j covers %s: %s', (abilities, wanted, isCovered) => expect(covers(abilities, wanted)).toBe(isCovered))
})

describe('isNetwork', () => {
  it.each(['10.0.0.1', '10.0.0.0/8', '::1', '2001:db8::/32'])('%s is one', (text) => expect(isNetwork(text)).toBe(true))
  it.each(['', 'example.com', '10.0.0.0/33', '10.0.0.256', '2001:db8::/129'])('%j is none', (text) =>
    expect(isNetwork(text)).toBe(false),
  )
})
