// A migrated database of any earlier version has the same tables, triggers and settings as a new
// database.
import { readdirSync, readFileSync } from 'node:fs'
import { type Kysely, sql } from 'kysely'
import { describe, expect, it } from 'vitest'
import { migrate, migrations } from '../../db/migrate.ts'
import { openStore, type Store } from '../../db/store.ts'
import { searchIndex } from '../../src/operations.ts'
import { migrateWithSearch } from '../support/search-index.ts'

const rowsOf = async (store: Store, text: string) =>
  (await sql.raw<Record<string, unknown>>(text).execute(store.db)).rows
const run = async (store: Store, statements: readonly string[]) => {
  for (const statement of statements) await sql.raw(statement).execute(store.db)
}

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
    await up(store.db as unknown as Kysely<unknown>, store.dialect, { seal: (text) => text })
    await store.db.insertInto('migrations').values({ name, applied_at: 'then' }).execute()
  }
}

const at = (name: string): number => migrations.findIndex((migration) => migration.name.startsWith(name)) + 1

const columns = 'entity_type, title, body'
const values = (row: string): string => `${row}.entity_type, ${row}.title, ${row}.body`
const addWords = `insert into search_index_words (rowid, ${columns}) values (new.id, ${values('new')});`
const removeWords = `insert into search_index_words (search_index_words, rowid, ${columns}) values ('delete', old.id, ${values('old')});`
/** The word index of the first versions, which had no settings. */
const words = [
  `create virtual table search_index_words using fts5(${columns}, content='search_index', content_rowid='id', tokenize='unicode61 remove_diacritics 2', prefix='2 3')`,
  `create trigger search_index_words_insert after insert on search_index begin ${addWords} end`,
  `create trigger search_index_words_delete after delete on search_index begin ${removeWords} end`,
  `create trigger search_index_words_update after update of ${columns} on search_index begin ${removeWords} ${addWords} end`,
]
const text = (row: string): string => `fold(${row}title || char(10) || ${row}body)`
const addPieces = `insert into search_index_pieces (rowid, text) values (new.id, ${text('new.')});`
const pieces = [
  "create virtual table search_index_pieces using fts5(text, content='', contentless_delete=1, detail=none, tokenize='trigram case_sensitive 1')",
  `create trigger search_index_pieces_insert after insert on search_index begin ${addPieces} end`,
  'create trigger search_index_pieces_delete after delete on search_index begin delete from search_index_pieces where rowid = old.id; end',
  `create trigger search_index_pieces_update after update of title, body on search_index begin delete from search_index_pieces where rowid = old.id; ${addPieces} end`,
]
const settings = ['search_index_words', 'search_index_pieces'].flatMap((index) =>
  [
    ['automerge', 0],
    ['usermerge', 16],
    ['crisismerge', 500],
  ].map(([name, value]) => `insert into ${index} (${index}, rank) values ('${name}', ${value})`),
)

describe('a database', () => {
  it('has after the migrations alone what the program makes of it', () =>
    inMemory(async (store) => {
      await onlyMigrations(store, migrations.length)
      const shape = await shapeOf(store)
      expect(shape).toEqual(await fresh())
      await searchIndex.rebuildOnline(store)
      expect(await shapeOf(store)).toEqual(shape)
    }))

  it.each([
    ['of the first tables', '0008', []],
    ['without a search', '0015', []],
    ['with an index of words', '0016', words],
    ['with sessions', '0019', words],
    ['with an index of pieces and no settings', '0021', [...words, ...pieces]],
    ['with settings', '0021', [...words, ...pieces, ...settings]],
  ])('%s has those of a new one once it is migrated', (_what, last, made) =>
    inMemory(async (store) => {
      await onlyMigrations(store, at(last))
      await run(store, made)
      if (at(last) >= at('0016')) {
        const stamps = { created_at: 'now', updated_at: 'now' }
        await store.db
          .insertInto('organizations')
          .values({ name: 'Anvils', name_key: 'anvils', ...stamps })
          .execute()
      }
      await migrateWithSearch(store)
      expect(await shapeOf(store)).toEqual(await fresh())
      expect(await searchIndex.findProblem(store.db, store.dialect)).toBeNull()
    }),
  )
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
