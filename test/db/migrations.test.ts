// Rules for all migrations and tables: order, no changes after release, STRICT tables, and indexed
// foreign keys.

import { execFileSync, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Kysely, sql } from 'kysely'
import { describe, expect, it } from 'vitest'
import { migrate, migrations, pendingMigrations } from '../../db/migrate.ts'
import { renderTables } from '../../db/schema/introspect.ts'
import { openStore, type Store } from '../../db/store.ts'

const folder = new URL('../../db/migrations/', import.meta.url)
const further = [...migrations, { name: '9999_further', up: () => Promise.resolve() }]

async function withMigrated(work: (store: Store) => Promise<void>): Promise<void> {
  const store = openStore('sqlite::memory:')
  try {
    await migrate(store)
    await work(store)
  } finally {
    await store.close()
  }
}

async function query<Row>(store: Store, text: string): Promise<Row[]> {
  return (await sql.raw<Row>(text).execute(store.db)).rows
}

describe('migrate', () => {
  it('applies every migration in order, and nothing the second time', async () => {
    const store = openStore('sqlite::memory:')
    const names = migrations.map((migration) => migration.name)
    expect(await pendingMigrations(store)).toEqual(names)
    expect(await migrate(store)).toEqual(names)
    const image = await store.image()
    expect(await pendingMigrations(store)).toEqual([])
    expect(await migrate(store)).toEqual([])
    expect((await store.image()).equals(image)).toBe(true)
    await store.close()
  })

  it('copies an existing database before changing it, and makes no copy of a new one', async () => {
    const data = mkdtempSync(join(tmpdir(), 'accord-migrate-'))
    const store = openStore(`sqlite:${join(data, 'accord.db')}`)
    try {
      await migrate(store)
      expect(readdirSync(data)).not.toContain('backups')
      expect(await migrate(store, further)).toEqual(['9999_further'])
      const copies = readdirSync(join(data, 'backups'))
      expect(copies).toEqual([expect.stringMatching(/^accord-\d{4}-\d\d-\d\dT[\d-]+Z\.db$/)])
      const copy = openStore(`sqlite:${join(data, 'backups', copies[0] ?? '')}`)
      expect(await pendingMigrations(copy, further)).toEqual(['9999_further'])
      await copy.close()
    } finally {
      await store.close()
      rmSync(data, { recursive: true, force: true })
    }
  })

  it('that fails half-way leaves the database as it was, and says where the copy is', async () => {
    const data = mkdtempSync(join(tmpdir(), 'accord-migrate-'))
    const store = openStore(`sqlite:${join(data, 'accord.db')}`)
    try {
      await migrate(store)
      const before = await store.image()
      const good = {
        name: '9998_good',
        up: (db: Kysely<unknown>) => sql`create table good (id integer)`.execute(db).then(),
      }
      const bad = {
        name: '9999_bad',
        up: async (db: Kysely<unknown>) => {
          await sql`drop table archives`.execute(db)
          await sql`update users set gone = 1`.execute(db)
        },
      }
      const failure: unknown = await migrate(store, [...migrations, good as never, bad]).catch(
        (error: unknown) => error,
      )
      const copy = join(data, 'backups', readdirSync(join(data, 'backups'))[0] ?? '')
      expect(String(failure)).toBe(
        `Error: The migration 9999_bad failed (no such column: gone). The database is as it was. A copy made before is ${copy}.`,
      )
      expect(await pendingMigrations(store)).toEqual([])
      expect(await query(store, "select name from sqlite_schema where name in ('good', 'archives')")).toHaveLength(1)
      expect((await store.image()).equals(before)).toBe(true)
      expect(statSync(copy).mode & 0o777).toBe(0o600)
    } finally {
      await store.close()
      rmSync(data, { recursive: true, force: true })
    }
  })

  it('keeps the newest five copies, and nothing of others in that folder', async () => {
    const data = mkdtempSync(join(tmpdir(), 'accord-migrate-'))
    const store = openStore(`sqlite:${join(data, 'accord.db')}`)
    try {
      await migrate(store)
      const folder = join(data, 'backups')
      mkdirSync(folder)
      const old = [1, 2, 3, 4, 5, 6].map((day) => `accord-2026-01-0${day}T00-00-00-000Z.db`)
      for (const name of [...old, 'mine.db']) writeFileSync(join(folder, name), '')
      await migrate(store, further)
      const left = readdirSync(folder).sort()
      expect(left).toHaveLength(6)
      expect(left).toEqual(expect.arrayContaining([...old.slice(-4), 'mine.db']))
    } finally {
      await store.close()
      rmSync(data, { recursive: true, force: true })
    }
  })

  it('touches nothing when the copy does not fit on the disk', async () => {
    const data = mkdtempSync(join(tmpdir(), 'accord-migrate-'))
    const url = `sqlite:${join(data, 'accord.db')}`
    try {
      const store = openStore(url)
      await migrate(store)
      const before = await store.image()
      await store.close()
      // The process may not write files as large as the database.
      const program = `
        const { openStore } = await import('${new URL('../../db/store.ts', import.meta.url)}')
        const { migrate, migrations } = await import('${new URL('../../db/migrate.ts', import.meta.url)}')
        const further = { name: '9999_further', up: () => Promise.resolve() }
        await migrate(openStore('${url}'), [...migrations, further]).catch((error) => console.log(error.message))`
      const tsx = createRequire(import.meta.url).resolve('tsx')
      const said = execFileSync(
        'bash',
        [
          '-c',
          'ulimit -f 600 && exec "$0" --import "$1" --input-type=module --eval "$2"',
          process.execPath,
          tsx,
          program,
        ],
        { encoding: 'utf8' },
      )
      expect(said).toMatch(
        /^The copy of the database before the migration could not be written \(.+\), so nothing was migrated\. Make room in \S+backups, then try again\.\n$/,
      )
      expect(readdirSync(join(data, 'backups'))).toEqual([])
      const after = openStore(url)
      expect((await after.image()).equals(before)).toBe(true)
      await after.close()
    } finally {
      rmSync(data, { recursive: true, force: true })
    }
  })

  it('that ends with kill -9 half-way leaves the database as it was, and can be done again', async () => {
    const data = mkdtempSync(join(tmpdir(), 'accord-migrate-'))
    const url = `sqlite:${join(data, 'accord.db')}`
    try {
      const store = openStore(url)
      await migrate(store)
      const before = await store.image()
      await store.close()
      // The migration changes so much that a part is already in the database file.
      const program = `
        const { sql } = await import('kysely')
        const { openStore } = await import('${new URL('../../db/store.ts', import.meta.url)}')
        const { migrate, migrations } = await import('${new URL('../../db/migrate.ts', import.meta.url)}')
        const up = async (db) => {
          await sql\`drop table archives\`.execute(db)
          await sql\`create table much (bytes blob)\`.execute(db)
          for (let times = 0; times < 100; times++) await sql\`insert into much values (randomblob(1000000))\`.execute(db)
          process.kill(process.pid, 'SIGKILL')
        }
        await migrate(openStore('${url}'), [...migrations, { name: '9999_killed', up }])`
      const tsx = createRequire(import.meta.url).resolve('tsx')
      const { signal } = spawnSync(process.execPath, ['--import', tsx, '--input-type=module', '--eval', program])
      expect(signal).toBe('SIGKILL')
      expect(statSync(join(data, 'accord.db-wal')).size).toBeGreaterThan(1_000_000)
      const after = openStore(url)
      expect((await after.image()).equals(before)).toBe(true)
      const again = { name: '9999_killed', up: () => Promise.resolve() }
      expect(await migrate(after, [...migrations, again])).toEqual(['9999_killed'])
      await after.close()
    } finally {
      rmSync(data, { recursive: true, force: true })
    }
  })

  it('leaves no trace of a migration that fails', async () => {
    const store = openStore('sqlite::memory:')
    await sql`create table users (id integer)`.execute(store.db)
    await expect(migrate(store)).rejects.toThrow('users')
    expect(await query(store, "select name from sqlite_schema where name = 'roles'")).toEqual([])
    expect(await pendingMigrations(store)).toHaveLength(migrations.length)
    await store.close()
  })

  it.each([
    ['a newer version', '9999_future'],
    ['a release candidate', '0054_stored_references'],
  ])('refuses a database from %s', (_whose, name) =>
    withMigrated(async (store) => {
      await store.db.insertInto('migrations').values({ name, applied_at: 'then' }).execute()
      await expect(migrate(store)).rejects.toThrow(
        `This database has the migration ${name}, which this version of Accord CRM does not know: a newer version or a release candidate has migrated it. Install that version, or restore a backup made before it.`,
      )
    }),
  )
})

