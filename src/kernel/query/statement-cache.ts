// What is kept in memory so that it need not be asked for or built again: statements by caller and shape, and what the database said
// until anything committed changes it (`Store.commitGeneration`). Nothing here outlives a user, a store or a change.
import type { Compilable, CompiledQuery, QueryResult } from 'kysely'
import { padToBucket, textOnly, withParameters } from '../../../db/compiled-queries.ts'
import type { Store } from '../../../db/store.ts'
import type { Context } from '../context.ts'

/** A query that differs from one time to the next only by what is bound last in it. */
export interface Shape<Row> {
  /** The same name, caller and number of values: the same text, and the same values before those. Null when that is not so. */
  name: string | null
  /** Bound last, in this order. */
  values: readonly unknown[]
  build: () => Compilable<Row> | Promise<Compilable<Row>>
}

interface Statement {
  query: CompiledQuery
  /** What is bound before the values. */
  first: readonly unknown[]
  asked: number
}

/** What is kept for one owner, and goes with it. */
export function mapFor<Owner extends object, Key, Value>(
  maps: WeakMap<Owner, Map<Key, Value>>,
  owner: Owner,
): Map<Key, Value> {
  const known = maps.get(owner)
  if (known) return known
  const made = new Map<Key, Value>()
  maps.set(owner, made)
  return made
}

/** For one caller: so many calls, and so many for each of them. */
const maxCalls = 50
const maxStatements = 100
const statements = new WeakMap<object, Map<string, Map<string, Statement>>>()

/** What rows are seen, and of what they are told, follows from the caller and the call: what is asked for, and what the token may do. */
const callerOf = ({ user, services }: Context): object => user ?? services
const calls = new WeakMap<object, Map<string | null, string>>()

/** The same text each time, since engines look up a new one letter by letter. */
function callOf({ token, operation, services }: Context): string {
  const known = mapFor(calls, token ?? services)
  const found = known.get(operation)
  if (found !== undefined) return found
  const text = `${operation} ${token?.abilities.toSorted().join() ?? ''}`
  known.set(operation, text)
  return text
}

interface Asking extends Pick<Context, 'user' | 'token' | 'operation'> {
  statements: Map<string, Statement>
}

/** Of each server the call that asked last: calls ask again and again. */
const lastCaller = new WeakMap<object, Asking>()

function statementsOf(ctx: Context): Map<string, Statement> {
  const { user, token, operation, services } = ctx
  const last = lastCaller.get(services)
  if (last?.user === user && last.token === token && last.operation === operation) return last.statements
  const found = statementsFor(ctx)
  lastCaller.set(services, { user, token, operation, statements: found })
  return found
}

function statementsFor(ctx: Context): Map<string, Statement> {
  const known = mapFor(statements, callerOf(ctx))
  const call = callOf(ctx)
  const found = known.get(call)
  if (found !== undefined) return found
  if (known.size >= maxCalls) known.clear()
  const made = new Map<string, Statement>()
  known.set(call, made)
  return made
}

/** The record just written is seen whoever owns it, by some: that makes a query of its own. */
const bypassesCache = ({ visibleRecord: admitted, user }: Context): boolean =>
  admitted !== undefined && user !== null && (user.visibleOwners !== null || user.permissions !== 'all')

/** The rows of a query that is built and compiled once for each caller and shape, and only bound after that. */
export async function queryCached<Row>(ctx: Context, shape: Shape<Row>): Promise<Row[]> {
  return (await execute(ctx, shape)).rows
}

async function execute<Row>(ctx: Context, { name, values, build }: Shape<Row>): Promise<QueryResult<Row>> {
  if (name === null || bypassesCache(ctx)) return run<Row>(ctx, (await build()).compile())
  const known = statementsOf(ctx)
  const key = keyOf(name, values.length)
  const found = known.get(key)
  if (found) {
    if (ctx.services.config.env === 'test') await compare(found, { name, values, build })
    return run<Row>(ctx, bound<Row>(found, values))
  }
  const query = (await build()).compile()
  const first = query.parameters.slice(0, query.parameters.length - values.length)
  const last = query.parameters.slice(first.length)
  // What is bound elsewhere cannot be bound anew: such a query is built each time.
  if (last.length === values.length && last.every((value, index) => Object.is(value, values[index]))) {
    if (known.size >= maxStatements) known.clear()
    known.set(key, { query: shared(query.sql), first, asked: 0 })
  }
  return run<Row>(ctx, query)
}

