// The interfaces of the write queue (write-queue.ts) and of the transactions and connections that
// it returns.

import type { QueryResult } from 'kysely'
import type { SqlQuery } from '../prepared-statements.ts'
import type { Membership } from './group.ts'

export interface WriteQueue<Deferred> {
  /**
   * Begins a transaction once the connection is free. Rejects when the queue is closed, and when
   * another process keeps the write lock too long.
   */
  begin(as: Exclude<Membership, 'exclusive'>): Promise<WriteTransaction>
  /** Runs one statement that changes rows, as a separate transaction that can join a group. */
  write<R>(query: SqlQuery): Promise<QueryResult<R>>
  /** Runs one statement outside any transaction. */
  runOutside<R>(query: SqlQuery): Promise<QueryResult<R>>
  /** Gives the caller exclusive use of the connection, outside any transaction, until `release`. */
  exclusive(): Promise<ExclusiveConnection>
  /** Returns true when no request waits, no transaction is open and no commit is due. */
  isIdle(): boolean
  /**
   * Defers work until just before the commit of the running transaction. Throws when no transaction
   * is running.
   */
  defer(work: readonly Deferred[]): void
  /**
   * Closes the queue. Commits the finished members, rolls back the unfinished member, and refuses
   * all waiting and later requests.
   */
  close(): Promise<void>
}

/** A write transaction. The transaction keeps the connection until its commit or rollback. */
export interface WriteTransaction {
  run<R>(query: SqlQuery): QueryResult<R>
  /** Ends the transaction. Resolves after the commit of its group is on the disk. */
  commit(): Promise<void>
  /**
   * Undoes the changes of the transaction immediately. Resolves after the commit of the group: the
   * transaction may have read changes of other members, which are uncertain until then.
   */
  rollback(): Promise<void>
}

export interface ExclusiveConnection {
  run<R>(query: SqlQuery): QueryResult<R>
  release(): void
}
