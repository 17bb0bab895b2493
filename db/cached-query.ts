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
type Statements = Pick<LRUCache<string, CachedStatement>, 'get' | 'set'>

/**
 * Returns a getter for the statements of a database engine, at most `max` of them. Each engine
 * compiles to its own SQL.
 */
export function perEngine(max: number): (db: Db) => Statements {
  const engines = new WeakMap<object, Statements>()
  return (db) => {
    const { adapter } = db.getExecutor()
    const statements: Statements = engines.get(adapter) ?? new LRUCache({ max })
    engines.set(adapter, statements)
    return statements
  }
}

/**
 * Returns a function that runs a query with values. `build` runs once for each engine and each
 * length of its lists, and must be a function of a module: it sees nothing of a call but the
 * engine. A list is padded with its last value to one of a few lengths, and an empty list has no
 * rows.
 */
export function cachedQuery<Slots extends readonly AnyBound[], Row>(
  build: (db: Db, ...values: Slots) => Compilable<Row>,
): (db: Db, ...values: ValuesOf<Slots>) => Promise<Row[]> {
  const statementsOf = perEngine(maxLengths)
  return (db, ...values) =>
    runWithLists(db, { statements: statementsOf(db), key: '' }, values, (...slots) =>
      build(db, ...(slots as unknown as Slots)),
    )
}

/** The maximum number of statements of one query, one for each combination of list lengths. */
const maxLengths = 100

/** Where a cached statement stands. */
export interface StatementPlace {
  statements: Statements
  key: string
}

/** Runs a query like `cachedQuery`, with its statement at a given place, or anew without one. */
export async function runWithLists<Row>(
  db: Db,
  place: StatementPlace | null,
  values: readonly unknown[],
  build: (...slots: AnyBound[]) => Compilable<Row>,
): Promise<Row[]> {
  const lists = values.filter(Array.isArray)
  if (lists.some((list) => list.length === 0)) return []
  // A longer list is one parameter (long-lists.ts), and such queries are rare.
  if (place === null || lists.some((list) => list.length > maxListParameters))
    return (await runCached(db, null, values, () => build(...(values as AnyBound[])))).rows
  const padded = values.map((value) => (Array.isArray(value) ? padToBucket(value) : value))
  const lengths = padded.map((value) => (Array.isArray(value) ? value.length : ''))
  const query = () => {
    let index = 0
    const slot = () => sql.val(new Slot(index++))
    return build(...padded.map((value) => (Array.isArray(value) ? value.map(slot) : slot())))
  }
  return (await runCached(db, { ...place, key: `${lengths} ${place.key}` }, padded.flat(), query)).rows
}

/**
 * Runs a query whose statement is cached at a place, or anew without one. Queries with equal keys
 * must have the same SQL. The SQL has slots for the values. SQL that was built with the
 * values themselves must have them as its last parameters, in this order. Otherwise this throws.
 */
export async function runCached<Row>(
  db: Db,
  place: StatementPlace | null,
  values: readonly unknown[],
  build: () => Compilable<Row>,
): Promise<QueryResult<Row>> {
  if (place === null) return db.executeQuery<Row>(build().compile())
  const { statements, key } = place
  let known = statements.get(key)
  if (known === undefined) {
    const compiled = build().compile()
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
