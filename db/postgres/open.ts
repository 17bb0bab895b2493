// Creates the PostgreSQL store from its parts: the pools, Kysely, the replica, the server clock and
// the watch for commits of other processes.

import { sql } from 'kysely'
import type { StorageFault } from '../dialect.ts'
import type { DatabaseSnapshot } from '../snapshots.ts'
import type {
  Db,
  DeferredWork,
  PoolUse,
  RecordRef,
  ReplicaState,
  SnapshotOptions,
  Store,
  StoreOptions,
  TransactionOptions,
  WriteFault,
} from '../store.ts'
import type { DB } from '../tables.gen.ts'
import { type CommitWatch, watchCommits } from './commit-watch.ts'
import { idleInTransactionMs, openPools, type Pools } from './connection.ts'
import { postgresDialect } from './dialect.ts'
import { kyselyPostgres, runTransaction, type WriteEvents } from './driver.ts'
import { postgresStorageFault } from './errors.ts'
import { Replica } from './replica.ts'
import { createServerClock, type ServerClock } from './server-clock.ts'
import { endClient, openPostgresSnapshot, rememberPools } from './snapshot.ts'
import { assertPrimary } from './statements.ts'

/**
 * The limits of a long transaction. A migration may create an index of a large table, and a sweep
 * of files works between two statements.
 */
const longLimits = `set local statement_timeout = 0; set local lock_timeout = 0;
  set local idle_in_transaction_session_timeout = ${idleInTransactionMs}`

export const openPostgresStore = (url: string, options: StoreOptions = {}): Store => new PostgresStore(url, options)

/**
 * `maintain` sums up the differences above this number. A board sums this many rows in about a
 * millisecond.
 */
const maxDifferences = 1_000

/** Faults that affect the whole database and not only one transaction. */
const lasting: ReadonlySet<StorageFault | null> = new Set(['full', 'failing', 'damaged'])

