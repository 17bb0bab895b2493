// URLs of PostgreSQL databases: their parameters, and passwords that no message shows.
import { describe, expect, it } from 'vitest'
import { splitOptions, urlFault } from '../../db/postgres/url.ts'
import { parseDatabaseUrl, parseReplicaUrl } from '../../src/config/parsers.ts'

describe('a URL of a database', () => {
  it('is refused with parameters that would have no effect', () => {
    expect(urlFault('postgres://one/crm?schema=crm')).toContain('options=-csearch_path%3D<schema>')
    expect(urlFault('postgres://one/crm?sslmode=required')).toContain('verify-full')
    for (const mode of ['disable', 'allow', 'prefer', 'require', 'verify-ca', 'verify-full', 'no-verify'])
      expect(urlFault(`postgres://one/crm?sslmode=${mode}`)).toBeNull()
    expect(() => parseDatabaseUrl('postgres://one/crm?sslmode=on', 'ACCORD_DATABASE_URL', () => undefined)).toThrow(
      'unknown sslmode',
    )
    expect(() =>
      parseReplicaUrl('postgres://one/crm?schema=x', 'ACCORD_DATABASE_REPLICA_URL', () => undefined),
    ).toThrow('schema')
  })

  it('never shows a password when it is refused', () => {
    for (const text of [
      'host=localhost password=hunter2 dbname=crm',
      'hunter2',
      'user:hunter2@host/crm',
      'jdbc:postgresql://user:hunter2@host/crm',
      'postgres:user:hunter2@host',
      'postgres://user:hunter2@host/crm?schema=crm',
      'postgres://user:hunter2@host/crm?sslmode=on&password=hunter2',
    ])
      for (const parse of [parseDatabaseUrl, parseReplicaUrl])
        try {
          parse(text, 'ACCORD_DATABASE_URL', () => undefined)
          expect.unreachable(text)
        } catch (error) {
          expect((error as Error).message).not.toContain('hunter2')
        }
  })

  it('keeps its options apart from those of the program', () => {
    expect(splitOptions('postgres://one/crm?options=-csearch_path%3Dcrm&sslmode=disable')).toEqual({
      url: 'postgres://one/crm?sslmode=disable',
      options: '-csearch_path=crm',
    })
    expect(splitOptions('postgres://one/crm?a=1&options=-c+x%3Dy')).toEqual({
      url: 'postgres://one/crm?a=1',
      options: '-c x=y',
    })
    expect(splitOptions('postgres://one/crm')).toEqual({ url: 'postgres://one/crm', options: '' })
  })
})
