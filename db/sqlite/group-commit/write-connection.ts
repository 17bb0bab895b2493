// The connection that writes, inside and outside of transactions. When the disk is full or fails,
// SQLite may undo one statement or the whole transaction. The rest of such a transaction must not
// be committed alone, so nothing of it is.

import type Database from 'better-sqlite3'
import type { QueryResult } from 'kysely'
import type { StorageFault } from '../../dialect.ts'
import { sqliteStorageFault } from '../errors.ts'
import {
  hasChanged,
  type PreparedStatements,
  runStatement,
  type SqlQuery,
  type Statement,
} from '../prepared-statements.ts'
import type { FaultLog } from '../storage-faults.ts'

export interface SqliteHealth {
  /** The fault that the last write met; null again once a write has reached the disk. */
  trouble: Exclude<StorageFault, 'busy'> | null
  /** Commits of this connection that changed more than housekeeping tables. */
  commits: number
}

/** Where SQLite keeps the original pages that undo a statement or a savepoint. */
export type UndoStorage = 'file' | 'memory'

export interface WriteConnection {
  run<R>(query: SqlQuery): QueryResult<R>
  /**
   * For an exclusive caller: `begin`, `commit` and `rollback` are statements that it runs itself.
   */
  runExclusive<R>(query: SqlQuery): QueryResult<R>
  /** Use `file` for a transaction that may change much of the database. */
  begin(undoStorage: UndoStorage): void
  /** Commits everything, or throws and leaves nothing. */
  commit(): void
  rollback(): void
  /** Begins a member that can be undone alone. Savepoints do not nest. */
  savepoint(): void
  releaseSavepoint(): void
  rollbackToSavepoint(): void
  /**
   * Whether the transaction takes no further member, because it cannot be committed any more or has
   * changed the schema.
   */
  isClosedToMembers(): boolean
}

export interface Callbacks {
  readonly health: SqliteHealth
  /** The schema has changed, so prepared statements are out of date. */
  onSchemaChange(): void
  /**
   * Runs before a begin, a commit and a statement outside a transaction: an old read transaction
   * would block the checkpoint.
   */
  onWrite(): void
  /** Runs after a commit that changed something, with the number of full-text segments it added. */
  onCommit(segments: number): void
  /**
   * Runs when a transaction begins that may see commits of another process that are not on the disk
   * yet.
   */
  onForeignCommit(): void
  /** Changes whenever another connection has committed. */
  foreignCommits(): number
  /** Throws when the database file is no longer where it was opened. */
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
    // SQLite has committed a statement outside of transactions by itself.
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
      // After a storage fault SQLite has undone it already, or cannot; `begin` then tries again.
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
   * Runs the work and records a storage fault. Inside a transaction such a fault is fatal for all
   * of it.
   */
  #attempt<T>(work: () => T, isWrite: boolean): T {
    try {
      return work()
    } catch (error) {
      this.#callbacks.faults.record(error)
      const fault = sqliteStorageFault(error)
      if (fault !== null && fault !== 'busy') {
        // A page that cannot be read does not mean that nothing can be written.
        if (isWrite) this.#callbacks.health.trouble = fault
        if (this.#isInTransaction) this.#fatal ??= error
      }
      throw error
    }
  }

  /**
   * Throws the error that spoiled the transaction. SQLite can also have ended it without a failing
   * statement.
   */
  #assertCommittable(): void {
    if (!this.#isInTransaction) return
    if (this.#fatal === undefined && !this.#database.inTransaction)
      this.#fatal = new Error('The database has ended the transaction by itself.')
    if (this.#fatal !== undefined) throw this.#fatal
  }

  #noteChanges({ isHousekeeping, addsSegment, isSchema }: Statement, isChange: boolean): void {
    this.#hasChanges ||= isChange
    this.#hasDataChanges ||= isChange && !isHousekeeping
    if (isChange && addsSegment) this.#segments++
    this.#hasSchemaChanges ||= isSchema
    // Now, because the next statement may name a new column; and again when the transaction ends,
    // which may undo the change.
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
   * By default SQLite writes each original page to a file on its own, which is slow for many small
   * savepoints.
   */
  #setUndoStorage(undoStorage: UndoStorage): void {
    if (undoStorage === this.#undoStorage) return
    this.#database.pragma(`temp_store = ${undoStorage}`)
    this.#undoStorage = undoStorage
  }
}
