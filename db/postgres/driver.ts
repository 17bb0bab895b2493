// The Kysely driver for PostgreSQL. Every write runs in a SERIALIZABLE transaction, which is
// retried after a serialization failure. statements.ts runs single statements.

import { setTimeout as sleep } from 'node:timers/promises'
import {
  type CompiledQuery,
  type DatabaseMetadataOptions,
  type Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  type QueryResult,
  sql,
  type TableMetadata,
} from 'kysely'
import type { PoolClient } from 'pg'
import { directKysely } from '../direct-executor.ts'
import { PostgresCompiler } from '../long-lists.ts'
import { commitOrderOf, enterCommitOrder, maxPauseInTransactionMs } from './commit-order.ts'
import { lockTimeoutMs, type Pools, statementLockTimeoutMs, statementTimeoutMs } from './connection.ts'
import {
  asLost,
  endsConnection,
  leavesCommitUnknown,
  mustRunAgain,
  StandbyError,
  sqlStateOf,
  UncertainCommitError,
  undefinedTable,
  unsupportedFeature,
} from './errors.ts'
import { isLockTimeout } from './locked-tables.ts'
import { isReading, readOnce, runQuery, type TextQuery, unlessLocked, withReader } from './statements.ts'

const shortLockTimeout = `set local lock_timeout = ${statementLockTimeoutMs}`
/** Runs a statement without a result with the longer wait for locks. */
const waitLong = (text: string): string => `set local lock_timeout = ${lockTimeoutMs}; ${text}; ${shortLockTimeout}`

/** After this time a transaction is no longer retried, and its conflict is thrown as an error. */
const maxConflictMs = 5_000
/** The pause before the second attempt. It doubles with each attempt up to `maxPauseMs`. */
const firstPauseMs = 4
const maxPauseMs = 200

export interface WriteEvents {
  /** Called after each commit, before the caller gets its result. */
  onCommit(): void
  /** Called with the error of each transaction that failed and is not retried. */
  onError(error: unknown): void
  onRetry(): void
  /** See `PostgresOptions`. */
  beforeCommit?: (attempt: number) => void
}

/** A transaction on one connection. */
export class PostgresTransaction {
  readonly #pools: Pools
  readonly #client: PoolClient
  readonly #beforeCommit: (() => void) | undefined
  /** The first error after which the whole transaction is retried. */
  failure: unknown
  /** The error after which the connection cannot be used again. */
  #brokenBy: unknown
  #isEnded = false
  #isInOrder = false
  /** End the turns of this transaction. */
  readonly #endTurns: (() => void)[] = []

  private constructor(pools: Pools, client: PoolClient, beforeCommit: (() => void) | undefined) {
    this.#pools = pools
    this.#client = client
    this.#beforeCommit = beforeCommit
  }

  /**
   * Begins a transaction. With `isAlone` it waits for all other writers and blocks new ones, so it
   * cannot conflict. PostgreSQL takes its snapshot at the first statement after this call.
   */
  static async begin(pools: Pools, isAlone: boolean, beforeCommit?: () => void): Promise<PostgresTransaction> {
    const transaction = new PostgresTransaction(pools, await pools.take('write'), beforeCommit)
    try {
      await transaction.#begin(isAlone ? 'exclusive' : 'row share')
    } catch (error) {
      await transaction.rollback()
      throw error
    }
    return transaction
  }

