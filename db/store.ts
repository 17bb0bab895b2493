// Opens a database by its URL and defines the interface `Store`. Only this file chooses a database
// engine. `openStore` does not apply migrations (migrate.ts does).

import { existsSync } from 'node:fs'
import type { Kysely } from 'kysely'
import type { Dialect, StorageFault } from './dialect.ts'
import type { Pools as PostgresPools } from './postgres/connection.ts'
import { firstHostUrl } from './postgres/hosts.ts'
import { openPostgresStore } from './postgres/open.ts'
import { dumpDatabase } from './postgres/programs.ts'
import { hidePassword, isPostgresUrl } from './postgres/url.ts'
import type { DatabaseSnapshot } from './snapshots.ts'
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
import { createSnapshot } from './sqlite/snapshots.ts'
import type { RecordedFault } from './sqlite/storage-faults.ts'
import type { DB } from './tables.gen.ts'

export { findServerUse } from './postgres/installation-probe.ts'
export { readDump, restoreDump } from './postgres/programs.ts'
export type { DatabaseSnapshot } from './snapshots.ts'
export type { FaultKind, RecordedFault } from './sqlite/storage-faults.ts'

export type Db = Kysely<DB>

/** The reason why the last write failed, or null after a successful write. */
export type WriteFault = Exclude<StorageFault, 'busy'> | null

export interface RecordRef {
  /** The type of the record, such as `persons`. */
  readonly entity: string
  readonly id: number
}

/** Returns what a transaction must wait for before its next statement, or null. */
export type Pause = () => Promise<void> | null

export type DeferredWork = (db: Db, records: readonly RecordRef[]) => Promise<void>

export interface TransactionOptions {
  /**
   * Whether the transaction takes long. SQLite commits it alone, and PostgreSQL runs it without a
   * statement timeout.
   */
  readonly isLong?: boolean
  /** With `isLong`: whether `work` splits its changes into many small savepoints (SQLite). */
  readonly inParts?: boolean
  /**
   * On PostgreSQL, blocks all other writers, so that the transaction cannot conflict and be
   * retried. Needed for work that also has effects outside the database. SQLite always runs one
   * writer at a time.
   */
  readonly isAlone?: boolean
}

export interface SnapshotOptions {
  /** Whether the snapshot may be opened on the read replica (`Store.onReplica`). */
  readonly onReplica?: boolean
}

/**
 * The state of the read replica. `none`: not configured. `behind`: it has not replayed the latest
 * commits of the primary. `unreachable`: it does not answer.
 */
export type ReplicaState = 'none' | 'ok' | 'behind' | 'unreachable'

export interface PoolUse {
  readonly pool: 'read' | 'write' | 'replica'
  readonly open: number
  readonly idle: number
  /** The number of callers that wait for a connection. */
  readonly waiting: number
}

