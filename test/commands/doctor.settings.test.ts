// Settings that are valid alone but contradict each other: `accord doctor` prints a hint for each
// contradiction.
import { describe, expect, it } from 'vitest'
import { Hint } from '../../src/commands/doctor/check-result.ts'
import { checkSettings } from '../../src/commands/doctor/settings.ts'
import type { Config } from '../../src/config/config.ts'
import { testConfig } from '../support/app.ts'

describe('accord doctor on settings', () => {
  const production: Partial<Config> = {
    env: 'production',
    appUrl: 'https://crm.example.com',
    trustedProxies: ['127.0.0.1'],
  }
  const hints = (changes: Partial<Config>): string[] =>
    [checkSettings(testConfig({ adminPassword: null, ...changes })) ?? []].flat().map((each) => {
      expect(each).toBeInstanceOf(Hint)
      return each instanceof Hint ? each.sentence : each
    })

  it.each<[string, Partial<Config>, RegExp]>([
    [
      'development on all addresses',
      { env: 'development', host: '0.0.0.0', statefulDomains: ['crm.example.com'] },
      /ACCORD_ENV is development, but ACCORD_HOST 0\.0\.0\.0 accepts calls from other machines/,
    ],
    [
      'other machines whose users cannot sign in',
      { env: 'production', appUrl: 'http://localhost:8000', host: '0.0.0.0' },
      /^ACCORD_HOST is 0\.0\.0\.0, .*at any other host gets 401/,
    ],
    ['no address in production', { env: 'production', appUrl: null }, /ACCORD_APP_URL is not set/],
    [
      'an address without encryption',
      { env: 'production', appUrl: 'http://crm.example.com' },
      /passwords and tokens travel unencrypted/,
    ],
    [
      'an address nobody can sign in at',
      { ...production, statefulDomains: ['other.example.com'] },
      /lacks crm\.example\.com, the host of ACCORD_APP_URL/,
    ],
    [
      'an origin nobody can sign in from',
      { ...production, corsOrigins: ['https://app.example.com'] },
      /its pages may call the API, but users cannot sign in from them/,
    ],
    [
      'an origin without encryption',
      { ...production, statefulDomains: ['*.example.com'], corsOrigins: ['http://app.example.com'] },
      /ACCORD_CORS_ORIGINS has http:\/\/app\.example\.com: without TLS, an attacker/,
    ],
    [
      'a password that is still set',
      { ...production, adminPassword: 'a long enough one' },
      /ACCORD_ADMIN_PASSWORD is still set/,
    ],
    [
      'a proxy that is not trusted',
      { ...production, trustedProxies: [] },
      /all callers share the address of the proxy and its limits of sign-ins/,
    ],
    ['inbound mail from anybody', { inboundOpen: true }, /ACCORD_INBOUND_OPEN is on, so any sender can post e-mails/],
  ])('%s is one hint', (_what, changes, sentence) => {
    expect(hints(changes)).toEqual([expect.stringMatching(sentence)])
  })

  it('that fit together give none', () => {
    expect(hints({ ...production, corsOrigins: ['https://crm.example.com'], host: '0.0.0.0' })).toEqual([])
    // An entry may contain the default port, as for the sign-in.
    expect(hints({ ...production, statefulDomains: ['crm.example.com:443'] })).toEqual([])
  })
})
