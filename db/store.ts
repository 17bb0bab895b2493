// Opens a database by its URL. Only this file chooses a database engine. `openStore` applies no
// migrations (see migrate.ts), so that a test can open an image that is already migrated.

import { existsSync } from 'node:fs'
import type { Kysely } from 'kysely'
import type { Dialect, StorageFault } from './dialect.ts'
import type { Pools as PostgresPools } from './postgres/connection.ts'
import { firstHostUrl } from './postgres/hosts.ts'
import { openPostgresStore } from './postgres/open.ts'
import { dumpDatabase } from './postgres/programs.ts'
import { hidePassword, isPostgresUrl } from './postgres/url.ts'
import { createSnapshot, type DatabaseSnapshot } from './snapshots.ts'
import { checkpointSqliteIfUnused, copySqlite, sqliteSideFiles } from './sqlite/backup-copies.ts'
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

export { findServerUse } from './postgres/installation-probe.ts'
export { readDump, restoreDump } from './postgres/programs.ts'
export type { DatabaseSnapshot } from './snapshots.ts'
export type { FaultKind, RecordedFault } from './sqlite/storage-faults.ts'

export type Db = Kysely<DB>

/** The reason why the last write failed. Null after a write that reached the disk. */
export type WriteFault = Exclude<StorageFault, 'busy'> | null

export interface RecordRef {
  /** The name of the record's table, such as `persons`. API paths use the same name. */
  readonly entity: string
  readonly id: number
}

export type DeferredWork = (db: Db, records: readonly RecordRef[]) => Promise<void>

export interface TransactionOptions {
  /** It takes long, so other writers do not wait for its commit. */
  readonly isLong?: boolean
  /** With `isLong`: large changes are split into savepoints with few changes each. */
  readonly inParts?: boolean
  /**
   * PostgreSQL: waits for all other writers and runs without them, for work that also changes
   * something beside the database. Writers of SQLite always follow each other.
   */
  readonly isAlone?: boolean
}

export interface SnapshotOptions {
  /** The snapshot may be one of a read replica, see `Store.onReplica`. */
  readonly onReplica?: boolean
}

/**
 * Whether the read replica can answer: `none` is configured, or it has not replayed the latest
 * commits of the primary (`behind`), or it does not answer (`unreachable`).
 */
export type ReplicaState = 'none' | 'ok' | 'behind' | 'unreachable'

export interface PoolUse {
  readonly pool: 'read' | 'write' | 'replica'
  readonly open: number
  readonly idle: number
  /** How many callers wait for a connection. */
  readonly waiting: number
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
  /** After a fault, tries a write and returns the new health. */
  retryWrite(): Promise<WriteFault>
  /**
   * Returns the faults of statements and maintenance since the database was opened. Each entry
   * tells whether the fault still lasts.
   */
  faults(): RecordedFault[]
  /**
   * Returns a number that changes when a commit has changed the database. Commits that change only
   * housekeeping tables do not count. A commit of this process counts before its transaction
   * resolves. A commit of another process counts with the next turn of the event loop or
   * `renewReadTransaction`. Cached data is valid while the number is the same as before the data
   * was read.
   */
  commitGeneration(): number
  /**
   * Makes later reads at least as new as this moment, or as the moment `agoMs` milliseconds ago.
   * Without this call, all reads of one turn of the event loop see the same moment.
   */
  renewReadTransaction(agoMs?: number): void
  /**
   * Returns a promise that resolves once all data that can be read now is on the disk. Returns null
   * when the data is there already. The promise rejects when the disk does not confirm the data.
   * Needed for data that must survive a power cut once a client has seen it, such as the id of an
   * event.
   */
  whenDurable(): Promise<void> | null
  /**
   * Checks off the event loop that the database file, the log and the folders are still those that
   * were opened. Never rejects.
   */
  verifyFiles(): Promise<void>
  /**
   * Returns the problem that the last `verifyFiles` found as a sentence, or null. With a problem,
   * the database can be read but refuses writes.
   */
  lostFiles(): string | null
  /** Throws if the last `verifyFiles` found a problem. */
  assertFiles(): void
  /**
   * Sets the function that tells whether more writes are about to arrive. While the function
   * returns true, a group of transactions waits a little before its commit, so that more writes
   * share the commit.
   */
  onGroupCommit(isWriteComing: () => boolean): void
  /**
   * Sets the work that runs before the commit of each group of transactions, inside the same
   * database transaction. The work receives all records that the group passed to `deferToCommit`.
   */
  beforeGroupCommit(work: DeferredWork): void
  /**
   * Passes records to the work of `beforeGroupCommit`. `db` is the transaction. The work runs at
   * once where transactions do not share a commit. Throws outside of a transaction.
   */
  deferToCommit(db: Db, records: readonly RecordRef[]): Promise<void>
  /**
   * Returns the milliseconds by which the shared clock of all processes, which is that of the
   * database server, is ahead of the clock of this process. 0 before `synchronizeClock`, and for
   * SQLite, whose processes share one machine.
   */
  clockOffsetMs(): number
  /** Compares the clocks now, and again from time to time until `close`. Never rejects. */
  synchronizeClock(): Promise<void>
  /** Returns how many transactions ran again after a conflict with another one. */
  retries(): number
  /** Returns the connections to the database server, by pool. Empty without a server. */
  connections(): PoolUse[]
  /** Rejects with a storage fault when the database server is a standby or does not answer. */
  assertPrimary(): Promise<void>
  /** Asks whether reads would go to the replica now. Rejects when the primary does not answer. */
  replicaState(): Promise<ReplicaState>
  /**
   * Returns whether the replica has `hot_standby_feedback` on; null without an answer. Without the
   * setting the primary removes old rows that a read on the replica needs, and the replica cancels
   * the read.
   */
  replicaSendsFeedback(): Promise<boolean | null>
  /**
   * Runs long reads on the read replica, and on `db` if there is none. The replica is used only if
   * it has replayed all commits up to this call, of every process. If it fails, `work` runs again
   * on `db`.
   */
  onReplica<T>(work: (db: Db) => Promise<T>): Promise<T>
  /** Returns the size of the log (WAL) in bytes; 0 for a database in memory. */
  walBytes(): number
  /**
   * Calls the listener right after each commit of this process. The listener must not throw.
   * Returns a function that removes the listener.
   */
  onCommit(listener: () => void): () => void
  /**
   * Runs the due maintenance, such as a checkpoint. Must be called from time to time. Never
   * rejects.
   */
  maintain(): Promise<void>
  /** Returns the whole database as bytes for `openImage`. */
  image(): Promise<Buffer>
  /**
   * Opens a snapshot of the current data, for long reads while other connections write. The caller
   * must close the snapshot, because an open snapshot keeps the log from being emptied.
   */
  snapshot(options?: SnapshotOptions): Promise<DatabaseSnapshot>
}

