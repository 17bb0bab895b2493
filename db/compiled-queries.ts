// Compiles a query once and runs it again with new parameter values. Building and compiling a query
// with Kysely takes longer than SQLite needs to run most queries.
import { type Compilable, CompiledQuery, type QueryResult } from 'kysely'
import { LRUCache } from 'lru-cache'
import type { Db } from './store.ts'

/** A query whose SQL is the same in each call. Only the last bound values differ between calls. */
export interface CachedQuery<Row> {
  /**
   * The name and the number of `values` are the cache key. Queries with the same key must have the
   * same SQL and the same parameters before `values`.
   */
  name: string
  /**
   * The values of this call. The query must bind these values in this order, after all other
   * values.
   */
  values: readonly unknown[]
  build: () => Compilable<Row> | Promise<Compilable<Row>>
}

export interface Statement {
  query: CompiledQuery
  /** The constant values that the query binds before the values of a call. */
  leading: readonly unknown[]
}

export interface StatementCache {
  run<Row>(db: Db, query: CachedQuery<Row>): Promise<QueryResult<Row>>
}

/** Runs before each use of a cached statement. */
export type StatementCheck = (statement: Statement, query: CachedQuery<unknown>) => Promise<void>

/** Returns a cache of at most `max` statements. */
export function createStatementCache(max: number, check?: StatementCheck): StatementCache {
  const statements = new LRUCache<string, Statement>({ max })
  return {
    async run<Row>(db: Db, query: CachedQuery<Row>): Promise<QueryResult<Row>> {
      const { name, values, build } = query
      const key = `${values.length} ${name}`
      const found = statements.get(key)
      if (found !== undefined) {
        if (check !== undefined) await check(found, query)
        const { leading } = found
        return db.executeQuery<Row>(
          withParameters(found.query, leading.length === 0 ? values : [...leading, ...values]),
        )
      }
      const compiled = (await build()).compile()
      const leading = compiled.parameters.slice(0, compiled.parameters.length - values.length)
      const last = compiled.parameters.slice(leading.length)
      // A query that does not bind `values` last is not cached, because its values cannot be
      // replaced.
      if (last.length === values.length && last.every((value, index) => Object.is(value, values[index])))
        statements.set(key, { query: shared(compiled.sql), leading })
      return db.executeQuery<Row>(compiled)
    },
  }
}

const maxTexts = 4_000
const texts = new LRUCache<string, CompiledQuery>({ max: maxTexts })

/**
 * Returns the compiled query of an SQL text. Cache entries with the same text share one object, to
 * save memory.
 */
function shared(text: string): CompiledQuery {
  const known = texts.get(text)
  if (known !== undefined) return known
  const made = textOnly(text)
  texts.set(text, made)
  return made
}

const maxStatements = 500
/** One cache for each database engine, because each engine compiles to its own SQL. */
const caches = new WeakMap<object, StatementCache>()

/**
 * Runs a cached query and returns its rows. The SQL text may depend only on `name` and on the
 * number of `values`.
 */
export async function runCompiled<Row>(
  db: Db,
  name: string,
  values: readonly unknown[],
  build: () => Compilable<Row>,
): Promise<Row[]> {
  const { adapter } = db.getExecutor()
  const cache = caches.get(adapter) ?? createStatementCache(maxStatements)
  caches.set(adapter, cache)
  return (await cache.run(db, { name, values, build })).rows
}

/**
 * Returns a compiled query without its query tree. The tree takes far more memory than the text.
 */
export const textOnly = (text: string): CompiledQuery => CompiledQuery.raw(text)

/**
 * Returns a copy of the query with other parameters. `CompiledQuery.raw` would freeze each copy and
 * create a new query id.
 */
const withParameters = <Row>(query: CompiledQuery, parameters: readonly unknown[]): CompiledQuery<Row> => ({
  ...(query as CompiledQuery<Row>),
  parameters,
})

const lengths = [1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1_000]

/**
 * Repeats the last value of the list until the list has one of a few fixed lengths. Each length
 * needs its own compiled statement, so fewer lengths need fewer statements. The list must not be
 * empty.
 */
export function padToBucket<T extends number | string>(list: readonly T[]): T[] {
  const length = lengths.find((each) => each >= list.length) ?? list.length
  const last = list.at(-1) as T
  return [...list, ...new Array<T>(length - list.length).fill(last)]
}
