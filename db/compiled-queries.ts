// Queries that are asked with every write: built and compiled once, and only bound after that. Those whose text follows from who calls
// are kept by src/kernel/query/statement-cache.ts.
import { type Compilable, CompiledQuery } from 'kysely'
import type { Db } from './store.ts'

/** By engine: each has words of its own. */
const queries = new WeakMap<object, Map<string, CompiledQuery>>()

/** Longer texts are not kept. */
const maxValues = 500

/**
 * The rows of a query that binds these values in this order, and no others. The same name and number of values must mean the same query;
 * there are only so many names, and `padded` numbers.
 */
export async function runCompiled<Row>(
  db: Db,
  name: string,
  values: readonly unknown[],
  build: () => Compilable<Row>,
): Promise<Row[]> {
  const { adapter } = db.getExecutor()
  const known = queries.get(adapter) ?? new Map<string, CompiledQuery>()
  queries.set(adapter, known)
  const key = `${name} ${values.length}`
  const found = known.get(key)
  if (found !== undefined) return (await db.executeQuery<Row>(withParameters<Row>(found, values))).rows
  const query = build().compile()
  const { parameters } = query
  const isBound = parameters.length === values.length && parameters.every((each, at) => Object.is(each, values[at]))
  if (!isBound) throw new Error(`The query "${name}" binds other values than those that were named.`)
  if (values.length <= maxValues) known.set(key, textOnly(query.sql))
  return (await db.executeQuery<Row>(query)).rows
}

/** What is to be kept of a compiled query: nothing of how it was built. */
export const textOnly = (text: string): CompiledQuery => CompiledQuery.raw(text)

/** The same with these values: Kysely would freeze it and give it a number each time. */
export const withParameters = <Row>(query: CompiledQuery, parameters: readonly unknown[]): CompiledQuery<Row> => ({
  ...(query as CompiledQuery<Row>),
  parameters,
})

const lengths = [1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1_000]

/** The same list, the last of it as often as makes one of few lengths: each length is a statement of its own. Of one value at least. */
export function padToBucket<T extends number | string>(list: readonly T[]): T[] {
  const length = lengths.find((each) => each >= list.length) ?? list.length
  const last = list.at(-1) as T
  return [...list, ...new Array<T>(length - list.length).fill(last)]
}