/** Those that bind one value are looked up by their name as it is, which saves engines a new text. No name begins with a number. */
const keyOf = (name: string, count: number): string => (count === 1 ? name : `${count} ${name}`)

const bound = <Row>({ query, first }: Statement, values: readonly unknown[]): CompiledQuery<Row> =>
  withParameters(query, first.length === 0 ? values : [...first, ...values])

const maxTexts = 4_000
let texts = new Map<string, CompiledQuery>()

/** Most callers ask in the same words: they are kept once. */
function shared(text: string): CompiledQuery {
  const known = texts.get(text)
  if (known !== undefined) return known
  if (texts.size >= maxTexts) texts = new Map()
  const made = textOnly(text)
  texts.set(text, made)
  return made
}

/** The rows of a query that names ids, in any number; `build` gets each of them at least once. Nothing is asked for none. */
export async function queryByIds<Row>(
  ctx: Context,
  name: string,
  ids: readonly number[],
  build: (ids: readonly number[]) => Compilable<Row> | Promise<Compilable<Row>>,
): Promise<Row[]> {
  if (ids.length === 0) return []
  const values = padToBucket(ids)
  return queryCached(ctx, { name, values, build: () => build(values) })
}

/** By table, what was added last: most rows of a table have the same columns. */
const insertions = new Map<string, { columns: readonly string[]; name: string }>()

function insertionOf(table: string, columns: readonly string[]): string {
  const known = insertions.get(table)
  if (known?.columns.length === columns.length && known.columns.every((column, at) => column === columns[at]))
    return known.name
  const name = `insert ${table} ${columns.join()}`
  insertions.set(table, { columns, name })
  return name
}

/** Adds a row, and answers its id. Keys that are undefined are columns left out. */
export async function insert(ctx: Context, table: string, row: Readonly<Record<string, unknown>>): Promise<number> {
  const columns: string[] = []
  const values: unknown[] = []
  let isPlain = true
  for (const column in row) {
    const value = row[column]
    if (value === undefined) continue
    columns.push(column)
    values.push(value)
    isPlain &&= typeof value !== 'object' || value === null
  }
  const { returnsInsertId: tellsIds } = ctx.services.store.dialect
  const build = (): Compilable<{ id: number }> => {
    const insertion = ctx.db.insertInto(table as never).values(row as never)
    return (tellsIds ? insertion : insertion.returning('id' as never)) as Compilable<{ id: number }>
  }
  const name = isPlain ? insertionOf(table, columns) : null
  const { rows, insertId } = await execute(ctx, { name, values, build })
  const id = tellsIds ? insertId : rows[0]?.id
  if (id === undefined) throw new Error(`No row was added to ${table}.`)
  return Number(id)
}

const run = <Row>({ db }: Context, query: CompiledQuery<Row>): Promise<QueryResult<Row>> => db.executeQuery<Row>(query)

/** In tests it is looked, now and then, whether what is kept still is what would be built. */
async function compare(found: Statement, { name, values, build }: Shape<unknown>): Promise<void> {
  found.asked++
  if (found.asked > 3 && found.asked % 16 !== 0) return
  const { sql, parameters } = (await build()).compile()
  const kept = JSON.stringify([found.query.sql, ...found.first, ...values])
  if (JSON.stringify([sql, ...parameters]) !== kept)
    throw new Error(`The query "${name}" depends on more than its caller, name and values: ${kept} was kept for ${sql}`)
}

interface Remembered {
  generation: number
  value: unknown
}

const maxRemembered = 300
const memories = new WeakMap<object, Map<string, Remembered>>()

/** What `read` answers about committed data, until any of it changes. `of` is whose it is: a store, or a caller of one. */
export async function untilNextCommit<T>(store: Store, of: object, key: string, read: () => Promise<T>): Promise<T> {
  const memory = mapFor(memories, of)
  const generation = store.commitGeneration()
  const known = memory.get(key)
  if (known?.generation === generation) return known.value as T
  const value = await read()
  if (memory.size >= maxRemembered) memory.clear()
  memory.set(key, { generation, value })
  return value
}

/** The same for what follows from what the caller may see; in a transaction or a snapshot, which see something else, it is read each time. */
export const untilNextCommitFor = <T>(ctx: Context, key: string | null, read: () => Promise<T>): Promise<T> =>
  key !== null && ctx.db === ctx.services.store.db && !bypassesCache(ctx)
    ? untilNextCommit(ctx.services.store, callerOf(ctx), `${key} ${callOf(ctx)}`, read)
    : read()
