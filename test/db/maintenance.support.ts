// Observes the maintenance of a database: the tasks of its thread, its WAL and its full-text index.
import { statSync } from 'node:fs'
import { Worker } from 'node:worker_threads'
import type Database from 'better-sqlite3'
import { sql } from 'kysely'
import { type MockInstance, vi } from 'vitest'
import { Sqlite, sqliteLibrary } from '../../db/sqlite/driver.ts'
import type { DatabaseSnapshot, RecordRef } from '../../db/store.ts'
import { searchIndex } from '../../src/operations.ts'
import { insert } from './documents.ts'
import { alone, closeAll, file, openAnew, store } from './grouped.ts'

export const sources = ({ db }: Pick<DatabaseSnapshot, 'db'>) => db.selectFrom('lead_sources').select('id').execute()
const page = 4096
export const bytes = (): number => statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0
const noted = <T>(ask: (other: Database.Database) => T): T => {
  const other = new Sqlite(file, { readonly: true })
  try {
    return ask(other)
  } finally {
    other.close()
  }
}
/** Returns the number of pages in the WAL, and of those already copied to the database file. */
export const log = (): { pages: number; done: number } =>
  noted((other) => {
    // A connection opens the WAL at its first read.
    other.exec('select count(*) from sqlite_schema')
    const [, pages = 0, done = 0] = other.prepare<[], number[]>('pragma wal_checkpoint(noop)').raw().get() ?? []
    return { pages, done }
  })
/** Returns the numbers of segments of the word index and of the trigram index. */
export const pieces = (): number[] =>
  noted((other) =>
    ['words', 'pieces'].map(
      (index) =>
        other.prepare<[], number>(`select count(distinct segid) from search_index_${index}_idx`).pluck().get() ?? 0,
    ),
  )
/** Returns a long name, whose row and index entry take a bit more than a hundred pages. */
export const long = (name: string): string => name.padEnd(33 * page, '.')

/** Records the tasks of threads. */
export let asked: MockInstance<Worker['postMessage']>
/** Calls `act` before each task. */
export function whenAsked(act: (worker: Worker, text: string) => void): void {
  asked.mockRestore()
  const { postMessage } = Worker.prototype
  asked = vi.spyOn(Worker.prototype, 'postMessage').mockImplementation(function (this: Worker, message: unknown) {
    act(this, String(message))
    postMessage.call(this, message)
  })
}
export const isStep = (text: unknown): boolean => String(text).includes("'merge'")
export const steps = (): number => asked.mock.calls.filter(([text]) => isStep(text)).length
export const checkpoints = (): number =>
  asked.mock.calls.filter(([text]) => String(text).includes('wal_checkpoint')).length

/** Creates an index of some thousand pages in sixty segments. */
export function makeMuch(): Promise<void> {
  let seed = 7
  const word = (): string => {
    seed = (seed * 16807) % 2147483647
    return seed.toString(36)
  }
  return alone(async (db) => {
    for (let count = 0; count < 60; count++) {
      const stale: RecordRef[] = []
      for (let each = 0; each < 10; each++) stale.push(await insert(db, Array.from({ length: 300 }, word).join(' ')))
      await searchIndex.update(db, stale)
    }
  })
}

/**
 * Simulates another process: a thread that writes on request as soon as it gets the lock, and
 * reports it.
 */
export const anotherProcess = (): Worker =>
  new Worker(
    `const { parentPort, workerData: { library, file } } = require('node:worker_threads')
    const database = new (require(library))(file, { timeout: 5000 })
    parentPort.on('message', () => {
      database.exec("begin immediate; create table others (id integer) strict; commit")
      parentPort.postMessage('written')
    })`,
    {
      eval: true,
      execArgv: [],
      workerData: { library: sqliteLibrary, file },
    },
  )

export async function openWatched(): Promise<void> {
  await openAnew()
  // Runs the maintenance that is due after the migrations.
  await store.maintain()
  await sql`pragma wal_checkpoint(truncate)`.execute(store.db)
  asked = vi.spyOn(Worker.prototype, 'postMessage')
}

export async function closeWatched(): Promise<void> {
  asked.mockRestore()
  await closeAll()
}
