// `accord search rebuild` during writes of other processes: it runs in short transactions and
// repairs all faults.
import { Worker } from 'node:worker_threads'
import { sql } from 'kysely'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { Sqlite } from '../../db/sqlite/driver.ts'
import { withFunctions } from '../../db/sqlite/functions.ts'
import { searchIndex } from '../../src/operations.ts'
import { alone, closeAll, file, openAnew, store } from './grouped.ts'

const count = 2_000
const organization = (name: string) => ({ name, name_key: name, created_at: 'now', updated_at: 'now' })
beforeEach(async () => {
  await openAnew()
  await alone(async (db) => {
    for (let from = 0; from < count; from += 500) {
      const rows = Array.from({ length: 500 }, (_each, index) => organization(`organization ${from + index} of many`))
      await db.insertInto('organizations').values(rows).execute()
    }
  })
})
afterEach(closeAll)

const schema = async () =>
  (await sql<{ name: string }>`select name from sqlite_schema order by name`.execute(store.db)).rows.map(
    ({ name }) => name,
  )

/** More segments than a merge combines, so that a merge is always due. */
const writesAtOnce = 17

/** Simulates another process that creates, changes and deletes organizations. */
function otherWriter(): { write: (at: number) => void; close: () => void } {
  const database = new Sqlite(file)
  database.pragma('synchronous = off')
  withFunctions(database)
  const statement = (text: string) => database.prepare<unknown[]>(text)
  const isOf = "entity_type = 'organizations' and entity_id"
  const insert = statement(
    "insert into organizations (name, name_key, created_at, updated_at) values (?, ?, 'now', 'now')",
  )
  const index = statement(
    "insert into search_index (entity_type, entity_id, title, subtitle, body) values ('organizations', ?, ?, '', '')",
  )
  const [rename, reindex] = ['organizations set name = ? where id', `search_index set title = ? where ${isOf}`].map(
    (rest) => statement(`update ${rest} = ?`),
  )
  const [remove, forget] = ['organizations where id', `search_index where ${isOf}`].map((rest) =>
    statement(`delete from ${rest} = ?`),
  )
  return {
    write: database.transaction((at: number) => {
      const name = `late ${at}`
      index.run(insert.run(name, name).lastInsertRowid, name)
      for (const id of [1 + ((at * 13) % count), count + 1 + ((at * 7) % (at + 1))]) {
        for (const each of [rename, reindex]) each?.run(`changed ${at}`, id)
      }
      for (const each of [remove, forget]) each?.run(1 + ((at * 29 + 5) % (count + at)))
    }).immediate,
    close: () => database.close(),
  }
}

it('leaves others time to write, has what they write, and ends while they do', async () => {
  expect(await searchIndex.rebuildOnline(store)).toBe(count)
  const before = await schema()
  // Damages the index: missing trigrams, missing documents, and documents with wrong content.
  await sql`insert into search_index_pieces (search_index_pieces) values ('delete-all')`.execute(store.db)
  await sql`delete from search_index where entity_id % 7 = 0`.execute(store.db)
  await sql`update search_index set title = 'strange' where entity_id % 11 = 0`.execute(store.db)
  await sql`insert into search_index (entity_type, entity_id, title, subtitle, body) values ('leads', 7, 'gone', '', '')`.execute(
    store.db,
  )
  await sql`insert into search_index (entity_type, entity_id, title, subtitle, body) values ('nothing', 7, 'strange', '', '')`.execute(
    store.db,
  )
  expect(await searchIndex.findProblem(store.db, store.dialect)).not.toBeNull()

  const other = otherWriter()
  let written = 0
  const { transaction } = store
  // Writes between the steps, so that every step finds new writes.
  vi.spyOn(store, 'transaction').mockImplementation((work, options) => {
    for (let each = 0; each < writesAtOnce; each++) other.write(written++)
    return transaction(work, options)
  })
  const asked = vi.spyOn(Worker.prototype, 'postMessage')
  await searchIndex.rebuildOnline(store)
  other.close()
  // Old indexes are emptied in steps, because dropping them whole would block writers for long.
  for (const index of store.dialect.fullText.rebuild.indexes('search_index'))
    expect(String(asked.mock.calls)).toContain(`delete from ${index}_old_data`)
  vi.restoreAllMocks()
  expect(written).toBeGreaterThan(100)
  expect(await searchIndex.findProblem(store.db, store.dialect)).toBeNull()
  expect(await schema()).toEqual(before)
}, 120_000)

it('goes on after one that was cut off', async () => {
  const before = await schema()
  const { rebuild: renewal } = store.dialect.fullText
  const [index = ''] = renewal.indexes('search_index')
  await alone((db) => renewal.begin(db as never, 'search_index', index))
  expect(await schema()).not.toEqual(before)
  expect(await searchIndex.rebuildOnline(store)).toBe(count)
  expect(await schema()).toEqual(before)
  expect(await searchIndex.findProblem(store.db, store.dialect)).toBeNull()
})

it('mends an index that lacks a table of its own', async () => {
  const before = await schema()
  const [words = '', pieces = ''] = store.dialect.fullText.rebuild.indexes('search_index')
  const raw = new Sqlite(file)
  raw.unsafeMode()
  raw.exec(`drop table ${words}_idx; drop table ${pieces}_docsize`)
  raw.close()
  expect(await searchIndex.rebuildOnline(store)).toBe(count)
  expect(await schema()).toEqual(before)
  expect(await searchIndex.findProblem(store.db, store.dialect)).toBeNull()
})
