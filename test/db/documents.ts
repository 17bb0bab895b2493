// Inserts and finds records with search documents in the database of grouped.ts.

import { sql } from 'kysely'
import { expect, vi } from 'vitest'
import { searchFold, searchPhrase } from '../../db/schema/search-folding.ts'
import { Sqlite } from '../../db/sqlite/driver.ts'
import type { Db, RecordRef, Store } from '../../db/store.ts'
import { searchIndex } from '../../src/operations.ts'
import { store } from './grouped.ts'

export const entity = 'organizations'
const named = (name: string) => ({ name, name_key: name.toLowerCase() })

/** Inserts a record. The caller defers the update of its document. */
export async function insert(db: Pick<Db, 'insertInto'>, name: string): Promise<RecordRef> {
  const row = { ...named(name), created_at: 'now', updated_at: 'now' }
  const { id } = await db.insertInto(entity).values(row).returning('id').executeTakeFirstOrThrow()
  return { entity, id }
}

export async function make(db: Db, name: string, of: Pick<Store, 'deferToCommit'> = store): Promise<number> {
  const made = await insert(db, name)
  await of.deferToCommit(db, [made])
  return made.id
}

export async function rename(db: Db, id: number, name: string): Promise<void> {
  await db.updateTable(entity).set(named(name)).where('id', '=', id).execute()
  await store.deferToCommit(db, [{ entity, id }])
}

export async function remove(db: Db, id: number): Promise<void> {
  await db.deleteFrom(entity).where('id', '=', id).execute()
  await store.deferToCommit(db, [{ entity, id }])
}

export const records = async ({ db }: Pick<Store, 'db'> = store): Promise<string[]> =>
  (await db.selectFrom(entity).select('name').orderBy('id').execute()).map(({ name }) => name)

export const titles = async ({ db }: { db: Db } = store): Promise<string[]> =>
  (await db.selectFrom('search_index').select('title').orderBy('id').execute()).map(({ title }) => title)

/** Returns the records found by the beginning of a word, and by letters inside a word. */
export async function found({ db, dialect }: Store, word: string): Promise<{ words: number[]; pieces: number[] }> {
  const hits = dialect.fullText.hits('search_index', {
    phrases: [[searchPhrase(word.slice(0, -1))]],
    types: [entity],
    limit: 9,
  })
  const pieces = dialect.fullText.candidates('search_index', entity, [searchFold(word.slice(1))], [])
  const byWord = sql<{ id: number }>`select entity_id as id from search_index where id in (select id from (${hits}))`
  const byPiece = sql<{ id: number }>`select id from (${pieces}) as found`
  const [words, inside] = await Promise.all([byWord, byPiece].map((query) => query.execute(db)))
  return { words: (words?.rows ?? []).map(({ id }) => id), pieces: (inside?.rows ?? []).map(({ id }) => id) }
}

export const whole = async (of: Store): Promise<void> => {
  expect(await searchIndex.findProblem(of.db, of.dialect)).toBeNull()
  expect(await titles(of)).toEqual(await records(of))
}

/** Returns whether a statement inserts documents. */
export const writesDocuments = (text: string): boolean => text.startsWith('insert into "search_index"')

/** Calls `act` once, during the deferred work of the next group. */
export function whenFinishing(act: () => void): void {
  const database = new Sqlite(':memory:')
  const statement = Object.getPrototypeOf(database.prepare('select 1')) as { run: (...all: unknown[]) => unknown }
  database.close()
  const { run } = statement
  const spy = vi.spyOn(statement, 'run').mockImplementation(function (this: { source: string }, ...all) {
    if (writesDocuments(this.source)) {
      spy.mockRestore()
      act()
    }
    return run.apply(this, all)
  })
}

/** Runs pending promises without a turn of the event loop, so that writes wait for their commit. */
export async function ticks(): Promise<void> {
  for (let count = 0; count < 200; count++) await undefined
}
