// Kysely on a database of SQLite. Reading outside of transactions goes to a connection of its own and waits for nobody; what changes
// something takes its turn at the one that writes.

import {
  type CompiledQuery,
  type ConnectionProvider,
  type DatabaseConnection,
  DefaultConnectionProvider,
  DefaultQueryExecutor,
  type Dialect,
  type Driver,
  Kysely,
  type QueryResult,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from 'kysely'
import { retryWhileBusy } from './busy-retry.ts'
import type { Membership } from './group-commit/group.ts'
import type { ExclusiveConnection, WriteQueue, WriteTransaction } from './group-commit/types.ts'
import { mayBeRead, type PreparedStatements, runStatement, type SqlQuery } from './prepared-statements.ts'
import type { ReadTransaction } from './read-transaction.ts'
import type { FaultLog } from './storage-faults.ts'

/** Reads with `reader`, if there is one, while others write. Without one, reading waits while a transaction is under way. */
export function kyselySqlite<DB>(
  writer: WriteQueue<never>,
  {
    own,
    reader,
    faults,
  }: {
    own: PreparedStatements
    reader: { statements: PreparedStatements; look: ReadTransaction } | null
    faults: FaultLog
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
      // No write keeps it from reading. Another process that repairs or closes the log can, for a moment.
      const read = (): QueryResult<R> => {
        reader.look.begin()
        // Again, because the tables may have changed by that moment.
        return runStatement<R>(reading.prepare(query.sql), query.parameters)
      }
      return retryWhileBusy(() => faults.recording(read))
    },
    () => new OneConnection(writer),
  )
}

/** For a connection that nobody writes to. */
export const kyselySqliteSnapshot = <DB>(statements: PreparedStatements, faults: FaultLog): Kysely<DB> =>
  kyselySqliteConnection(({ sql, parameters }) =>
    faults.recording(() => runStatement(statements.prepare(sql), parameters)),
  )

/** For whoever has a connection, and maybe a transaction, for itself: each statement is run where it is asked for. */
export function kyselySqliteConnection<DB>(runNow: <R>(query: SqlQuery) => QueryResult<R>): Kysely<DB> {
  const now = async <R>(query: SqlQuery) => runNow<R>(query)
  return kyselyOf(now, () => ({ executeQuery: now, streamQuery: noStream }))
}

/** For statements that are run elsewhere, one after another. */
export const kyselySqliteRemote = <DB>(execute: Execute): Kysely<DB> =>
  kyselyOf(execute, () => ({ executeQuery: execute, streamQuery: noStream }))

/** Kysely has no other option that says how a transaction is begun. Every transaction of SQLite is serializable. */
const memberships: Readonly<Record<string, Exclude<Membership, 'exclusive'>>> = {
  serializable: 'own group',
  snapshot: 'own group in parts',
}

type Execute = <R>(query: SqlQuery) => Promise<QueryResult<R>>

function kyselyOf<DB>(execute: Execute, connect: () => DatabaseConnection): Kysely<DB> {
  const turnOf = (connection: DatabaseConnection): OneConnection => {
    if (connection instanceof OneConnection) return connection
    throw new Error('Who has a connection for itself begins no transaction on it.')
  }
  const driver: Driver = {
    init: async () => undefined,
    acquireConnection: async () => connect(),
    beginTransaction: async (connection, { isolationLevel }) =>
      turnOf(connection).begin(memberships[isolationLevel ?? ''] ?? 'member'),
    commitTransaction: (connection) => turnOf(connection).commit(),
    rollbackTransaction: (connection) => turnOf(connection).rollback(),
    savepoint: noSavepoint,
    rollbackToSavepoint: noSavepoint,
    releaseSavepoint: noSavepoint,
    releaseConnection: async (connection) => {
      if (connection instanceof OneConnection) connection.release()
    },
    destroy: async () => undefined,
  }
  const executor = new DirectExecutor(execute, new DefaultConnectionProvider(driver))
  return new Kysely<DB>({ config: { dialect }, dialect, driver, executor })
}

const dialect: Dialect = {
  createAdapter: () => new SqliteAdapter(),
  createDriver: () => {
    throw new Error('A database is opened by db/store.ts.')
  },
  createIntrospector: (db) => new SqliteIntrospector(db),
  createQueryCompiler: () => new SqliteQueryCompiler(),
}

const compiler = new SqliteQueryCompiler()
const adapter = new SqliteAdapter()

/** Runs statements without the promises that a pool of connections would take. */
class DirectExecutor extends DefaultQueryExecutor {
  readonly #execute: Execute
  readonly #isOfOne: boolean

  constructor(execute: Execute, provider: ConnectionProvider, isOfOne = false) {
    super(compiler, adapter, provider)
    this.#execute = execute
    this.#isOfOne = isOfOne
  }

  override executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    return this.#execute<R>(query)
  }

  override withoutPlugins(): DefaultQueryExecutor {
    return this
  }

  /**
   * For what stands in a transaction or on one connection. Kysely hands over a provider of that one, which has nothing to wait for, and
   * another one of the same before each statement.
   */
  override withConnectionProvider(provider: ConnectionProvider): DefaultQueryExecutor {
    if (this.#isOfOne) return this
    let given: DatabaseConnection | undefined
    void provider.provideConnection(async (connection) => {
      given = connection
    })
    const connection = given as DatabaseConnection | undefined
    if (connection === undefined) return super.withConnectionProvider(provider)
    return new DirectExecutor((query) => connection.executeQuery(query as CompiledQuery), provider, true)
  }
}

/** What `transaction()` and `connection()` hold; it takes its turn when it begins. */
class OneConnection implements DatabaseConnection {
  readonly #writer: WriteQueue<never>
  #turn: WriteTransaction | null = null
  #alone: Promise<ExclusiveConnection> | null = null

  constructor(writer: WriteQueue<never>) {
    this.#writer = writer
  }

  async begin(as: Exclude<Membership, 'exclusive'>): Promise<void> {
    if (this.#alone === null) this.#turn = await this.#writer.begin(as)
    else (await this.#alone).run({ sql: 'begin', parameters: [] })
  }

  commit = (): Promise<void> => this.#end('commit')

  rollback = (): Promise<void> => this.#end('rollback')

  async #end(how: 'commit' | 'rollback'): Promise<void> {
    const turn = this.#turn
    if (turn === null) {
      await this.executeQuery({ sql: how, parameters: [] })
      return
    }
    await turn[how]()
  }

  async executeQuery<R>(query: SqlQuery): Promise<QueryResult<R>> {
    if (this.#turn !== null) return this.#turn.run<R>(query)
    this.#alone ??= this.#writer.exclusive()
    return (await this.#alone).run<R>(query)
  }

  streamQuery = noStream

  release(): void {
    this.#turn = null
    void this.#alone?.then((exclusive) => exclusive.release(), nothing)
    this.#alone = null
  }
}

const nothing = (): void => undefined

/** An open query would keep all others on its connection in the past. */
const noStream = (): never => {
  throw new Error('Rows one by one are read from a snapshot: store.snapshot().')
}

const noSavepoint = (): never => {
  throw new Error('A part that may fail alone is savepoint() of kernel/write.ts.')
}
