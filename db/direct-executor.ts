// Creates the Kysely instances of both engines. They run statements directly and so avoid the
// promises that Kysely creates to acquire a connection.

import {
  type CompiledQuery,
  type ConnectionProvider,
  DefaultQueryExecutor,
  type Dialect,
  DummyDriver,
  Kysely,
  type QueryResult,
} from 'kysely'

/** Runs a compiled statement. */
export type Execute = <R>(query: {
  readonly sql: string
  readonly parameters: readonly unknown[]
}) => Promise<QueryResult<R>>

/**
 * Returns a function that creates Kysely instances of an engine. All of them share one adapter,
 * because caches of compiled queries use it as their key.
 */
export function directKysely(engine: Omit<Dialect, 'createDriver'>): <DB>(execute: Execute) => Kysely<DB> {
  const dialect: Dialect = { ...engine, createDriver: () => driver }
  const [compiler, adapter] = [engine.createQueryCompiler(), engine.createAdapter()]
  class DirectExecutor extends DefaultQueryExecutor {
    readonly #execute: Execute

    constructor(execute: Execute) {
      super(compiler, adapter, noConnections)
      this.#execute = execute
    }

    override executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
      return this.#execute<R>(query)
    }

    override withoutPlugins(): DefaultQueryExecutor {
      return this
    }
  }
  return <DB>(execute: Execute) =>
    new Kysely<DB>({ config: { dialect }, dialect, driver, executor: new DirectExecutor(execute) })
}

const driver = new DummyDriver()

const noConnections: ConnectionProvider = {
  provideConnection: async () => {
    throw new Error('Use transaction() of the store, or each() of a snapshot to stream rows.')
  },
}
