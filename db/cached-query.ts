// Queries whose SQL is compiled once. Building and compiling a query with Kysely takes longer than
// SQLite needs to run most queries (the figures are in README.md).
import { type Compilable, CompiledQuery, type Expression, type QueryResult, sql } from 'kysely'
import { LRUCache } from 'lru-cache'
import { maxListParameters } from './long-lists.ts'
import type { Db } from './store.ts'

/**
 * Stands for a value of a call while a cached query is built. It has no value, so the SQL cannot
 * depend on one. For a list it is an array of such expressions, as `in` takes it.
 */
export type Bound<T> = [T] extends [readonly (infer Each)[]] ? readonly Expression<Each>[] : Expression<T>

type AnyBound = Expression<unknown> | readonly Expression<unknown>[]

/** The values that a call passes for the expressions of a query. */
type ValuesOf<Slots extends readonly AnyBound[]> = {
  [Index in keyof Slots]: Slots[Index] extends readonly Expression<infer Each>[]
    ? readonly Each[]
    : Slots[Index] extends Expression<infer Each>
      ? Each
      : never
}

/** Stands among the parameters of a compiled query for a value of a call. */
class Slot {
  readonly index: number
  constructor(index: number) {
    this.index = index
  }
}

interface CachedStatement {
  query: CompiledQuery
  /** The parameters: constants of the query, and slots for the values of a call. */
  parameters: readonly unknown[]
}

/** The compiled statements of a cache by key. */
export type Statements = Pick<LRUCache<string, CachedStatement>, 'get' | 'set'>

export const createStatements = (max: number): Statements => new LRUCache({ max })

/**
 * Returns a function that runs a query with values. `build` runs once for each engine and each
 * length of its lists, and must be a function of a module: it sees nothing of a call but the
 * engine. A list is padded with its last value to one of a few lengths, and an empty list has no
 * rows.
 */
export function cachedQuery<Slots extends readonly AnyBound[], Row>(
  build: (db: Db, ...values: Slots) => Compilable<Row>,
): (db: Db, ...values: ValuesOf<Slots>) => Promise<Row[]> {
  // Each engine compiles to its own SQL.
  const engines = new WeakMap<object, Statements>()
  return async (db, ...values) => {
    const { adapter } = db.getExecutor()
    const statements = engines.get(adapter) ?? createStatements(maxLengths)
    engines.set(adapter, statements)
    return runWithLists(db, { statements, key: '' }, values, (...slots) => build(db, ...(slots as unknown as Slots)))
  }
}

/** The maximum number of statements of one query, one for each combination of list lengths. */
const maxLengths = 100

interface Place {
  statements: Statements
  key: string
}

/** Runs a query like `cachedQuery`, with its statement at a given place. */
export async function runWithLists<Row>(
  db: Db,
  { statements, key }: Place,
  values: readonly unknown[],
  build: (...slots: AnyBound[]) => Compilable<Row>,
): Promise<Row[]> {
  const lists = values.filter(Array.isArray)
  if (lists.some((list) => list.length === 0)) return []
  // A longer list is one parameter (long-lists.ts), and such queries are rare.
  if (lists.some((list) => list.length > maxListParameters))
    return (await db.executeQuery(build(...(values as AnyBound[])).compile())).rows
  const padded = values.map((value) => (Array.isArray(value) ? padToBucket(value) : value))
  const lengths = padded.map((value) => (Array.isArray(value) ? value.length : ''))
  const place = { statements, key: `${lengths} ${key}` }
  const query = () => {
    let index = 0
    const slot = () => sql.val(new Slot(index++))
    return build(...padded.map((value) => (Array.isArray(value) ? value.map(slot) : slot())))
  }
  return (await runCached(db, place, padded.flat(), query)).rows
}

/**
 * Runs a query whose statement is cached under a key. Queries with equal keys must have the same
 * SQL. The SQL has slots for the values. SQL without slots has the values themselves, as its last
 * parameters; throws if it has others.
 */
export async function runCached<Row>(
  db: Db,
  { statements, key }: Place,
  values: readonly unknown[],
  build: () => Compilable<Row> | Promise<Compilable<Row>>,
): Promise<QueryResult<Row>> {
  let known = statements.get(key)
  if (known === undefined) {
    const compiled = (await build()).compile()
    const parameters = withSlots(compiled.parameters, values)
    // Without the query tree, which takes far more memory than the text.
    known = { query: CompiledQuery.raw(compiled.sql), parameters }
    statements.set(key, known)
  }
  // `CompiledQuery.raw` would freeze each copy and create a new query id.
  const query = { ...known.query, parameters: filled(known.parameters, values) } as CompiledQuery<Row>
  return db.executeQuery<Row>(query)
}

function withSlots(parameters: readonly unknown[], values: readonly unknown[]): readonly unknown[] {
  if (parameters.some((each) => each instanceof Slot)) return parameters
  const constants = parameters.length - values.length
  if (!values.every((value, index) => Object.is(value, parameters[constants + index])))
    throw new Error('A cached query must bind its values last and in their order.')
  return [...parameters.slice(0, constants), ...values.map((_, index) => new Slot(index))]
}

const filled = (parameters: readonly unknown[], values: readonly unknown[]): unknown[] =>
  parameters.map((each) => (each instanceof Slot ? values[each.index] : each))

const lengths = [1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1_000]

/**
 * Repeats the last value of the list until the list has one of a few lengths. Each length needs a
 * statement of its own.
 */
function padToBucket<T>(list: readonly T[]): T[] {
  const length = lengths.find((each) => each >= list.length) ?? list.length
  const last = list.at(-1) as T
  return [...list, ...new Array<T>(length - list.length).fill(last)]
}