describe('the migration files', () => {
  it('are all in the list, in the order of their numbers, and no number is there twice', () => {
    const files = readdirSync(folder).filter((file) => file.endsWith('.ts'))
    expect(migrations.map((migration) => `${migration.name}.ts`)).toEqual(files.sort())
    const numbers = migrations.map((migration) => Number(migration.name.slice(0, 4)))
    expect(numbers).toEqual([...new Set(numbers)].sort((one, other) => one - other))
  })

  it('are never edited after release: write a new migration instead', () => {
    const lines = readFileSync(new URL('released.txt', folder), 'utf8').split('\n')
    for (const line of lines.filter((text) => text.trim() !== '' && !text.startsWith('#'))) {
      const [name, hash] = line.split(' ')
      const actual = createHash('sha256')
        .update(readFileSync(new URL(`${name}.ts`, folder)))
        .digest('hex')
      expect(actual, `db/migrations/${name}.ts was released; undo the edit and add a new migration`).toBe(hash)
    }
  })
})

describe('every table', () => {
  it('is STRICT', () =>
    withMigrated(async (store) => {
      const loose = await query(
        store,
        "select name from pragma_table_list where schema = 'main' and type = 'table' and strict = 0 and name not like 'sqlite_%'",
      )
      expect(loose).toEqual([])
    }))

  it('has an index that starts with each of its foreign keys', () =>
    withMigrated(async (store) => {
      const unindexed = await query(
        store,
        `select t.name, f."from" from pragma_table_list t, pragma_foreign_key_list(t.name) f
         where t.schema = 'main' and not exists (
           select 1 from pragma_index_list(t.name) l, pragma_index_info(l.name) i
           where i.seqno = 0 and i.name = f."from" and l.partial = 0)`,
      )
      expect(unindexed).toEqual([])
      expect(await query(store, 'pragma foreign_key_check')).toEqual([])
    }))

  it('has its type in tables.gen.ts; run npm run regenerate after changing a migration', async () => {
    const generated = readFileSync(new URL('../tables.gen.ts', folder), 'utf8')
    expect(generated).toBe(await renderTables())
  })
})