class PostgresStore implements Store {
  readonly db: Db
  readonly dialect = postgresDialect
  readonly url: string
  readonly #pools: Pools
  readonly #ownsPools: boolean
  readonly #events: WriteEvents
  readonly #watch: CommitWatch
  readonly #replica: Replica | null
  readonly #clock: ServerClock
  readonly #listeners = new Set<() => void>()
  readonly #snapshots = new Set<DatabaseSnapshot>()
  #health: WriteFault = null
  #retries = 0
  #isClosed = false
  #deferredWork: DeferredWork = async () => {
    throw new Error('No work is set with beforeGroupCommit.')
  }

  constructor(url: string, options: StoreOptions) {
    const { pools, replicaUrl, ...pooling } = options.postgres ?? {}
    this.url = url
    this.#ownsPools = pools === undefined
    this.#pools = pools ?? openPools(url, { ...pooling, onLost: () => this.#watch.noteChange() })
    this.#watch = watchCommits(this.#pools)
    this.#replica = replicaUrl ? new Replica(replicaUrl, this.#pools, pooling) : null
    this.#clock = createServerClock(this.#pools)
    this.#events = {
      onCommit: () => {
        this.#health = null
        this.#watch.noteChange()
        for (const listener of this.#listeners) listener()
      },
      onError: (error) => {
        const fault = postgresStorageFault(error)
        if (lasting.has(fault)) this.#health = fault as WriteFault
        if (fault === 'uncertain') this.#watch.noteChange()
      },
      onRetry: () => {
        this.#retries += 1
      },
      ...(options.postgres?.beforeCommit && { beforeCommit: options.postgres.beforeCommit }),
    }
    this.db = kyselyPostgres<DB>(this.#pools, this.#events)
    rememberPools(this.db as never, this.#pools)
  }

  transaction = <T>(
    work: (db: Db) => Promise<T>,
    { isLong = false, isAlone = false }: TransactionOptions = {},
  ): Promise<T> =>
    runTransaction<DB, T>(
      this.#pools,
      this.#events,
      async (db) => {
        if (isLong) await sql.raw(longLimits).execute(db)
        return work(db)
      },
      isAlone,
    )

  health = (): WriteFault => this.#health

  tryWrite = async (): Promise<void> => {
    // A new transaction id is written to the log, and a standby refuses it.
    await this.transaction((db) => sql`select pg_current_xact_id()`.execute(db))
  }

  retryWrite = async (): Promise<WriteFault> => {
    if (this.#health === null) return null
    try {
      await this.tryWrite()
      this.#health = null
    } catch (error) {
      const fault = postgresStorageFault(error)
      if (fault === null) throw error
      if (lasting.has(fault)) this.#health = fault as WriteFault
    }
    return this.#health
  }

  faults = () => []
  clockOffsetMs = () => this.#clock.offsetMs()
  synchronizeClock = () => this.#clock.synchronize()
  retries = () => this.#retries
  commitGeneration = () => this.#watch.generation()
  renewReadTransaction = () => undefined
  /** PostgreSQL confirms a COMMIT only after it is on the disk. */
  whenDurable = () => null
  verifyFiles = async () => undefined
  lostFiles = () => null
  assertFiles = () => undefined
  onGroupCommit = () => undefined
  paceTransactions = () => undefined
  beforeGroupCommit = (work: DeferredWork): void => {
    this.#deferredWork = work
  }
  deferToCommit = (db: Db, records: readonly RecordRef[]): Promise<void> => this.#deferredWork(db, records)
  connections = (): PoolUse[] => {
    const { read, write } = this.#pools
    const pools = { read, write, ...(this.#replica && { replica: this.#replica.pool }) }
    return Object.entries(pools).map(([pool, { totalCount: open, idleCount: idle, waitingCount: waiting }]) => ({
      ...{ pool: pool as keyof typeof pools, open, idle, waiting },
    }))
  }
  walBytes = () => 0
  onCommit = (listener: () => void): (() => void) => {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }
  /**
   * Folds the differences of `lead_totals` and `lead_counts` into sums (migrations 0006 and 0017).
   * Another process may do the same at the same time.
   */
  maintain = async (): Promise<void> => {
    try {
      // A commit invalidates the caches of all processes, so a transaction begins only if it is
      // needed.
      const { rows } = await sql`select 1 where accord_unfolded() >= ${maxDifferences}`.execute(this.db)
      if (rows.length > 0)
        await this.transaction((db) => sql`select accord_fold_differences(${maxDifferences})`.execute(db))
    } catch (error) {
      if (postgresStorageFault(error) === null) throw error
    }
  }
  purge = async (tables: readonly string[]): Promise<void> => {
    const client = await this.#pools.connect()
    try {
      await client.query('set statement_timeout = 0')
      // A user who does not own a table gets a warning, and the table is skipped.
      for (const table of tables) await client.query(`vacuum (analyze) "${table}"`)
    } finally {
      await endClient(client)
    }
  }
  image = (): Promise<Buffer> => Promise.reject(new Error('A PostgreSQL database has no image; use pg_dump.'))

  assertPrimary = (): Promise<void> => assertPrimary(this.#pools)

  replicaState = async (): Promise<ReplicaState> => (await this.#replica?.state()) ?? 'none'

  replicaSendsFeedback = async (): Promise<boolean | null> => (await this.#replica?.sendsFeedback()) ?? null

  onReplica = async <T>(work: (db: Db) => Promise<T>): Promise<T> => {
    const done = await this.#replica?.run(work)
    return done ? done.result : work(this.db)
  }

  snapshot = async ({ onReplica = false }: SnapshotOptions = {}): Promise<DatabaseSnapshot> => {
    const ofReplica = onReplica ? await this.#snapshotOfReplica() : null
    const snapshot = ofReplica ?? (await openPostgresSnapshot(await this.#pools.connect()))
    const tracked = {
      ...snapshot,
      close: () => {
        this.#snapshots.delete(tracked)
        return snapshot.close()
      },
    }
    this.#snapshots.add(tracked)
    return tracked
  }

  /** Opens a snapshot on the replica. Returns null when the replica is behind or fails. */
  async #snapshotOfReplica(): Promise<DatabaseSnapshot | null> {
    const client = await this.#replica?.connect()
    if (!client) return null
    try {
      return await openPostgresSnapshot(client)
    } catch (error) {
      if (postgresStorageFault(error) === null) throw error
      return null
    }
  }

  close = async (): Promise<void> => {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#clock.close()
    for (const each of [...this.#snapshots]) await each.close()
    await this.#watch.close()
    await this.#replica?.close()
    if (this.#ownsPools) await this.#pools.close()
  }
}
