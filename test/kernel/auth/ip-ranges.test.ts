// IP addresses: the canonical form of an address, and the network that its limits apply to.
import { describe, expect, it } from 'vitest'
import { clientNetwork, memberOf, plainAddress } from '../../../src/kernel/auth/ip-ranges.ts'
import { adminPassword, startServer } from '../../support/app.ts'

describe('plainAddress', () => {
  it.each([
    ['192.0.2.7', '192.0.2.7'],
    ['192.0.2.7:4711', '192.0.2.7'],
    ['::ffff:192.0.2.7', '192.0.2.7'],
    ['::FFFF:c000:207', '192.0.2.7'],
    ['[::ffff:192.0.2.7]:4711', '192.0.2.7'],
    ['[2001:DB8::0:1]:4711', '2001:db8::1'],
    ['[2001:db8::1]', '2001:db8::1'],
    ['2001:db8:0:0:0:0:0:1', '2001:db8::1'],
    ['fe80::1%eth0', 'fe80::1'],
    [' 192.0.2.7 ', '192.0.2.7'],
    ['unknown', undefined],
    ['192.0.2', undefined],
    ['0x7f.1', undefined],
    ['', undefined],
  ])('of %j is %j', (text, plain) => expect(plainAddress(text)).toBe(plain))
})

describe('networkOf', () => {
  it.each([
    ['192.0.2.7', '192.0.2.7'],
    ['::ffff:192.0.2.7', '192.0.2.7'],
    ['192.0.2.7:4711', '192.0.2.7'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:db8:1:2::', '2001:db8:1:2::/64'],
    ['[2001:db8:1:2:ffff::]:80', '2001:db8:1:2::/64'],
    ['::1', '::/64'],
  ])('of %j is %s', (ip, network) => expect(clientNetwork(ip)).toBe(network))
})

describe('memberOf', () => {
  it('reads every spelling of an address', () => {
    const isOurs = memberOf(['10.0.0.0/8', '2001:db8::/32', '192.0.2.7'])
    const addresses = ['10.1.2.3:4711', '::ffff:10.1.2.3', '[2001:db8::5]:443', '192.0.2.7', '192.0.2.8', 'unknown']
    expect(addresses.map(isOurs)).toEqual([true, true, true, true, false, false])
  })
})

describe('a caller behind a trusted proxy', () => {
  it.each([
    ['a port', (port: number) => `203.0.113.5:${40_000 + port}`],
    ['a mapped address', (port: number) => (port % 2 ? '203.0.113.5' : '::ffff:203.0.113.5')],
    ['a proxy with a port behind it', (port: number) => `203.0.113.5, 10.0.0.9:${port}`],
    ['an address of one /64', (port: number) => `[2001:db8:0:1::${port + 1}]:${40_000 + port}`],
  ])('is one caller when the proxy names %s', async (_what, named) => {
    const server = await startServer({ config: { trustedProxies: ['10.0.0.0/8'] } })
    try {
      const statuses: number[] = []
      for (let tries = 0; tries < 6; tries++) {
        const payload = {
          email: 'admin@example.com',
          password: tries < 5 ? 'a guess' : adminPassword,
          device_name: 'x',
        }
        const headers = { 'x-forwarded-for': named(tries), accept: 'application/json' }
        const request = {
          method: 'POST' as const,
          url: '/api/admin/login',
          remoteAddress: '10.0.0.1',
          headers,
          payload,
        }
        statuses.push((await server.inject(request)).statusCode)
      }
      expect(statuses).toEqual([401, 401, 401, 401, 401, 429])
      // A different client behind the same proxy has its own limit.
      const headers = { 'x-forwarded-for': '198.51.100.1:4711', accept: 'application/json' }
      const payload = { email: 'admin@example.com', password: adminPassword, device_name: 'x' }
      const other = { method: 'POST' as const, url: '/api/admin/login', remoteAddress: '10.0.0.1', headers, payload }
      expect((await server.inject(other)).statusCode).toBe(200)
    } finally {
      await server.close()
    }
  })
})
