// Runs statements on the connection that writes, inside and outside of transactions. When the disk
// is full or fails, SQLite may undo one statement or the whole transaction. The rest of such a
// transaction must not be committed alone, so the whole transaction is rolled back.

import type Database from 'better-sqlite3'
import type { QueryResult } from 'kysely'
import type { StorageFault } from '../../dialect.ts'
import { sqliteStorageFault } from '../errors.ts'
import {
  hasChanged,
  type PreparedStatement,
  type PreparedStatements,
  runStatement,
  type SqlQuery,
} from '../prepared-statements.ts'
import type { FaultLog } from '../storage-faults.ts'

export interface SqliteHealth {
  /** The storage fault of the last write. Null again once a write has reached the disk. */
  trouble: Exclude<StorageFault, 'busy'> | null
  /** The number of commits of this connection that changed more than housekeeping tables. */
  commits: number
}

/** Where SQLite keeps the original pages that undo a statement or a savepoint. */
export type UndoStorage = 'file' | 'memory'

export interface WriteConnection {
  run<R>(query: SqlQuery): QueryResult<R>
  /**
   * Runs a statement of a caller with exclusive use of the connection. Such a caller runs `begin`,
   * `commit` and `rollback` as statements.
   */
  runExclusive<R>(query: SqlQuery): QueryResult<R>
  /** Begins a transaction. A transaction that may change much of the database needs `file`. */
  begin(undoStorage: UndoStorage): void
  /** Commits the whole transaction. On an error, rolls back the whole transaction and throws. */
  commit(): void
  rollback(): void
  /** Begins a part of the transaction that can be rolled back alone. Savepoints do not nest. */
  savepoint(): void
  releaseSavepoint(): void
  rollbackToSavepoint(): void
  /**
   * Returns whether the transaction takes no further member. The reason is a fault that prevents
   * the commit, or a change of the schema.
   */
  isClosedToMembers(): boolean
}

export interface Callbacks {
  readonly health: SqliteHealth
  /** Runs after a schema change, because prepared statements are then out of date. */
  onSchemaChange(): void
  /**
   * Runs before a begin, a commit and a statement outside a transaction. The callback ends the read
   * transaction, because an old read transaction would block the checkpoint.
   */
  onWrite(): void
  /**
   * Runs after a commit that changed something. `segments` is the number of full-text segments that
   * the commit added.
   */
  onCommit(segments: number): void
  /**
   * Runs when a transaction begins after a commit of another process. That commit may not be on the
   * disk yet.
   */
  onForeignCommit(): void
  /** Returns a number that changes whenever another connection has committed. */
  foreignCommits(): number
  /** Throws when the database file was removed or replaced. */
  assertFiles(): void
  readonly faults: FaultLog
}

export const createWriteConnection = (
  database: Database.Database,
  statements: PreparedStatements,
  callbacks: Callbacks,
): WriteConnection => new SqliteWriteConnection(database, statements, callbacks)

class SqliteWriteConnection implements WriteConnection {
  readonly #database: Database.Database
  readonly #statements: PreparedStatements
  readonly #callbacks: Callbacks
  #isInTransaction = false
  /** The error after which the transaction cannot be committed. */
  #fatal: unknown
  #hasChanges = false
  #hasDataChanges = false
  #segments = 0
  #hasSchemaChanges = false
  #seenForeignCommits: number
  #undoStorage: UndoStorage = 'file'

  constructor(database: Database.Database, statements: PreparedStatements, callbacks: Callbacks) {
    this.#database = database
    this.#statements = statements
    this.#callbacks = callbacks
    this.#seenForeignCommits = callbacks.foreignCommits()
  }

