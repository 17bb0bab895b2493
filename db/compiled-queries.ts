// Queries that are compiled once and then only bound: building and compiling one with Kysely takes
// longer than SQLite takes to run most of them.
import { type Compilable, CompiledQuery, type QueryResult } from 'kysely'
import { LRUCache } from 'lru-cache'
import type { Db } from './store.ts'

/** A query that differs from one call to the next only by the values it binds last. */
export interface CachedQuery<Row> {
  /**
   * Within one cache, the name and the number of values must determine the SQL and all values bound
   * before these.
   */
  name: string
  /** Bound last, in this order. */
  values: readonly unknown[]
  build: () => Compilable<Row> | Promise<Compilable<Row>>
}

export interface Statement {
  query: CompiledQuery
  /** The values bound before those of the call. */
  leading: readonly unknown[]
}

export interface StatementCache {
  run<Row>(db: Db, query: CachedQuery<Row>): Promise<QueryResult<Row>>
}

/** Called with a cached statement and the query it is used for. */
export type StatementCheck = (statement: Statement, query: CachedQuery<unknown>) => Promise<void>

/** A bounded cache; `check`, if given, runs before each use of a cached statement. */
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
      // A query that binds its values elsewhere cannot be bound again, so it is built each time.
      if (last.length === values.length && last.every((value, index) => Object.is(value, values[index])))
        statements.set(key, { query: shared(compiled.sql), leading })
      return db.executeQuery<Row>(compiled)
    },
  }
}

const maxTexts = 4_000
const texts = new LRUCache<string, CompiledQuery>({ max: maxTexts })

/** Most callers send the same SQL; the text is kept once for all of them. */
function shared(text: string): CompiledQuery {
  const known = texts.get(text)
  if (known !== undefined) return known
  const made = textOnly(text)
  texts.set(text, made)
  return made
}

const maxStatements = 500
/** By engine, because each has its own SQL. */
const caches = new WeakMap<object, StatementCache>()

/** The rows of a query whose text depends on nothing but its name and the number of its values. */
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
 * A compiled query without the tree it was built from, which takes far more memory than the text.
 */
export const textOnly = (text: string): CompiledQuery => CompiledQuery.raw(text)

/**
 * The query with other parameters. `CompiledQuery.raw` would freeze it and give it a new id each
 * time.
 */
const withParameters = <Row>(query: CompiledQuery, parameters: readonly unknown[]): CompiledQuery<Row> => ({
  ...(query as CompiledQuery<Row>),
  parameters,
})

const lengths = [1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1_000]

/**
 * The list padded with its last value to one of a few lengths, because each length is a statement
 * of its own. The list must not be empty.
 */
export function padToBucket<T extends number | string>(list: readonly T[]): T[] {
  const length = lengths.find((each) => each >= list.length) ?? list.length
  const last = list.at(-1) as T
  return [...list, ...new Array<T>(length - list.length).fill(last)]
}
