// The settings of a connection to SQLite, the bounds of its log (WAL), and the counter of foreign
// commits.

import { statSync } from 'node:fs'
import type Database from 'better-sqlite3'

/** While a database is opened no request is served, so SQLite may block on a lock. */
const openingTimeoutMs = 5000
/**
 * Maintenance checkpoints the log once this many pages of 4 KiB are not in the file
 * (maintenance.ts).
 */
export const checkpointPages = 1000
/** A commit that finds this many pages in the log runs the checkpoint itself. */
const maxWalPages = 16 * checkpointPages
/** The log file is cut back to this once no reader uses an old state. */
export const maxWalBytes = 16 * 1024 * 1024

/** Applied to every connection that can write. */
export function prepareConnection(database: Database.Database): Database.Database {
  database.pragma(`busy_timeout = ${openingTimeoutMs}`)
  database.pragma('journal_mode = WAL')
  prepareReader(database)
  database.pragma(`wal_autocheckpoint = ${maxWalPages}`)
  database.pragma(`journal_size_limit = ${maxWalBytes}`)
  return database
}

/**
 * Holds the inner pages of a database with millions of rows; the default 2 MiB reads them from the
 * file again and again.
 */
const cacheKib = 32 * 1024

export function prepareReader(database: Database.Database): Database.Database {
  database.pragma(`cache_size = -${cacheKib}`)
  database.pragma('synchronous = FULL')
  database.pragma('foreign_keys = ON')
  // A timeout would block the event loop; busy-retry.ts waits instead.
  database.pragma('busy_timeout = 0')
  return database
}

/** Bytes of the log beside a database file; 0 when it is missing or cannot be read. */
export function walBytes(file: string): number {
  try {
    return statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0
  } catch {
    return 0
  }
}

/**
 * A number that changes when another connection commits; own commits do not count. A call takes
 * about a microsecond.
 */
export function createForeignCommitCounter(database: Database.Database): () => number {
  const version = database.prepare<[], number>('pragma data_version').pluck()
  return () => version.get() ?? 0
}
