// How a connection to SQLite is set up, how its log of changes is kept short, and what tells that something was committed.

import { statSync } from 'node:fs'
import type Database from 'better-sqlite3'

/** How long the opening of a database waits for another process. Nothing is served yet. */
const openingTimeoutMs = 5000
/** The log of changes (WAL) goes into the database once it has so many pages of 4 KiB (maintenance.ts) … */
export const checkpointPages = 1000
/** … or within a commit that finds so many in it, whatever is in the file already. */
const maxWalPages = 16 * checkpointPages
/** Its file is cut back to this, once nobody reads an old state any more. */
export const maxWalBytes = 16 * 1024 * 1024

/** Every connection that can write is opened with this. */
export function prepareConnection(database: Database.Database): Database.Database {
  database.pragma(`busy_timeout = ${openingTimeoutMs}`)
  database.pragma('journal_mode = WAL')
  prepareReader(database)
  database.pragma(`wal_autocheckpoint = ${maxWalPages}`)
  database.pragma(`journal_size_limit = ${maxWalBytes}`)
  return database
}

/** Enough for the inner pages of a database of some millions of rows: with the usual 2 MiB a large one is read from the file again and again. */
const cacheKib = 32 * 1024

export function prepareReader(database: Database.Database): Database.Database {
  database.pragma(`cache_size = -${cacheKib}`)
  database.pragma('synchronous = FULL')
  database.pragma('foreign_keys = ON')
  // SQLite would sleep on the event loop. Who waits does so with busy-retry.ts.
  database.pragma('busy_timeout = 0')
  return database
}

/** Bytes of the log beside a database; 0 when there is none, or the system does not say. */
export function walBytes(file: string): number {
  try {
    return statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0
  } catch {
    return 0
  }
}

/** Another number once others have committed: the engine leaves the connection's own commits out. Asking takes a microsecond. */
export function createForeignCommitCounter(database: Database.Database): () => number {
  const version = database.prepare<[], number>('pragma data_version').pluck()
  return () => version.get() ?? 0
}
