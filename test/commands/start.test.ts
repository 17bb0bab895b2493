// The packages that a server loads at its start. All others are loaded at their first use, so that
// the start is fast.
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'

/** In alphabetical order. Each entry makes every start slower. */
const needed = [
  '@fastify/busboy',
  '@fastify/compress',
  'ajv',
  'argon2',
  'commander',
  'content-disposition',
  'csv-parse',
  'csv-stringify',
  'dotenv',
  'fastest-levenshtein',
  'fastify',
  'helmet',
  'ical-generator',
  'ipaddr.js',
  'kysely',
  'libphonenumber-js',
  'lru-cache',
  'luxon',
  'mitt',
  'negotiator',
  'node-cron',
  'openapi-backend',
  'p-limit',
  'prom-client',
  'uuid',
]

/** Matches static imports except type imports. */
const heads = /^(?:import|export)\s+(?!type\b)(?:[\w*{][^'"]*?\sfrom\s+)?'([^']+)'/gm

function loadedBy(entries: readonly string[]): { modules: Set<string>; packages: Set<string> } {
  const modules = new Set<string>()
  const packages = new Set<string>()
  const waiting = [...entries]
  for (let file = waiting.pop(); file !== undefined; file = waiting.pop()) {
    if (modules.has(file)) continue
    modules.add(file)
    for (const [, name = ''] of readFileSync(file, 'utf8').matchAll(heads)) {
      if (name.startsWith('.')) waiting.push(join(dirname(file), name))
      else if (!name.startsWith('node:')) packages.add(/^(@[^/]+\/)?[^/]+/.exec(name)?.[0] ?? name)
    }
  }
  return { modules, packages }
}

describe('a start', () => {
  const { modules, packages } = loadedBy(['src/command-line.ts', 'src/commands/serve.ts'])

  it('waits for the packages that every request needs, and for no other', () => {
    expect([...packages].sort()).toEqual(needed)
    // driver.ts loads one of two versions of better-sqlite3 without an import.
    expect(modules).toContain('db/sqlite/driver.ts')
  })

  it('waits for no migration, which a database that is up to date has behind it, and for nothing of codegen', () => {
    expect([...modules].filter((path) => /migrations\/|^codegen\//.test(path))).toEqual([])
    expect(existsSync('db/migrations/0001_identity.ts')).toBe(true)
    expect(modules).toContain('src/resources/leads/resource.ts')
  })
})