export interface DatabaseCopy extends DatabaseSnapshot {
  readonly dialect: Dialect
}

export interface PostgresOptions {
  /** Maximum number of connections of each of the two pools. */
  max?: number
  /** The server is behind a pooler in transaction mode, such as PgBouncer. */
  isPooled?: boolean
  /** The URL of a read replica. */
  replicaUrl?: string | null
  /**
   * Called before each commit with the number of the attempt, from 0; tests throw a serialization
   * failure here.
   */
  beforeCommit?: (attempt: number) => void
  /** Connections that outlive the store; tests open many stores one after another. */
  pools?: PostgresPools
}

export interface StoreOptions {
  /**
   * The maximum time in milliseconds that a write waits for other writes to share its commit. With
   * 0, each write has its own commit.
   */
  groupMs?: number
  /** The maximum time in milliseconds that a transaction waits for a lock of another process. */
  waitMs?: number
  /**
   * A disk is slow if its last sync took more than this many milliseconds. On a slow disk no sync
   * runs on the thread that serves requests.
   */
  slowSyncMs?: number
  /**
   * Folders that are checked like the database file. Once a folder is removed or replaced, writes
   * are refused.
   */
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

/** Returns whether the URL names a database file that exists. */
export function storeExists(url: string): boolean {
  const file = isSqliteUrl(url) ? sqliteFile(url) : null
  return file !== null && existsSync(file)
}

/** Returns the name of the engine. */
export const engineOf = (url: string): Dialect['name'] => (isPostgresUrl(url) ? 'postgres' : 'sqlite')

/** Returns the URL for messages and logs, without a password. */
export const displayUrl = (url: string): string => hidePassword(url)

/** Returns whether the URL names a database on a server, with a host and a database. */
export const isServerUrl = (url: string): boolean => {
  const first = firstHostUrl(url)
  return isPostgresUrl(url) && URL.canParse(first) && new URL(first).pathname.length > 1
}

/** Returns whether the database ends with its process. */
export const isInMemory = (url: string): boolean => isSqliteUrl(url) && sqliteFile(url) === null

/** Returns the path of the database file, or null for a database in memory or on a server. */
export const databaseFile = (url: string): string | null => (isSqliteUrl(url) ? sqliteFile(url) : null)

/**
 * Opens a copy of a database that no process writes to. Reading the copy leaves no files beside the
 * copy.
 */
export const openCopy = (file: string): DatabaseCopy => ({
  ...createSnapshot(openSqliteSnapshot(file, maxBusyWaitMs)),
  dialect: sqliteDialect,
})

/**
 * Writes a copy of the database into a new file while other connections read and write. Resolves
 * once the file is synced to the disk. The result is the data of the copy; the caller must close
 * it.
 */
export async function copyStore(store: Store, path: string): Promise<DatabaseCopy> {
  if (!isPostgresUrl(store.url)) {
    await copySqlite(store.db as unknown as Kysely<unknown>, path)
    return openCopy(path)
  }
  const snapshot = await store.snapshot()
  try {
    await dumpDatabase(store.url, snapshot.db as unknown as Kysely<unknown>, path)
    return { ...snapshot, dialect: store.dialect }
  } catch (cause) {
    await snapshot.close()
    throw cause
  }
}

/**
 * Writes the log into the database file and removes the log. Returns false and changes nothing
 * while another process uses the database.
 */
export const checkpointIfUnused = (file: string): boolean => checkpointSqliteIfUnused(file)

/**
 * Returns the paths of the database file and of the files beside it. All these files must be moved
 * together.
 */
export const filesOfDatabase = (file: string): string[] => [...sqliteSideFiles(file), file]

/**
 * Opens an image (see `Store.image`) as a database in memory. Changes do not affect the original
 * store.
 */
export function openImage(image: Buffer): Store {
  return openSqliteStore(openSqliteImage(image), 'sqlite::memory:')
}
