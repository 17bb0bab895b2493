// Creates the store of an SQLite database from its parts: the connections, the write queue, the
// sync of the WAL, maintenance and the fault log.

import type { Database as SqliteConnection } from 'better-sqlite3'
import { searchIndexTable } from '../housekeeping-tables.ts'
import type { DatabaseSnapshot } from '../snapshots.ts'
import type { Db, DeferredWork, Pause, RecordRef, Store, StoreOptions, TransactionOptions } from '../store.ts'
import type { DB } from '../tables.gen.ts'
import { maxBusyWaitMs, retryWhileBusy } from './busy-retry.ts'
import { createForeignCommitCounter, walBytes } from './connection.ts'
import {
  copySqliteSnapshot,
  openSqliteReader,
  openSqliteSnapshot,
  sqliteDialect,
  sqliteFile,
  sqliteImage,
} from './dialect.ts'
import { createFileIdentity, type FileIdentity } from './file-identity.ts'
import { indexesOf, mergesOf } from './full-text-tables.ts'
import type { ExclusiveConnection, WriteQueue } from './group-commit/types.ts'
import { createWalSync, type WalSync } from './group-commit/wal-sync.ts'
import { createWriteConnection, type SqliteHealth, type WriteConnection } from './group-commit/write-connection.ts'
import { createWriteQueue } from './group-commit/write-queue.ts'
import { kyselySqlite, kyselySqliteConnection } from './kysely-driver.ts'
import { createInMemoryMaintenance, createMaintenance, type Maintenance } from './maintenance/maintenance.ts'
import { createMaintenanceThread, type MaintenanceThread } from './maintenance/maintenance-thread.ts'
import { purgeFile } from './maintenance/purge.ts'
import { createPreparedStatements, type PreparedStatements } from './prepared-statements.ts'
import { createReadTransaction, type ReadTransaction } from './read-transaction.ts'
import { createSnapshot } from './snapshots.ts'
import { createFaultLog, type FaultLog } from './storage-faults.ts'

/**
 * The number of stores opened by this process. Each store counts from another start value, so that
 * no two stores have the same generation.
 */
let opened = 0

export const openSqliteStore = (connection: SqliteConnection, url: string, options: StoreOptions = {}): Store =>
  new SqliteStore(connection, url, options)

/** The read-only connection. A database in memory has none. */
interface Reader {
  readonly connection: SqliteConnection
  readonly statements: PreparedStatements
  readonly transaction: ReadTransaction
}

