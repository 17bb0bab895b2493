// Database URLs with several hosts, in Accord, in libpq and in the settings.
import { describe, expect, it } from 'vitest'
import { Hosts, libpqUrl, pgUrl } from '../../db/postgres/hosts.ts'
import { displayUrl, isServerUrl } from '../../db/store.ts'
import { readConfig } from '../../src/config/config.ts'

const two = 'postgres://crm:a%2Cb@one:5433,[::1]/crm?target_session_attrs=read-write&sslmode=require'

describe('the hosts of a URL', () => {
  it('are used in turn, and each failure counts once', () => {
    const hosts = new Hosts(two)
    const [first, second] = [
      'postgres://crm:a%2Cb@one:5433/crm?sslmode=require',
      'postgres://crm:a%2Cb@[::1]/crm?sslmode=require',
    ]
    expect([hosts.count, hosts.mustAcceptWrites, hosts.url]).toEqual([2, true, first])
    hosts.leave(first)
    hosts.leave(first)
    expect(hosts.url).toBe(second)
    hosts.leave(second)
    expect(hosts.url).toBe(first)
  })

  it('keep their open connections when a new one fails', () => {
    const hosts = new Hosts(two)
    const { generation } = hosts
    hosts.leave(hosts.url)
    expect(hosts.generation).toBe(generation)
    hosts.renew()
    expect(hosts.generation).not.toBe(generation)
  })

  it('must tell their role if there are several, or if the URL says so', () => {
    const asks = (url: string) => new Hosts(url).mustAcceptWrites
    expect(asks('postgres://one,two/crm')).toBe(true)
    expect(asks('postgres://one/crm?target_session_attrs=primary')).toBe(true)
    expect(asks('postgres://one/crm')).toBe(false)
    expect(new Hosts('postgres://one,two/crm?target_session_attrs=standby', 'any').mustAcceptWrites).toBe(false)
  })

  it('must not be standbys', () => {
    expect(() => new Hosts('postgres://one,two/crm?target_session_attrs=any')).toThrow(
      'target_session_attrs must be read-write or primary, because Accord writes',
    )
  })

  it.each([
    ['no-verify', '', 'require'],
    ['no-verify', '&sslrootcert=/etc/ca.pem', 'require'],
    ['require', '', 'require'],
    ['require', '&sslrootcert=/etc/ca.pem', 'require'],
    ['verify-ca', '&sslrootcert=/etc/ca.pem', 'verify-ca'],
    ['verify-full', '&sslrootcert=/etc/ca.pem', 'verify-full'],
    ['disable', '', 'disable'],
  ])('checks certificates in the programs of PostgreSQL as in the server: %s%s', (mode, more, wanted) => {
    expect(libpqUrl(`postgres://one/crm?sslmode=${mode}${more}`)).toBe(`postgres://one/crm?sslmode=${wanted}${more}`)
  })

  it.each([
    ['sslmode=require', 'sslmode=require&uselibpqcompat=true'],
    ['sslmode=allow', 'sslmode=prefer&uselibpqcompat=true'],
    ['sslmode=verify-full', 'sslmode=verify-full&uselibpqcompat=true'],
    ['sslmode=no-verify', 'sslmode=no-verify'],
    ['application_name=x', 'application_name=x'],
  ])('reads sslmode as libpq does: %s', (sent, used) => {
    expect(pgUrl(`postgres://one/crm?${sent}`)).toBe(`postgres://one/crm?${used}`)
  })

  it('goes on without TLS only where the URL allows it', () => {
    for (const [mode, isAllowed] of [
      ['prefer', true],
      ['allow', true],
      ['require', false],
      ['verify-full', false],
    ] as const) {
      const hosts = new Hosts(`postgres://one/crm?sslmode=${mode}`)
      expect
        .soft([mode, hosts.leaveTls(hosts.url), hosts.url.includes('disable')])
        .toEqual([mode, isAllowed, isAllowed])
    }
  })

  it('are left as they are for libpq, which is told to look for a primary', () => {
    expect(libpqUrl(two)).toBe(two)
    expect(libpqUrl('postgres://one,two/crm')).toBe('postgres://one,two/crm?target_session_attrs=read-write')
    expect(libpqUrl('postgres://one,two/crm?sslmode=require')).toBe(
      'postgres://one,two/crm?sslmode=require&target_session_attrs=read-write',
    )
    expect(libpqUrl('postgres://one/crm')).toBe('postgres://one/crm')
  })

  it('are shown without the password, and name a database', () => {
    expect(displayUrl(two)).toBe(two.replace('a%2Cb', '***'))
    expect([isServerUrl(two), isServerUrl('postgres://one,two'), isServerUrl('sqlite:crm')]).toEqual([
      ...[true, false, false],
    ])
  })
})

describe('ACCORD_DATABASE_REPLICA_URL', () => {
  const read = (url: string, replica: string) =>
    readConfig({ ACCORD_DATABASE_URL: url, ACCORD_DATABASE_REPLICA_URL: replica }).config.databaseReplicaUrl

  it('is the URL of a PostgreSQL server beside another one', () => {
    expect(read('postgres://one/crm', '')).toBeNull()
    expect(read('postgres://one/crm', 'postgres://two/crm')).toBe('postgres://two/crm')
    expect(() => read('postgres://one/crm', 'sqlite:crm:secret')).toThrow(
      'ACCORD_DATABASE_REPLICA_URL must start with postgres://, not "sqlite:".',
    )
    expect(() => read('sqlite:crm.db', 'postgres://two/crm')).toThrow(
      'ACCORD_DATABASE_REPLICA_URL needs a PostgreSQL database in ACCORD_DATABASE_URL.',
    )
  })
})
