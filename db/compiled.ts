// Queries that are asked with every write: built and compiled once, and only bound after that. Those whose text follows from who calls
// are kept by src/kernel/kept.ts.
import { type Compilable, CompiledQuery } from 'kysely'
import type { Db } from './open.ts'

/** By engine: each has words of its own. */
const texts = new WeakMap<object, Map<string, string>>()

/** Of longer lists there are many lengths, each a text of its own, and building it is the least of the work. */
const mostValues = 16

/**
 * The rows of a query that binds these values in this order, and no others. The same name and number of values must mean the same query;
 * there are only so many names.
 */
export async function asked<Row>(
  db: Db,
  name: string,
  values: readonly unknown[],
  build: () => Compilable<Row>,
): Promise<Row[]> {
  if (values.length > mostValues) return (await db.executeQuery<Row>(build().compile())).rows
  const engine = db.getExecutor().adapter
  const known = texts.get(engine) ?? new Map<string, string>()
  texts.set(engine, known)
  const key = `${name} ${values.length}`
  const text = known.get(key)
  if (text !== undefined)
    return (await db.executeQuery<Row>(CompiledQuery.raw(text, [...values]) as CompiledQuery<Row>)).rows
  const query = build().compile()
  const { parameters } = query
  const isBound = parameters.length === values.length && parameters.every((each, at) => Object.is(each, values[at]))
  if (!isBound) throw new Error(`The query "${name}" binds other values than those that were named.`)
  known.set(key, query.sql)
  return (await db.executeQuery<Row>(query)).rows
}
