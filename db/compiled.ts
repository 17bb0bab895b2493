// Queries that are asked with every write: built and compiled once, and only bound after that. Those whose text follows from who calls
// are kept by src/kernel/kept.ts.
import { type Compilable, CompiledQuery } from 'kysely'
import type { Db } from './open.ts'

/** By engine: each has words of its own. */
const texts = new WeakMap<object, Map<string, string>>()

/**
 * The rows of a query that binds these values in this order, and no others. The same name must mean the same query; there are only so
 * many names.
 */
export async function asked<Row>(
  db: Db,
  name: string,
  values: readonly unknown[],
  build: () => Compilable<Row>,
): Promise<Row[]> {
  const engine = db.getExecutor().adapter
  const known = texts.get(engine) ?? new Map<string, string>()
  texts.set(engine, known)
  const text = known.get(name)
  if (text !== undefined)
    return (await db.executeQuery<Row>(CompiledQuery.raw(text, [...values]) as CompiledQuery<Row>)).rows
  const query = build().compile()
  const { parameters } = query
  const isBound = parameters.length === values.length && parameters.every((each, at) => Object.is(each, values[at]))
  if (!isBound) throw new Error(`The query "${name}" binds other values than those that were named.`)
  known.set(name, query.sql)
  return (await db.executeQuery<Row>(query)).rows
}
