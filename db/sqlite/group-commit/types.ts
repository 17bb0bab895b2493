// The interface of the write queue (write-queue.ts), and the handles it gives out.

import type { QueryResult } from 'kysely'
import type { SqlQuery } from '../prepared-statements.ts'
import type { Membership } from './group.ts'

export interface WriteQueue<Deferred> {
  /**
   * Begins a transaction once the connection is free. Rejects when the queue is closed or the lock
   * stays busy.
   */
  begin(as: Exclude<Membership, 'exclusive'>): Promise<WriteTransaction>
  /**
   * Runs one statement that changes rows, as a transaction of its own that joins a group like any
   * other.
   */
  write<R>(query: SqlQuery): Promise<QueryResult<R>>
  /** Runs one statement outside any transaction. */
  runOutside<R>(query: SqlQuery): Promise<QueryResult<R>>
  /** Gives the caller the connection outside any transaction, until it calls `release`. */
  exclusive(): Promise<ExclusiveConnection>
  /** Whether no request waits, no transaction is open and no commit is due. */
  isIdle(): boolean
  /**
   * Leaves work for the moment before the commit of the transaction that runs. Throws when none
   * does.
   */
  defer(work: readonly Deferred[]): void
  /**
   * Commits the members that have ended, undoes the one that has not, and refuses every later
   * request.
   */
  close(): Promise<void>
}

/** A transaction. It has the connection until it commits or rolls back. */
export interface WriteTransaction {
  run<R>(query: SqlQuery): QueryResult<R>
  /** Settles once the group is on the disk. */
  commit(): Promise<void>
  /**
   * Undoes the changes at once. Settles with the group, because the member may have read changes of
   * other members.
   */
  rollback(): Promise<void>
}

export interface ExclusiveConnection {
  run<R>(query: SqlQuery): QueryResult<R>
  release(): void
}
