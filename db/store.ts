// Opens a database by its URL. This is the one place that chooses an engine. Migrations are in
// migrate.ts, so that a test can open an image that is already migrated.

import { existsSync } from 'node:fs'
import type { Kysely } from 'kysely'
import type { Dialect, StorageFault } from './dialect.ts'
import { isPostgresUrl } from './postgres/dialect.ts'
import { openPostgresStore } from './postgres/open.ts'
import { createSnapshot, type DatabaseSnapshot } from './snapshots.ts'
import { checkpointSqliteIfUnused, sqliteSideFiles } from './sqlite/backup-copies.ts'
import { maxBusyWaitMs } from './sqlite/busy-retry.ts'
import {
  isSqliteUrl,
  openSqlite,
  openSqliteImage,
  openSqliteSnapshot,
  sqliteDialect,
  sqliteFile,
} from './sqlite/dialect.ts'
import { openSqliteStore } from './sqlite/open.ts'
import type { RecordedFault } from './sqlite/storage-faults.ts'
import type { DB } from './tables.gen.ts'

export type { DatabaseSnapshot } from './snapshots.ts'
export type { FaultKind, RecordedFault } from './sqlite/storage-faults.ts'

export type Db = Kysely<DB>

/** Why the last write failed. Null after a write that reached the disk. */
export type WriteFault = Exclude<StorageFault, 'busy'> | null

export interface RecordRef {
  /** The name of its table and in paths, such as `persons`. */
  readonly entity: string
  readonly id: number
}

export type DeferredWork = (db: Db, records: readonly RecordRef[]) => Promise<void>

export interface TransactionOptions {
  /** It takes long, so other writers do not wait for its commit. */
  readonly isLong?: boolean
  /** With `isLong`: large changes are split into savepoints with few changes each. */
  readonly inParts?: boolean
}

export interface Store {
  readonly db: Db
  /**
   * Runs `work` in a transaction and commits it; an error rolls it back. PostgreSQL runs `work`
   * again after a conflict with another transaction, so `work` must not change anything but the
   * database.
   */
  transaction<T>(work: (db: Db) => Promise<T>, options?: TransactionOptions): Promise<T>
  readonly dialect: Dialect
  readonly url: string
  close(): Promise<void>
  health(): WriteFault
  /** After a fault, tries a write and answers the new health. */
  retryWrite(): Promise<WriteFault>
  /**
   * The faults of statements and maintenance since the database was opened, and whether each lasts.
   */
  faults(): RecordedFault[]
  /**
   * Changes once a commit has changed the database, except for housekeeping tables. A commit of
   * this process counts when it is answered, one of another process with the next turn of the event
   * loop or `renewReadTransaction`. A cache of committed data is valid for the generation that was
   * read before the data.
   */
  commitGeneration(): number
  /**
   * Later reads are at least as new as this moment, or as the one `agoMs` milliseconds ago. Without
   * this call, reads of one turn of the event loop share one moment.
   */
  renewReadTransaction(agoMs?: number): void
  /**
   * Settles once everything that can be read now is on the disk; null when it already is. Rejects
   * when the disk does not confirm it. For data that a power cut must not undo once a client has
   * seen it, such as the id of an event.
   */
  whenDurable(): Promise<void> | null
  /**
   * Checks, off the event loop, that the database file, its log and the folders are those that were
   * opened. Never rejects.
   */
  verifyFiles(): Promise<void>
  /**
   * The problem found by the last check, in a sentence, or null. While there is one, reads go on
   * and writes are refused.
   */
  lostFiles(): string | null
  /** Throws while the last check has found a problem. */
  assertFiles(): void
  /**
   * `isWriteComing` tells whether more writes are about to come: then a group waits for them a
   * little before its commit.
   */
  onGroupCommit(isWriteComing: () => boolean): void
  /**
   * Sets the work that runs once for all records deferred by the members of a group, inside its
   * transaction, before its commit.
   */
  beforeGroupCommit(work: DeferredWork): void
  /**
   * Leaves these records to the work of `beforeGroupCommit`. `db` is the transaction. The work runs
   * at once where transactions do not share a commit. Throws outside of a transaction.
   */
  deferToCommit(db: Db, records: readonly RecordRef[]): Promise<void>
  /** How many transactions ran again after a conflict with another one. */
  retries(): number
  /** Length of the log (WAL) in bytes; 0 in memory. */
  walBytes(): number
  /**
   * Calls the listener right after each commit of this process. The listener must not throw.
   * Returns a function that removes it.
   */
  onCommit(listener: () => void): () => void
  /** Runs the maintenance that is due. To be called now and then. Never rejects. */
  maintain(): Promise<void>
  /** The whole database as bytes for `openImage`. */
  image(): Promise<Buffer>
  /**
   * The database as it is now, for long reads while others write. It must be closed, because the
   * log cannot be emptied until then.
   */
  snapshot(): Promise<DatabaseSnapshot>
}

export interface DatabaseCopy extends DatabaseSnapshot {
  readonly dialect: Dialect
}

export interface PostgresOptions {
  /** Maximum number of connections of each of the two pools. */
  max?: number
  /** The server is behind a pooler in transaction mode, such as PgBouncer. */
  isPooled?: boolean
  /** Called before each commit; tests throw a serialization failure here. */
  beforeCommit?: () => void
}

export interface StoreOptions {
  /**
   * How long writes wait for each other to share one commit, in milliseconds. 0: each has its own.
   */
  groupMs?: number
  /** How long a transaction waits for a lock that another process holds, in milliseconds. */
  waitMs?: number
  /**
   * A disk whose sync takes longer than this many milliseconds never syncs on the serving thread.
   */
  slowSyncMs?: number
  /** Folders that must stay the same too: once one is removed or replaced, writes are refused. */
  folders?: readonly string[]
  postgres?: PostgresOptions
}

export function openStore(url: string, opening: StoreOptions = {}): Store {
  if (isPostgresUrl(url)) return openPostgresStore(url, opening)
  if (!isSqliteUrl(url)) {
    const scheme = /^[a-z][a-z0-9+.-]*:/i.exec(url)?.[0] ?? 'no scheme'
    throw new Error(`Cannot open a database URL with ${scheme}; write sqlite:<path> or postgres://<host>/<database>.`)
  }
  return openSqliteStore(openSqlite(url), url, opening)
}

/** Whether the URL names an existing database. */
export function storeExists(url: string): boolean {
  const file = isSqliteUrl(url) ? sqliteFile(url) : null
  return file !== null && existsSync(file)
}

/** The file of a database, null for one in memory. */
export const databaseFile = (url: string): string | null => (isSqliteUrl(url) ? sqliteFile(url) : null)

/** Opens a copy that no process writes to. Reading it leaves no files beside it. */
export const openCopy = (file: string): DatabaseCopy => ({
  ...createSnapshot(openSqliteSnapshot(file, maxBusyWaitMs)),
  dialect: sqliteDialect,
})

/**
 * Writes the log into the database file and removes the log. Returns false, and changes nothing,
 * while another process uses it.
 */
export const checkpointIfUnused = (file: string): boolean => checkpointSqliteIfUnused(file)

/** The database file and the files beside it, which have to be moved together. */
export const filesOfDatabase = (file: string): string[] => [...sqliteSideFiles(file), file]

/** A copy in memory, independent of the store the image came from. */
export function openImage(image: Buffer): Store {
  return openSqliteStore(openSqliteImage(image), 'sqlite::memory:')
}
