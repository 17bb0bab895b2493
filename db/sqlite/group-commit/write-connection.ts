// Runs statements on the write connection, inside and outside of transactions. When the disk is
// full or fails, SQLite may undo only one statement. Such a transaction must not be committed in
// part, so it is rolled back.

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
  /** The storage fault of the last failed write. Null again after the next commit. */
  trouble: Exclude<StorageFault, 'busy'> | null
  /** The number of commits of this connection that changed more than housekeeping tables. */
  commits: number
}

/** Where SQLite stores the original pages that it needs to undo a statement or a savepoint. */
export type UndoStorage = 'file' | 'memory'

export interface WriteConnection {
  run<R>(query: SqlQuery): QueryResult<R>
  /** Begins a transaction. `file` is required if it may change a large part of the database. */
  begin(undoStorage: UndoStorage): void
  /** Commits the whole transaction. On an error, rolls back the whole transaction and throws. */
  commit(): void
  rollback(): void
  /** Begins a savepoint. Savepoints do not nest. */
  savepoint(): void
  releaseSavepoint(): void
  rollbackToSavepoint(): void
  /**
   * Returns whether the transaction accepts no further members, because of a schema change or of a
   * fault that prevents its commit.
   */
  isClosedToMembers(): boolean
}

export interface Callbacks {
  readonly health: SqliteHealth
  /** Called after a schema change, to discard outdated prepared statements. */
  onSchemaChange(): void
  /**
   * Called before a begin, a commit and a statement outside a transaction. Ends the open read
   * transaction, because it would block the checkpoint.
   */
  onWrite(): void
  /**
   * Called after a commit that changed rows. `segments` is the number of added full-text segments.
   */
  onCommit(segments: number): void
  /**
   * Called when a transaction begins after a commit of another process, which may not be on the
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
      // After a storage fault, SQLite has already rolled back or cannot do so. The next `begin`
      // retries.
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

  /** Runs the work. Records a storage fault, which prevents the commit of the open transaction. */
  #attempt<T>(work: () => T, isWrite: boolean): T {
    try {
      return work()
    } catch (error) {
      this.#callbacks.faults.record(error)
      const fault = sqliteStorageFault(error)
      if (fault !== null && fault !== 'busy') {
        // A failed read does not change the health, because writes may still work.
        if (isWrite) this.#callbacks.health.trouble = fault
        if (this.#isInTransaction) this.#fatal ??= error
      }
      throw error
    }
  }

  /**
   * Throws if the transaction cannot be committed: after a storage fault, or after SQLite has ended
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
    // Prepared statements are discarded now, because the next statement may use a new column. They
    // are discarded again at the end, because a rollback undoes the schema change.
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
   * Sets where SQLite stores original pages. By default it writes each page to a file, which is
   * slow for many small savepoints.
   */
  #setUndoStorage(undoStorage: UndoStorage): void {
    if (undoStorage === this.#undoStorage) return
    this.#database.pragma(`temp_store = ${undoStorage}`)
    this.#undoStorage = undoStorage
  }
}