  run<R>(query: SqlQuery): QueryResult<R> {
    this.#assertCommittable()
    const statement = this.#attempt(() => this.#statements.prepare(query.sql), false)
    if (!this.#isInTransaction) this.#callbacks.onWrite()
    if (!this.#isInTransaction && statement.writes) this.#callbacks.assertFiles()
    const result = this.#attempt(() => runStatement<R>(statement, query.parameters), statement.writes)
    this.#noteChanges(statement, hasChanged(statement, result))
    // Outside of a transaction, SQLite commits each statement by itself.
    if (!this.#isInTransaction && !this.#database.inTransaction) this.#committed()
    return result
  }

  runExclusive<R>(query: SqlQuery): QueryResult<R> {
    if (query.sql === 'begin') this.begin('file')
    else if (query.sql === 'commit') this.commit()
    else if (query.sql === 'rollback') this.rollback()
    else return this.run(query)
    return { rows: [] }
  }

  begin(undoStorage: UndoStorage): void {
    this.rollback()
    this.#callbacks.assertFiles()
    this.#callbacks.onWrite()
    this.#setUndoStorage(undoStorage)
    const { prepared } = this.#statements.prepare('begin')
    this.#attempt(() => prepared.run(), true)
    this.#isInTransaction = true
    const foreignCommits = this.#callbacks.foreignCommits()
    if (foreignCommits === this.#seenForeignCommits) return
    this.#seenForeignCommits = foreignCommits
    this.#callbacks.onForeignCommit()
  }

  commit(): void {
    this.#callbacks.onWrite()
    try {
      this.#callbacks.assertFiles()
      this.#exec('commit')
    } catch (error) {
      this.rollback()
      throw error
    }
    this.#committed()
  }

  rollback(): void {
    this.#isInTransaction = false
    this.#fatal = undefined
    this.#resetChanges()
    try {
      if (this.#database.inTransaction) this.#database.exec('rollback')
    } catch (error) {
      // After a storage fault SQLite has already rolled back, or cannot. The next `begin` tries
      // again.
      if (sqliteStorageFault(error) === null) throw error
    }
    this.#notifySchemaChange()
  }

  savepoint(): void {
    this.#exec('savepoint member')
  }

  releaseSavepoint(): void {
    this.#exec('release savepoint member')
  }

  rollbackToSavepoint(): void {
    this.#exec('rollback to savepoint member')
    this.#exec('release savepoint member')
  }

  isClosedToMembers(): boolean {
    return (
      this.#isInTransaction && (this.#hasSchemaChanges || this.#fatal !== undefined || !this.#database.inTransaction)
    )
  }

  #exec(text: string): void {
    this.#assertCommittable()
    const { prepared } = this.#statements.prepare(text)
    this.#attempt(() => prepared.run(), text === 'commit')
  }

  /**
   * Runs the work and records its storage fault. Inside a transaction, the fault prevents the
   * commit of the whole transaction.
   */
  #attempt<T>(work: () => T, isWrite: boolean): T {
    try {
      return work()
    } catch (error) {
      this.#callbacks.faults.record(error)
      const fault = sqliteStorageFault(error)
      if (fault !== null && fault !== 'busy') {
        // Only a failed write counts, because a page that cannot be read does not mean that writes
        // fail.
        if (isWrite) this.#callbacks.health.trouble = fault
        if (this.#isInTransaction) this.#fatal ??= error
      }
      throw error
    }
  }

  /**
   * Throws if the transaction cannot be committed: after a storage fault, or when SQLite has ended
   * the transaction by itself.
   */
  #assertCommittable(): void {
    if (!this.#isInTransaction) return
    if (this.#fatal === undefined && !this.#database.inTransaction)
      this.#fatal = new Error('The database has ended the transaction by itself.')
    if (this.#fatal !== undefined) throw this.#fatal
  }

  #noteChanges({ isHousekeeping, addsSegment, isSchema }: PreparedStatement, isChange: boolean): void {
    this.#hasChanges ||= isChange
    this.#hasDataChanges ||= isChange && !isHousekeeping
    if (isChange && addsSegment) this.#segments++
    this.#hasSchemaChanges ||= isSchema
    // The callback clears prepared statements now, because the next statement may name a new
    // column. The end of the transaction clears prepared statements again, because a rollback
    // undoes the schema change.
    if (isSchema) this.#callbacks.onSchemaChange()
  }

  #committed(): void {
    this.#isInTransaction = false
    const { health } = this.#callbacks
    if (this.#hasChanges) health.trouble = null
    if (this.#hasDataChanges) health.commits++
    const segments = this.#hasChanges ? this.#segments : null
    this.#resetChanges()
    this.#notifySchemaChange()
    if (segments !== null) this.#callbacks.onCommit(segments)
  }

  #resetChanges(): void {
    this.#hasChanges = false
    this.#hasDataChanges = false
    this.#segments = 0
  }

  #notifySchemaChange(): void {
    if (this.#hasSchemaChanges) this.#callbacks.onSchemaChange()
    this.#hasSchemaChanges = false
  }

  /**
   * Sets where SQLite keeps original pages. The default is a file with one write for each page,
   * which is slow for many small savepoints.
   */
  #setUndoStorage(undoStorage: UndoStorage): void {
    if (undoStorage === this.#undoStorage) return
    this.#database.pragma(`temp_store = ${undoStorage}`)
    this.#undoStorage = undoStorage
  }
}