class SqliteStore implements Store {
  readonly db: Db
  readonly dialect = sqliteDialect
  readonly url: string
  readonly #connection: SqliteConnection
  /**
   * The path of the database file. For a database in memory, `#file`, `#reader`, `#thread`
   * and `#sync` are null.
   */
  readonly #file: string | null
  readonly #reader: Reader | null
  readonly #thread: MaintenanceThread | null
  readonly #sync: WalSync | null
  readonly #files: FileIdentity
  readonly #health: SqliteHealth
  readonly #faults: FaultLog = createFaultLog()
  readonly #statements: PreparedStatements
  /** Returns a number that changes when another connection has committed. */
  readonly #foreignCommits: () => number
  readonly #queue: WriteQueue<RecordRef>
  readonly #maintenance: Maintenance
  readonly #listeners = new Set<() => void>()
  readonly #snapshots = new Set<DatabaseSnapshot>()
  #isWriteComing = (): boolean => false
  #newPause: () => Pause = () => () => null
  #deferredWork: DeferredWork = async () => {
    throw new Error('No work is set with beforeGroupCommit.')
  }
  /** The result of `#foreignGeneration` at the last `whenDurable`. */
  #confirmedForeign: number

  constructor(connection: SqliteConnection, url: string, options: StoreOptions) {
    const { waitMs = maxBusyWaitMs, groupMs = 10, slowSyncMs = 100, folders = [] } = options
    const file = sqliteFile(url)
    this.url = url
    this.#connection = connection
    this.#file = file
    this.#files = file === null ? createFileIdentity([], []) : createFileIdentity([file, ...folders], [`${file}-wal`])
    this.#health = { trouble: null, commits: opened++ * 2 ** 32 }
    this.#statements = createPreparedStatements(connection)
    this.#foreignCommits = createForeignCommitCounter(connection)
    this.#reader = file === null ? null : this.#openReader(file)
    this.#thread = file === null ? null : createMaintenanceThread(file)
    this.#sync = file === null || this.#thread === null ? null : this.#openSync(file, this.#thread, slowSyncMs)
    const writer = this.#openWriter()
    this.#queue = this.#openQueue(writer, { waitMs, groupMs })
    this.db = kyselySqlite<DB>(this.#queue, {
      own: this.#statements,
      reader: this.#reader,
      faults: this.#faults,
    })
    this.#confirmedForeign = this.#foreignGeneration()
    this.#maintenance = this.#openMaintenance()
  }

  // Every public member is a bound function, because callers spread the store or pass single
  // functions.
  health = () => this.#health.trouble
  faults = () => this.#faults.list()
  verifyFiles = () => this.#files.verify()
  lostFiles = () => this.#files.lost()
  assertFiles = () => this.#files.assert()
  maintain = () => this.#maintenance.run()
  commitGeneration = () => this.#health.commits + this.#foreignGeneration()
  renewReadTransaction = (agoMs?: number) => this.#reader?.transaction.end(agoMs)
  deferToCommit = async (_db: Db, records: readonly RecordRef[]): Promise<void> => this.#queue.defer(records)
  clockOffsetMs = () => 0
  synchronizeClock = async () => undefined
  retries = () => 0
  connections = () => []
  assertPrimary = async () => undefined
  replicaState = async () => 'none' as const
  replicaSendsFeedback = async () => null
  onReplica = <T>(work: (db: Db) => Promise<T>): Promise<T> => work(this.db)
  walBytes = () => (this.#file === null ? 0 : walBytes(this.#file))
  image = () => this.#whileIdle(() => sqliteImage(this.#connection))

  transaction = async <T>(work: (db: Db) => Promise<T>, { isLong, inParts }: TransactionOptions = {}): Promise<T> => {
    const transaction = await this.#queue.begin(isLong ? (inParts ? 'own group in parts' : 'own group') : 'member')
    try {
      const result = await work(kyselySqliteConnection<DB>((query) => transaction.run(query), this.#newPause()))
      await transaction.commit()
      return result
    } catch (error) {
      await transaction.rollback()
      throw error
    }
  }

  purge = async (): Promise<void> => {
    const thread = this.#thread
    if (thread === null) return
    const { release } = await this.#queue.exclusive()
    try {
      await purgeFile(thread, indexesOf(searchIndexTable), () => this.renewReadTransaction())
    } finally {
      release()
      thread.idle()
    }
  }

  tryWrite = (): Promise<void> =>
    this.#whileIdle((run) => {
      const { rows } = run<{ user_version: number }>({ sql: 'pragma user_version', parameters: [] })
      run({ sql: `pragma user_version = ${rows[0]?.user_version ?? 0}`, parameters: [] })
    })

  retryWrite = async (): Promise<SqliteHealth['trouble']> => {
    if (this.#health.trouble === null && !this.#faults.awaitsWrite()) return null
    try {
      await this.tryWrite()
      this.#sync?.markDirty()
      await this.#sync?.whenDurable()
      this.#health.trouble = null
      this.#faults.recordWrite()
    } catch (error) {
      const fault = sqliteDialect.storageFault(error)
      if (fault === null) throw error
      // A lock of another process does not mean that the disk fails.
      if (fault !== 'busy') this.#health.trouble = fault
    }
    return this.#health.trouble
  }

  whenDurable = (): Promise<void> | null => {
    if (this.#sync === null) return null
    // A commit of another process may not be synced yet.
    const foreign = this.#foreignGeneration()
    if (foreign !== this.#confirmedForeign) this.#sync.markDirty()
    this.#confirmedForeign = foreign
    return this.#sync.whenDurable()
  }

  beforeGroupCommit = (work: DeferredWork): void => {
    this.#deferredWork = work
  }

  onGroupCommit = (isWriteComing: () => boolean): void => {
    this.#isWriteComing = isWriteComing
  }

  paceTransactions = (newPause: () => Pause): void => {
    this.#newPause = newPause
  }

  onCommit = (listener: () => void): (() => void) => {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  snapshot = async (): Promise<DatabaseSnapshot> => {
    const file = this.#file
    if (file === null)
      return this.#whileIdle(() => this.#track(createSnapshot(copySqliteSnapshot(this.#connection), this.#faults)))
    const opened = await retryWhileBusy(() => this.#faults.recording(() => openSqliteSnapshot(file)))
    return this.#track(createSnapshot(opened, this.#faults))
  }

  close = async (): Promise<void> => {
    // The write connection is closed last, because SQLite removes the log only if the last
    // connection to close can write.
    for (const each of [...this.#snapshots]) await each.close()
    const maintenanceClosed = this.#maintenance.close()
    try {
      this.renewReadTransaction()
      await this.#queue.close()
    } finally {
      await maintenanceClosed
      await this.#sync?.close()
      await this.#thread?.end()
      this.#reader?.connection.close()
      this.#connection.close()
    }
  }

  #openReader(file: string): Reader {
    const connection = openSqliteReader(file)
    const options = { onSchema: () => this.#clearStatements(), others: this.#foreignCommits }
    return {
      connection,
      statements: createPreparedStatements(connection),
      transaction: createReadTransaction(connection, options),
    }
  }

  #openSync(file: string, thread: MaintenanceThread, slowMs: number): WalSync {
    return createWalSync(this.#connection, file, {
      thread,
      slowMs,
      onFailure: (error) => {
        this.#health.trouble = 'uncertain'
        this.#faults.record(error)
      },
    })
  }

  #openWriter(): WriteConnection {
    return createWriteConnection(this.#connection, this.#statements, {
      health: this.#health,
      faults: this.#faults,
      foreignCommits: this.#foreignCommits,
      assertFiles: this.assertFiles,
      onSchemaChange: () => this.#clearStatements(),
      onWrite: () => this.renewReadTransaction(),
      onForeignCommit: () => this.#sync?.markDirty(),
      onCommit: (segments) => {
        this.#faults.recordWrite()
        this.#sync?.markDirty()
        this.#maintenance.afterCommit(segments)
        for (const listener of this.#listeners) listener()
      },
    })
  }

  #openQueue(writer: WriteConnection, { waitMs, groupMs }: { waitMs: number; groupMs: number }): WriteQueue<RecordRef> {
    const inside = () => kyselySqliteConnection<DB>((query) => writer.run(query), this.#newPause())
    return createWriteQueue<RecordRef>(writer, {
      maxGroupMs: groupMs,
      maxWaitMs: waitMs,
      isWriteComing: () => this.#isWriteComing(),
      beforeCommit: (records) => this.#deferredWork(inside(), records),
      whenDurable: () => this.#sync?.whenDurable() ?? null,
      prepareLog: () => this.#sync?.prepareLog() ?? null,
    })
  }

  #openMaintenance(): Maintenance {
    const merges = mergesOf(searchIndexTable)
    if (this.#file === null || this.#thread === null) return createInMemoryMaintenance(this.#connection, merges)
    return createMaintenance(this.#connection, this.#file, {
      thread: this.#thread,
      exclusive: () => this.#queue.exclusive(),
      merges,
      onRound: this.#faults.recordMaintenance,
    })
  }

  #clearStatements(): void {
    this.#statements.clear()
    this.#reader?.statements.clear()
  }

  #foreignGeneration(): number {
    return this.#reader === null ? this.#foreignCommits() : this.#reader.transaction.generation()
  }

  /** Runs the work while no transaction is open. */
  async #whileIdle<T>(work: (run: ExclusiveConnection['run']) => T): Promise<T> {
    const { run, release } = await this.#queue.exclusive()
    try {
      return work(run)
    } finally {
      release()
    }
  }

  /**
   * Adds the snapshot to the open snapshots. An open snapshot blocks checkpoints, so maintenance
   * runs after it is closed.
   */
  #track(snapshot: DatabaseSnapshot): DatabaseSnapshot {
    const close = async (): Promise<void> => {
      await snapshot.close()
      if (this.#snapshots.delete(tracked)) void this.#maintenance.run()
    }
    const tracked = { ...snapshot, close }
    this.#snapshots.add(tracked)
    return tracked
  }
}
