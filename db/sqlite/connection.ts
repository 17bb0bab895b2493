// Configures connections to SQLite, limits the size of the log (WAL) and detects commits of other
// connections.

import { statSync } from 'node:fs'
import type Database from 'better-sqlite3'

/**
 * The maximum time in milliseconds that SQLite waits for a lock while a database is opened. SQLite
 * may block the thread then, because no request is served yet.
 */
const openingTimeoutMs = 5000
/**
 * The number of log pages at which maintenance runs a checkpoint (maintenance.ts). Counts the pages
 * of 4 KiB that are not yet in the database file.
 */
export const checkpointPages = 1000
/** The number of log pages at which a commit runs the checkpoint itself. */
const maxWalPages = 16 * checkpointPages
/** The size in bytes to which SQLite truncates the log file after a checkpoint. */
export const maxWalBytes = 16 * 1024 * 1024

/** Applies the settings of a connection that can write, and returns the connection. */
export function prepareConnection(database: Database.Database): Database.Database {
  database.pragma(`busy_timeout = ${openingTimeoutMs}`)
  database.pragma('journal_mode = WAL')
  prepareReader(database)
  database.pragma(`cache_size = -${writerCacheKib}`)
  database.pragma(`wal_autocheckpoint = ${maxWalPages}`)
  database.pragma(`journal_size_limit = ${maxWalBytes}`)
  return database
}

/**
 * The page cache of a connection in KiB, with room for the inner pages of tables with millions of
 * rows. With the default of 2 MiB, SQLite would read these pages from the file again and again.
 */
const cacheKib = 32 * 1024
/**
 * The page cache of a connection that writes. A transaction that changes more pages writes them to
 * the log before its commit, so a commit writes at most this much at once, which takes some tens of
 * milliseconds.
 */
const writerCacheKib = 16 * 1024

export function prepareReader(database: Database.Database): Database.Database {
  database.pragma(`cache_size = -${cacheKib}`)
  database.pragma('synchronous = FULL')
  database.pragma('foreign_keys = ON')
  // A busy timeout would block the event loop. busy-retry.ts retries instead.
  database.pragma('busy_timeout = 0')
  return database
}

/**
 * Returns the size of the log beside a database file in bytes, or 0 when the log is missing or
 * cannot be read.
 */
export function walBytes(file: string): number {
  try {
    return statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0
  } catch {
    return 0
  }
}

/**
 * Returns a function that returns a number. The number changes when another connection commits, but
 * not when `database` commits. A call takes about a microsecond.
 */
export function createForeignCommitCounter(database: Database.Database): () => number {
  const version = database.prepare<[], number>('pragma data_version').pluck()
  return () => version.get() ?? 0
}
