// How a connection to SQLite is set up, how its log of changes is kept short, and what tells that something was committed.

import { statSync } from 'node:fs'
import type Database from 'better-sqlite3'

/** How long the opening of a database waits for another process. Nothing is served yet. */
const OPENING_MS = 5000
/** The log of changes (WAL) goes into the database once it has so many pages of 4 KiB (maintenance.ts) … */
export const LOG_PAGES = 1000
/** … or within a commit that finds so many in it, whatever is in the file already. */
const MOST_LOG_PAGES = 16 * LOG_PAGES
/** Its file is cut back to this, once nobody reads an old state any more. */
export const LONGEST_LOG = 16 * 1024 * 1024

/** Every connection that can write is opened with this. */
export function prepareConnection(database: Database.Database): Database.Database {
  database.pragma(`busy_timeout = ${OPENING_MS}`)
  database.pragma('journal_mode = WAL')
  prepareReader(database)
  database.pragma(`wal_autocheckpoint = ${MOST_LOG_PAGES}`)
  database.pragma(`journal_size_limit = ${LONGEST_LOG}`)
  return database
}

/** Enough for the inner pages of a database of some millions of rows: with the usual 2 MiB a large one is read from the file again and again. */
const CACHE_KIB = 32 * 1024

export function prepareReader(database: Database.Database): Database.Database {
  database.pragma(`cache_size = -${CACHE_KIB}`)
  database.pragma('synchronous = FULL')
  database.pragma('foreign_keys = ON')
  // SQLite would sleep on the event loop. Who waits does so with busy-retry.ts.
  database.pragma('busy_timeout = 0')
  return database
}

/** Bytes of the log beside a database; 0 when there is none, or the system does not say. */
export function sizeOfLog(file: string): number {
  try {
    return statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0
  } catch {
    return 0
  }
}

/** Another number once others have committed: the engine leaves the connection's own commits out. Asking takes a microsecond. */
export function commitsOfOthers(database: Database.Database): () => number {
  const version = database.prepare<[], number>('pragma data_version').pluck()
  return () => version.get() ?? 0
}
