// The Kysely executor of both engines. It runs statements directly and so avoids the promises that
// Kysely creates to acquire a connection.

import {
  type CompiledQuery,
  type ConnectionProvider,
  type DatabaseConnection,
  DefaultQueryExecutor,
  type DialectAdapter,
  type QueryCompiler,
  type QueryResult,
} from 'kysely'

/** Runs a compiled statement outside of Kysely's transactions. */
export type Execute = <R>(query: {
  readonly sql: string
  readonly parameters: readonly unknown[]
}) => Promise<QueryResult<R>>

export interface EngineParts {
  readonly compiler: QueryCompiler
  /**
   * All executors of an engine share this object, because caches of compiled queries use it as
   * their key.
   */
  readonly adapter: DialectAdapter
}

export class DirectExecutor extends DefaultQueryExecutor {
  readonly #parts: EngineParts
  readonly #execute: Execute
  readonly #isBound: boolean

  constructor(parts: EngineParts, execute: Execute, provider: ConnectionProvider, isBound = false) {
    super(parts.compiler, parts.adapter, provider)
    this.#parts = parts
    this.#execute = execute
    this.#isBound = isBound
  }

  override executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    return this.#execute<R>(query)
  }

  override withoutPlugins(): DefaultQueryExecutor {
    return this
  }

  /**
   * Returns an executor bound to the provider's connection. Kysely calls this method for a
   * transaction or `connection()`, and again before each statement. The provider runs its callback
   * synchronously, so no promise is needed to get the connection.
   */
  override withConnectionProvider(provider: ConnectionProvider): DefaultQueryExecutor {
    if (this.#isBound) return this
    let given: DatabaseConnection | undefined
    void provider.provideConnection(async (connection) => {
      given = connection
    })
    const connection = given as DatabaseConnection | undefined
    if (connection === undefined) return super.withConnectionProvider(provider)
    const bound: Execute = (query) => connection.executeQuery(query as CompiledQuery)
    return new DirectExecutor(this.#parts, bound, provider, true)
  }
}
