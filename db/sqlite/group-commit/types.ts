// What those get who take their turn at the connection that writes (write-queue.ts).

import type { QueryResult } from 'kysely'
import type { SqlQuery } from '../prepared-statements.ts'
import type { Membership } from './group.ts'

export interface WriteQueue<Late> {
  /** `own group`: with a commit of its own, for long work: earlier members do not wait for it, and it sees no uncommitted work. */
  begin(as: Exclude<Membership, 'alone'>): Promise<WriteTransaction>
  /** One statement that changes rows: a transaction of its own, in a group like any other. */
  change<R>(query: SqlQuery): Promise<QueryResult<R>>
  /** One statement that stands in no transaction. */
  outside<R>(query: SqlQuery): Promise<QueryResult<R>>
  /** The same for more than one: nobody else has the connection until it is given back. */
  alone(): Promise<ExclusiveConnection>
  /** Whether nobody is waiting, under way or waiting for the commit. */
  isIdle(): boolean
  /** For whoever is in a transaction: before it is committed, this is finished, at once with what the others of its group put off. */
  putOff(late: readonly Late[]): void
  /** Commits what waits for that; what is half-way is lost. Nothing more is done. */
  close(): Promise<void>
}

/** A transaction, which has the connection for itself until it ends one way or the other. */
export interface WriteTransaction {
  run<R>(query: SqlQuery): QueryResult<R>
  /** Settles with the commit of the group. */
  commit(): Promise<void>
  /** What it did is gone at once. What it has seen of the others of its group holds once this settles. */
  rollback(): Promise<void>
}

export interface ExclusiveConnection {
  run<R>(query: SqlQuery): QueryResult<R>
  giveBack(): void
}
