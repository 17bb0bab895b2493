// The check of the search index finds damage without the write lock and does not block the event
// loop.
import { Worker } from 'node:worker_threads'
import type Database from 'better-sqlite3'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { Sqlite } from '../../db/sqlite/driver.ts'
import { searchIndex } from '../../src/operations.ts'
import { checkSearch } from '../../src/resources/system/housekeeping.ts'
import { make } from './documents.ts'
import { alone, closeAll, file, openAnew, store } from './grouped.ts'

let other: Database.Database
beforeEach(async () => {
  await openAnew()
  for (const name of ['Anvil', 'Bellows', 'Crucible']) await alone((db) => make(db, name))
  other = new Sqlite(file).unsafeMode()
})
afterEach(async () => {
  vi.restoreAllMocks()
  other.close()
  await closeAll()
})

/** Returns the problem of the index while another connection has the write lock. */
const found = () => {
  other.exec('begin immediate')
  return searchIndex.findProblem(store.db, store.dialect)
}

it('finds nothing wrong in an index that is whole', { timeout: 60_000 }, async () => {
  expect(await found()).toBeNull()
})

it.each([
  ['words are gone', "insert into search_index_words (search_index_words) values ('delete-all')", 'malformed'],
  ['a word is strange', "insert into search_index_words (rowid, title) values (1, 'strange')", 'malformed'],
  [
    'bytes are not those of an index',
    "update search_index_words_data set block = x'00' where id > 10",
    'corruption|malformed',
  ],
  ['a table of it is gone', 'drop table search_index_words_docsize', 'no such table'],
  [
    'pieces are gone',
    'delete from search_index_pieces where rowid = (select min(id) from search_index)',
    'some have no trigrams',
  ],
])('finds that %s', async (_, damage, said) => {
  other.exec(damage)
  expect(await found()).toMatch(new RegExp(`^its words are not those of the records \\(.*(${said})`))
})

it('checks on a thread, by a connection that cannot write', { timeout: 60_000 }, async () => {
  const texts = vi.spyOn(Sqlite.prototype, 'prepare')
  const asked = vi.spyOn(Worker.prototype, 'postMessage')
  const before = other.pragma('data_version')
  expect(await searchIndex.findProblem(store.db, store.dialect)).toBeNull()
  expect(asked.mock.calls.filter(([text]) => String(text).includes('integrity-check'))).toHaveLength(1)
  expect(texts.mock.calls.filter(([text]) => text.includes('integrity-check'))).toEqual([])
  expect(other.pragma('data_version')).toEqual(before)
})

it('takes a check that cannot be made for no damage', { timeout: 60_000 }, async () => {
  vi.spyOn(Worker.prototype, 'postMessage').mockImplementation(function (this: Worker, message: unknown) {
    if (message === null) void this.terminate()
    else queueMicrotask(() => this.emit('message', { failure: 'database or disk is full', code: 'SQLITE_FULL' }))
  })
  const checked = checkSearch.run({ db: store.db, services: { store, searchIndex } } as never, {} as never, {} as never)
  await expect(checked).rejects.toThrow('database or disk is full')
})
