// The Kysely driver for SQLite. Reads outside of transactions use a separate connection and never
// wait for a write. All other statements use the write queue.

import {
  type DatabaseConnection,
  DefaultConnectionProvider,
  type Dialect,
  type Driver,
  Kysely,
  type QueryResult,
  SqliteAdapter,
  SqliteIntrospector,
} from 'kysely'
import { DirectExecutor, type EngineParts, type Execute } from '../direct-executor.ts'
import { SqliteCompiler } from '../long-lists.ts'
import type { Pause } from '../store.ts'
import { retryWhileBusy } from './busy-retry.ts'
import type { Membership } from './group-commit/group.ts'
import type { ExclusiveConnection, WriteQueue, WriteTransaction } from './group-commit/types.ts'
import { mayBeRead, type PreparedStatements, runStatement, type SqlQuery } from './prepared-statements.ts'
import type { ReadTransaction } from './read-transaction.ts'
import type { FaultLog } from './storage-faults.ts'

/**
 * Returns the Kysely instance of a store. A database in memory has no `reader`, so its reads wait
 * while a transaction is open.
 */
export function kyselySqlite<DB>(
  writer: WriteQueue<never>,
  {
    own,
    reader,
    faults,
    newPause,
  }: {
    own: PreparedStatements
    reader: { statements: PreparedStatements; look: ReadTransaction } | null
    faults: FaultLog
    newPause: () => Pause
  },
): Kysely<DB> {
  const reading = reader?.statements ?? own
  return kyselyOf(
    async <R>(query: SqlQuery) => {
      const statement =
        reading.cached(query.sql) ?? faults.recording(() => (mayBeRead(query.sql) ? reading : own).prepare(query.sql))
      if (statement.kind === 'write') return writer.write<R>(query)
      if (statement.kind === 'other' || !(reader !== null || writer.isIdle())) return writer.runOutside<R>(query)
      if (reader === null) return faults.recording(() => runStatement<R>(statement, query.parameters))
      // Writes do not block reads. A process that recovers or closes the log can block a read
      // briefly.
      const read = (): QueryResult<R> => {
        reader.look.begin()
        // The statement is prepared again, because `begin` empties the cache when the schema has
        // changed.
        return runStatement<R>(reading.prepare(query.sql), query.parameters)
      }
      return retryWhileBusy(() => faults.recording(read))
    },
    () => new OneConnection(writer, newPause),
  )
}

/** Returns a Kysely instance for a connection to a snapshot. */
export const kyselySqliteSnapshot = <DB>(statements: PreparedStatements, faults: FaultLog): Kysely<DB> =>
  kyselySqliteConnection(({ sql, parameters }) =>
    faults.recording(() => runStatement(statements.prepare(sql), parameters)),
  )

/**
 * Returns a Kysely instance that runs each statement without the write queue: immediately, or after
 * a pause.
 */
export function kyselySqliteConnection<DB>(
  runNow: <R>(query: SqlQuery) => QueryResult<R>,
  pause: Pause = () => null,
): Kysely<DB> {
  const now = async <R>(query: SqlQuery) => {
    const due = pause()
    if (due !== null) await due
    return runNow<R>(query)
  }
  return kyselyOf(now, () => ({ executeQuery: now, streamQuery: noStream }))
}

/** Returns a Kysely instance that runs its statements on another thread. */
export const kyselySqliteRemote = <DB>(execute: Execute): Kysely<DB> =>
  kyselyOf(execute, () => ({ executeQuery: execute, streamQuery: noStream }))

/**
 * Maps isolation levels to memberships in the write queue. The level is the only option that Kysely
 * passes to the driver, and SQLite does not need it: its transactions are always serializable.
 */
const memberships: Readonly<Record<string, Exclude<Membership, 'exclusive'>>> = {
  serializable: 'own group',
  snapshot: 'own group in parts',
}

function kyselyOf<DB>(execute: Execute, connect: () => DatabaseConnection): Kysely<DB> {
  const connectionOf = (connection: DatabaseConnection): OneConnection => {
    if (connection instanceof OneConnection) return connection
    throw new Error('A connection of kyselySqliteConnection cannot begin a transaction.')
  }
  const driver: Driver = {
    init: async () => undefined,
    acquireConnection: async () => connect(),
    beginTransaction: async (connection, { isolationLevel }) =>
      connectionOf(connection).begin(memberships[isolationLevel ?? ''] ?? 'member'),
    commitTransaction: (connection) => connectionOf(connection).commit(),
    rollbackTransaction: (connection) => connectionOf(connection).rollback(),
    savepoint: noSavepoint,
    rollbackToSavepoint: noSavepoint,
    releaseSavepoint: noSavepoint,
    releaseConnection: async (connection) => {
      if (connection instanceof OneConnection) connection.release()
    },
    destroy: async () => undefined,
  }
  const executor = new DirectExecutor(parts, execute, new DefaultConnectionProvider(driver))
  return new Kysely<DB>({ config: { dialect }, dialect, driver, executor })
}

const dialect: Dialect = {
  createAdapter: () => new SqliteAdapter(),
  createDriver: () => {
    throw new Error('A database is opened by db/store.ts.')
  },
  createIntrospector: (db) => new SqliteIntrospector(db),
  createQueryCompiler: () => new SqliteCompiler(),
}

const parts: EngineParts = { compiler: new SqliteCompiler(), adapter: new SqliteAdapter() }

/**
 * The connection of Kysely's `transaction()` and `connection()`. A transaction enters the write
 * queue at `begin`, and `connection()` at its first statement.
 */
class OneConnection implements DatabaseConnection {
  readonly #queue: WriteQueue<never>
  #transaction: WriteTransaction | null = null
  #exclusive: Promise<ExclusiveConnection> | null = null
  readonly #newPause: () => Pause
  #pause: Pause = () => null

  constructor(writer: WriteQueue<never>, newPause: () => Pause) {
    this.#queue = writer
    this.#newPause = newPause
  }

  async begin(as: Exclude<Membership, 'exclusive'>): Promise<void> {
    if (this.#exclusive === null) this.#transaction = await this.#queue.begin(as)
    else (await this.#exclusive).run({ sql: 'begin', parameters: [] })
    this.#pause = this.#newPause()
  }

  commit = (): Promise<void> => this.#end('commit')

  rollback = (): Promise<void> => this.#end('rollback')

  async #end(how: 'commit' | 'rollback'): Promise<void> {
    const transaction = this.#transaction
    if (transaction === null) {
      await this.executeQuery({ sql: how, parameters: [] })
      return
    }
    await transaction[how]()
  }

  async executeQuery<R>(query: SqlQuery): Promise<QueryResult<R>> {
    const transaction = this.#transaction
    if (transaction !== null) {
      const due = this.#pause()
      if (due !== null) await due
      return transaction.run<R>(query)
    }
    this.#exclusive ??= this.#queue.exclusive()
    return (await this.#exclusive).run<R>(query)
  }

  streamQuery = noStream

  release(): void {
    this.#transaction = null
    void this.#exclusive?.then((exclusive) => exclusive.release(), nothing)
    this.#exclusive = null
  }
}

const nothing = (): void => undefined

/** Throws, because during a stream the other queries of the connection would read old data. */
const noStream = (): never => {
  throw new Error('Rows can be streamed only from store.snapshot().')
}

const noSavepoint = (): never => {
  throw new Error('Use savepoint() of kernel/write/write.ts for a part that may fail alone.')
}