export interface Store {
  readonly db: Db
  /**
   * Runs `work` in a transaction and commits it, or rolls it back after an error. On PostgreSQL,
   * `work` runs again after a conflict with another transaction, so it must have no effect outside
   * the database.
   */
  transaction<T>(work: (db: Db) => Promise<T>, options?: TransactionOptions): Promise<T>
  readonly dialect: Dialect
  readonly url: string
  close(): Promise<void>
  health(): WriteFault
  /**
   * Commits a write that changes no data, to test whether the database can be written. On SQLite,
   * rejects at once when another connection has the lock.
   */
  tryWrite(): Promise<void>
  /** After a fault, attempts a write and returns the new health. */
  retryWrite(): Promise<WriteFault>
  /** Returns the faults of statements and maintenance since the database was opened. */
  faults(): RecordedFault[]
  /**
   * Returns a number that changes after each commit that changed more than housekeeping tables.
   * Cached data is valid while the number is the same as before the data was read. A commit of this
   * process changes the number before its transaction resolves. On SQLite, a commit of another
   * process changes it in the next turn of the event loop or after `renewReadTransaction`.
   */
  commitGeneration(): number
  /**
   * Makes later reads see all commits until now, or until `agoMs` milliseconds ago. Otherwise all
   * reads in one turn of the event loop see the same data.
   */
  renewReadTransaction(agoMs?: number): void
  /**
   * Returns a promise that resolves after all currently readable data is on the disk, or null when
   * it already is. Rejects when a sync fails. Must be awaited before a client gets data that it
   * relies on after a power cut, such as the id of an event.
   */
  whenDurable(): Promise<void> | null
  /**
   * Checks whether the database file, the log or a folder was removed or replaced. Never rejects.
   */
  verifyFiles(): Promise<void>
  /**
   * Returns the problem that the last `verifyFiles` found as a sentence, or null. While there is a
   * problem, the store refuses writes.
   */
  lostFiles(): string | null
  /** Throws if the last `verifyFiles` found a problem. */
  assertFiles(): void
  /**
   * Sets a function that returns whether more writes will arrive soon. While it returns true, a
   * group of transactions waits briefly before its commit, so that these writes can join.
   */
  onGroupCommit(isWriteComing: () => boolean): void
  /**
   * Sets the work that runs before the commit of each group of transactions, inside the same
   * database transaction. It receives all records that the group passed to `deferToCommit`.
   */
  beforeGroupCommit(work: DeferredWork): void
  /**
   * Sets what transactions and deferred work wait for between two statements. `newPause` is called
   * when one of them begins. On PostgreSQL it is not used, because statements do not block the
   * event loop.
   */
  paceTransactions(newPause: () => Pause): void
  /**
   * Passes records to the work set with `beforeGroupCommit`. `db` is the transaction. On
   * PostgreSQL, the work runs immediately. On SQLite, throws outside of a transaction.
   */
  deferToCommit(db: Db, records: readonly RecordRef[]): Promise<void>
  /**
   * Returns how many milliseconds the clock of the database server is ahead of the clock of this
   * process. Returns 0 before `synchronizeClock`, and always for SQLite, whose processes run on one
   * machine.
   */
  clockOffsetMs(): number
  /** Compares the clocks now, and then at intervals until `close`. Never rejects. */
  synchronizeClock(): Promise<void>
  /** Returns the number of retries after conflicts between transactions. */
  retries(): number
  /** Returns the number of connections to the database server by pool. Empty for SQLite. */
  connections(): PoolUse[]
  /** Rejects with a storage fault when the database server is a standby or does not answer. */
  assertPrimary(): Promise<void>
  /** Checks the state of the replica. Rejects when the primary does not answer. */
  replicaState(): Promise<ReplicaState>
  /**
   * Returns whether the replica has `hot_standby_feedback` on; null without an answer. Without the
   * setting the primary removes old rows that a read on the replica needs, and the replica cancels
   * the read.
   */
  replicaSendsFeedback(): Promise<boolean | null>
  /**
   * Runs long reads on the read replica if it has replayed all earlier commits of all processes,
   * and otherwise on `db`. If the replica fails, `work` runs again on `db`.
   */
  onReplica<T>(work: (db: Db) => Promise<T>): Promise<T>
  /** Returns the size of the log (WAL) in bytes; 0 for a database in memory. */
  walBytes(): number
  /**
   * Calls the listener after each commit of this process. The listener must not throw. Returns a
   * function that removes it.
   */
  onCommit(listener: () => void): () => void
  /**
   * Runs the due maintenance, such as a checkpoint. Must be called at intervals. Never rejects with
   * a storage fault.
   */
  maintain(): Promise<void>
  /**
   * Removes the data that was deleted from these tables from the storage: SQLite rewrites the file
   * and empties its log, and PostgreSQL removes old row versions. It takes long.
   */
  purge(tables: readonly string[]): Promise<void>
  /** Returns the whole database as bytes for `openImage`. */
  image(): Promise<Buffer>
  /**
   * Opens a snapshot of the current data, for long reads while other connections write. The caller
   * must close it, because an open snapshot makes the log (SQLite) or the tables (PostgreSQL) grow.
   */
  snapshot(options?: SnapshotOptions): Promise<DatabaseSnapshot>
}

export interface DatabaseCopy extends DatabaseSnapshot {
  readonly dialect: Dialect
}

export interface PostgresOptions {
  /** The maximum number of connections in each of the two pools. */
  max?: number
  /** Whether the server is behind a pooler in transaction mode, such as PgBouncer. */
  isPooled?: boolean
  /** The URL of a read replica. */
  replicaUrl?: string | null
  /**
   * For tests, which throw a serialization failure here. Called before each commit with the number
   * of the attempt, from 0.
   */
  beforeCommit?: (attempt: number) => void
  /**
   * For tests, which open many stores one after another: pools that stay open when the store
   * closes.
   */
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
   * A disk is slow if its last sync took more than this many milliseconds. On a slow disk, no sync
   * runs on the event loop.
   */
  slowSyncMs?: number
  /**
   * Folders that are checked like the database file: after one is removed or replaced, writes are
   * refused.
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

/** Returns whether the database is in memory. */
export const isInMemory = (url: string): boolean => isSqliteUrl(url) && sqliteFile(url) === null

/** Returns the path of the database file, or null for a database in memory or on a server. */
export const databaseFile = (url: string): string | null => (isSqliteUrl(url) ? sqliteFile(url) : null)

/**
 * Opens a copy of a database for reading. No process may write to the copy. Reading leaves no files
 * beside it.
 */
export const openCopy = (file: string): DatabaseCopy => ({
  ...createSnapshot(openSqliteSnapshot(file, maxBusyWaitMs)),
  dialect: sqliteDialect,
})

/**
 * Writes a copy of the database to a new file while other connections read and write. Resolves
 * after the file is synced to the disk. Returns a snapshot with the data of the copy, which the
 * caller must close.
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
 * Writes the log (WAL) into the database file and removes the log. Returns false and changes
 * nothing while another process uses the database.
 */
export const checkpointIfUnused = (file: string): boolean => checkpointSqliteIfUnused(file)

/**
 * Returns the paths of the database file and of its log and journal files, which must be moved
 * together.
 */
export const filesOfDatabase = (file: string): string[] => [...sqliteSideFiles(file), file]

/** Opens an image (`Store.image`) as a database in memory. */
export function openImage(image: Buffer): Store {
  return openSqliteStore(openSqliteImage(image), 'sqlite::memory:')
}
