// A database has the same tables, triggers and settings however it was migrated.
import { readdirSync, readFileSync } from 'node:fs'
import { type Kysely, sql } from 'kysely'
import { describe, expect, it } from 'vitest'
import { migrate, migrations } from '../../db/migrate.ts'
import { openStore, type Store } from '../../db/store.ts'
import { searchIndex } from '../../src/operations.ts'
import { migrateWithSearch } from '../support/search-index.ts'

const rowsOf = async (store: Store, text: string) =>
  (await sql.raw<Record<string, unknown>>(text).execute(store.db)).rows

/** Removes quotes and extra spaces, because SQLite quotes the name of a renamed table. */
const plain = (text: unknown): string =>
  String(text)
    .replaceAll(/["']/g, '')
    .replaceAll(/,?\s+/g, (space) => (space.startsWith(',') ? ',' : ' '))
    .toLowerCase()

async function shapeOf(store: Store) {
  const schema = await rowsOf(store, 'select type, name, tbl_name, sql from sqlite_schema order by type, name')
  const settings = await Promise.all(
    ['words', 'pieces'].map((index) => rowsOf(store, `select k, v from search_index_${index}_config order by k`)),
  )
  const pragmas = await Promise.all(
    ['application_id', 'user_version', 'auto_vacuum', 'page_size', 'encoding'].map((name) =>
      rowsOf(store, `pragma ${name}`),
    ),
  )
  return { schema: schema.map((row) => ({ ...row, sql: plain(row.sql) })), settings, pragmas }
}

async function inMemory<T>(work: (store: Store) => Promise<T>): Promise<T> {
  const store = openStore('sqlite::memory:')
  try {
    return await work(store)
  } finally {
    await store.close()
  }
}

const fresh = () =>
  inMemory(async (store) => {
    await migrate(store)
    return shapeOf(store)
  })

/** Applies only the first migrations, without the other steps of the program. */
async function onlyMigrations(store: Store, count: number): Promise<void> {
  const list =
    'create table if not exists "migrations" ("name" text not null primary key, "applied_at" text not null) strict'
  await sql.raw(list).execute(store.db)
  for (const { name, up } of migrations.slice(0, count)) {
    await up(store.db as unknown as Kysely<unknown>, store.dialect)
    await store.db.insertInto('migrations').values({ name, applied_at: 'then' }).execute()
  }
}

describe('a database', () => {
  it('has after the migrations alone what the program makes of it', () =>
    inMemory(async (store) => {
      await onlyMigrations(store, migrations.length)
      const shape = await shapeOf(store)
      expect(shape).toEqual(await fresh())
      await searchIndex.rebuildOnline(store)
      expect(await shapeOf(store)).toEqual(shape)
    }))

  it('without a search has those of a new one once it is migrated', () =>
    inMemory(async (store) => {
      await onlyMigrations(
        store,
        migrations.findIndex(({ name }) => name.endsWith('_search')),
      )
      const stamps = { created_at: 'now', updated_at: 'now' }
      await store.db
        .insertInto('organizations')
        .values({ name: 'Anvils', name_key: 'anvils', ...stamps })
        .execute()
      await migrateWithSearch(store)
      expect(await shapeOf(store)).toEqual(await fresh())
      expect(await searchIndex.findProblem(store.db, store.dialect)).toBeNull()
    }))
})

it('a migration calls nothing that may change: schema/columns.ts is all it imports', () => {
  const folder = new URL('../../db/migrations/', import.meta.url)
  for (const file of readdirSync(folder).filter((name) => name.endsWith('.ts'))) {
    const source = readFileSync(new URL(file, folder), 'utf8')
    const imported = [...source.matchAll(/^import (?!type)[^']*'([^']+)'/gm)].map(([, path]) => path)
    for (const path of imported) expect(['kysely', '../schema/columns.ts'], file).toContain(path)
    expect(source, file).not.toMatch(/dialect\.(fullText|keepTotals)/)
  }
})
