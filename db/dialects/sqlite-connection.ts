// One connection to SQLite as Kysely uses it: what better-sqlite3 can bind, statements that are kept, and transactions that
// end as a whole. A disk that is full, or fails, makes SQLite undo all of a transaction or one statement of it as it likes.

import { statSync } from 'node:fs'
import type Database from 'better-sqlite3'
import { SqliteDialect as KyselySqliteDialect, type SqliteDatabase, type SqliteStatement } from 'kysely'
import type { Trouble } from './dialect.ts'
import { sqliteTrouble } from './sqlite-errors.ts'

const STATEMENTS_KEPT = 500
/** How long another connection is waited for. */
export const PATIENCE_MS = 5000
/** The log of changes (WAL) goes into the database once it has so many pages of 4 KiB … */
const LOG_PAGES = 1000
/** … and its file is cut back to this, once nobody reads an old state any more. */
export const LONGEST_LOG = 16 * 1024 * 1024

/** A transaction that is answered is on the disk: every connection that can write is opened with this. */
export function prepareConnection(database: Database.Database): Database.Database {
  database.pragma('journal_mode = WAL')
  database.pragma('synchronous = FULL')
  database.pragma('foreign_keys = ON')
  database.pragma(`busy_timeout = ${PATIENCE_MS}`)
  database.pragma(`wal_autocheckpoint = ${LOG_PAGES}`)
  database.pragma(`journal_size_limit = ${LONGEST_LOG}`)
  return database
}

/**
 * Empties the log into the database when it is longer than it should be, and cuts it back. Waits for nobody: as long as an old
 * state is read, or a transaction is under way, it stays as it is.
 */
export function cutSqliteLog(database: Database.Database, file: string): void {
  if (!database.open || database.inTransaction) return
  const size = statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0
  if (size <= LONGEST_LOG) return
  database.pragma('busy_timeout = 0')
  try {
    database.pragma('wal_checkpoint(truncate)')
  } catch (error) {
    if (sqliteTrouble(error) === null) throw error
  } finally {
    database.pragma(`busy_timeout = ${PATIENCE_MS}`)
  }
}

/** What keeps the connection from writing: null again with the next write that has come to the disk. */
export interface SqliteHealth {
  trouble: Exclude<Trouble, 'busy'> | null
}

export function kyselySqlite(
  database: Database.Database,
  health: SqliteHealth = { trouble: null },
): KyselySqliteDialect {
  return new KyselySqliteDialect({ database: boundDatabase(database, health) })
}

/** Prepared statements are kept by their text; streams get their own, since a running statement cannot run again. */
function boundDatabase(database: Database.Database, health: SqliteHealth): SqliteDatabase {
  const kept = new Map<string, Database.Statement<unknown[]>>()
  const guard = guardOf(database, health)

  function prepared(text: string): Database.Statement<unknown[]> {
    const known = kept.get(text)
    if (known !== undefined) {
      kept.delete(text)
      kept.set(text, known)
      return known
    }
    // A transaction that reads first and writes later would fail at once when another process writes in between.
    const statement = database.prepare<unknown[]>(text === 'begin' ? 'begin immediate' : text)
    if (/^\s*(create|alter|drop)\b/i.test(text)) {
      kept.clear()
      return statement
    }
    kept.set(text, statement)
    const oldest = kept.size > STATEMENTS_KEPT ? kept.keys().next().value : undefined
    if (oldest !== undefined) kept.delete(oldest)
    return statement
  }

  return {
    close: () => {
      database.close()
    },
    prepare: (text): SqliteStatement => {
      const statement = prepared(text)
      // What a pragma does is no proof: most of them write nothing.
      const writes = !statement.readonly && !/^\s*pragma\b/i.test(text)
      return {
        reader: statement.reader,
        all: (parameters) => guard(text, writes, () => statement.all(parameters.map(bindable))),
        run: (parameters) => guard(text, writes, () => statement.run(parameters.map(bindable))),
        iterate: (parameters) => database.prepare<unknown[]>(text).iterate(parameters.map(bindable)),
      }
    },
  }
}

type Guard = <T>(text: string, writes: boolean, work: () => T) => T

/**
 * After trouble a transaction takes no further statement and cannot be committed, whatever SQLite has left of it: what came
 * behind would stand alone. And a connection never stays inside a transaction nobody will end.
 */
function guardOf(database: Database.Database, health: SqliteHealth): Guard {
  let isInside = false
  let hasWritten = false
  let lost: unknown

  function attempt<T>(work: () => T, isForWriting: boolean): T {
    try {
      return work()
    } catch (error) {
      const trouble = sqliteTrouble(error)
      if (trouble !== null && trouble !== 'busy') {
        // What cannot be read is told to whoever reads it.
        if (isForWriting) health.trouble = trouble
        if (isInside) lost ??= error
      }
      throw error
    }
  }

  function undo(): void {
    try {
      if (database.inTransaction) database.exec('rollback')
    } catch (error) {
      // What failed has undone it, or the disk cannot; then it is tried again before the next one begins.
      if (sqliteTrouble(error) === null) throw error
    }
  }

  return (text, writes, work) => {
    if (text === 'begin') {
      undo()
      const begun = attempt(work, true)
      isInside = true
      hasWritten = false
      lost = undefined
      return begun
    }
    if (text === 'rollback') {
      isInside = false
      undo()
      return NOTHING as ReturnType<typeof work>
    }
    if (isInside && lost === undefined && !database.inTransaction)
      lost = new Error('The database has ended the transaction by itself.')
    if (isInside && lost !== undefined) throw lost
    const done = attempt(work, writes || text === 'commit')
    if (text === 'commit') isInside = false
    else if (writes && hasChanged(done)) hasWritten = true
    if (!isInside && hasWritten) {
      hasWritten = false
      health.trouble = null
    }
    return done
  }
}

/** Of a statement that writes: the rows it returns, or how many there were. None at all needs no disk. */
const hasChanged = (done: unknown): boolean =>
  Array.isArray(done) ? done.length > 0 : (done as { changes: number }).changes > 0

const NOTHING = { changes: 0, lastInsertRowid: 0 }

/** better-sqlite3 binds no booleans, and numbers beyond 32 bits only as floats; the rest it refuses is our defect. */
export function bindable(value: unknown, index: number): string | number | bigint | Uint8Array | null {
  if (value === null || typeof value === 'string' || typeof value === 'bigint') return value
  if (typeof value === 'boolean') return value ? 1 : 0
  if (typeof value === 'number' && Number.isFinite(value)) {
    return Number.isSafeInteger(value) && Math.abs(value) > 0x7fffffff ? BigInt(value) : value
  }
  if (value instanceof Uint8Array) return value
  throw new TypeError(
    `Parameter ${index + 1} is ${describeValue(value)}; a column takes text, a finite number, a boolean, bytes or null. Write dates as ISO text and objects as JSON text.`,
  )
}

function describeValue(value: unknown): string {
  if (value instanceof Date) return 'a Date'
  if (Array.isArray(value)) return 'an array'
  if (typeof value === 'object') return 'an object'
  return typeof value === 'number' ? String(value) : typeof value
}