  async #begin(mode: 'exclusive' | 'row share'): Promise<void> {
    if (mode === 'exclusive') this.#endTurns.push(await commitOrderOf(this.#pools).alone.take())
    const begin = 'begin isolation level serializable read write'
    // A retry waits for all writers that run, so a process that stands still must not hold up any.
    const limits = `set local statement_timeout = ${statementTimeoutMs}; set local lock_timeout = ${lockTimeoutMs}; set local idle_in_transaction_session_timeout = ${maxPauseInTransactionMs}`
    try {
      await this.run({
        sql: `${begin}; ${limits}; lock table commit_order in ${mode} mode; ${shortLockTimeout}`,
        parameters: [],
      })
    } catch (error) {
      if (sqlStateOf(error) === unsupportedFeature) throw this.#fail(new StandbyError(error))
      // The database has no tables yet, so the only writer is a migration, which needs no lock.
      if (sqlStateOf(error) !== undefinedTable) throw error
      await this.run({ sql: 'rollback', parameters: [] })
      await this.run({ sql: begin, parameters: [] })
    }
  }

  async run<R>(query: TextQuery): Promise<QueryResult<R>> {
    if (query.sql === enterCommitOrder && !this.#isInOrder) {
      this.#isInOrder = true
      this.#endTurns.push(await commitOrderOf(this.#pools).entering.take())
    }
    if (query.sql === enterCommitOrder) return this.#run({ sql: waitLong(query.sql), parameters: [] })
    return this.#run(query)
  }

  async #run<R>(query: TextQuery): Promise<QueryResult<R>> {
    try {
      return await unlessLocked(this.#pools, query, () => runQuery<R>(this.#client, query))
    } catch (error) {
      if (mustRunAgain(error)) this.failure ??= error
      if (isLockTimeout(error))
        await withReader(this.#pools, (client) => this.#pools.lockedTables.learn(client)).catch(() => undefined)
      throw this.#fail(error)
    }
  }

  #fail(error: unknown): unknown {
    if (endsConnection(error)) this.#brokenBy ??= error
    return error
  }

  /**
   * Commits the transaction. Throws if a statement failed, because the server then rolls back
   * instead.
   */
  async commit(): Promise<void> {
    // The caller may have caught the error of a statement, for example for one row of an import.
    const earlier = this.failure ?? this.#brokenBy
    if (earlier !== undefined) throw earlier
    try {
      this.#beforeCommit?.()
      const { command } = await this.#client.query('commit')
      if (command !== 'COMMIT') throw new RolledBackError()
    } catch (error) {
      if (mustRunAgain(error)) this.failure ??= error
      if (error instanceof RolledBackError) throw error
      throw leavesCommitUnknown(this.#fail(error)) ? new UncertainCommitError(error) : error
    }
    this.#release()
  }

  /** Rolls the transaction back. Does nothing after a commit. */
  async rollback(): Promise<void> {
    if (this.#isEnded) return
    try {
      if (this.#brokenBy === undefined) await this.#client.query('rollback')
    } catch (error) {
      this.#brokenBy = asLost(error)
    } finally {
      this.#release()
    }
  }

  #release(): void {
    if (this.#isEnded) return
    this.#isEnded = true
    for (const endTurn of this.#endTurns) endTurn()
    this.#pools.release(this.#client, this.#brokenBy)
  }
}

class RolledBackError extends Error {
  constructor() {
    super('A transaction went on after a failed statement, so the server rolled it back.')
  }
}

/**
 * Runs `work` in a SERIALIZABLE transaction and commits it. After a serialization failure or a
 * deadlock, `work` runs again while other writers are blocked. Without the block the attempts could
 * conflict forever, because all writers insert into the same index pages. With `isAlone`, other
 * writers are blocked from the first attempt. `work` must have no effect outside the database.
 * Throws the error of `work`, or the serialization failure of the last attempt.
 */
export async function runTransaction<DB, T>(
  pools: Pools,
  events: WriteEvents,
  work: (db: Kysely<DB>) => Promise<T>,
  isAlone = false,
): Promise<T> {
  const since = performance.now()
  for (let attempt = 0; ; attempt++) {
    const beforeCommit = (): void => events.beforeCommit?.(attempt)
    const transaction = await PostgresTransaction.begin(pools, isAlone || attempt > 0, beforeCommit).catch(
      (error: unknown) => {
        events.onError(error)
        throw error
      },
    )
    try {
      const result = await work(kyselyInTransaction<DB>(transaction))
      await transaction.commit()
      events.onCommit()
      return result
    } catch (error) {
      await transaction.rollback()
      if (transaction.failure === undefined || performance.now() - since > maxConflictMs) {
        const final = transaction.failure ?? error
        events.onError(final)
        throw final
      }
      events.onRetry()
    }
    // The random factor keeps conflicting transactions from retrying at the same moment.
    await sleep(Math.min(maxPauseMs, firstPauseMs * 2 ** attempt) * (0.5 + Math.random()))
  }
}

/** Returns the Kysely instance for `Store.db`. */
export const kyselyPostgres = <DB>(pools: Pools, events: WriteEvents): Kysely<DB> =>
  kyselyOf<DB>((query) =>
    isReading(query.sql)
      ? readOnce(pools, query)
      : runTransaction(pools, events, (db) => db.executeQuery(query as CompiledQuery) as Promise<QueryResult<never>>),
  )

/** Returns a Kysely instance that runs every statement in the given transaction. */
export const kyselyInTransaction = <DB>(transaction: Pick<PostgresTransaction, 'run'>): Kysely<DB> =>
  kyselyOf<DB>((query) => transaction.run(query))

/** Returns a Kysely instance over one connection. The caller closes the connection. */
export const kyselyOnClient = <DB>(client: PoolClient): Kysely<DB> =>
  kyselyInTransaction<DB>({ run: (query) => runQuery(client, query) })

/** Lists only the tables of the current schema, because unqualified table names refer to it. */
class OwnIntrospector extends PostgresIntrospector {
  // biome-ignore lint/suspicious/noExplicitAny: the type of Kysely
  readonly #db: Kysely<any>

  // biome-ignore lint/suspicious/noExplicitAny: the type of Kysely
  constructor(db: Kysely<any>) {
    super(db)
    this.#db = db
  }

  override async getTables(options?: DatabaseMetadataOptions): Promise<TableMetadata[]> {
    const { rows } = await sql<{ schema: string | null }>`select current_schema() as schema`.execute(this.#db)
    return (await super.getTables(options)).filter(({ schema }) => schema === rows[0]?.schema)
  }
}

const kyselyOf = directKysely({
  createAdapter: () => new PostgresAdapter(),
  createIntrospector: (db) => new OwnIntrospector(db),
  createQueryCompiler: () => new PostgresCompiler(),
})
