// Caches compiled statements by caller and query name. Also caches query results until the next
// commit (`Store.commitGeneration`). Each cache is garbage-collected together with its caller or
// store.

import type { Compilable, QueryResult } from 'kysely'
import { LRUCache } from 'lru-cache'
import {
  type CachedQuery,
  createStatementCache,
  padToBucket,
  type StatementCache,
} from '../../../db/compiled-queries.ts'
import type { Store } from '../../../db/store.ts'
import type { Context } from '../context.ts'
import { perOwner } from '../runtime/per-owner.ts'

/** The maximum number of cached statements per caller. */
const maxStatements = 500
const maxResults = 300

/**
 * A query to cache. Its SQL may depend only on the user, the operation, the token's abilities, the
 * name and the number of values. A query whose name is null is not cached.
 */
export type CallerQuery<Row> = Omit<CachedQuery<Row>, 'name'> & { name: string | null }

/**
 * Returns the object that owns the cached statements: the user, or the services for a call without
 * a user. Each user has separate statements, because visibility and permissions change the SQL.
 */
const ownerOf = ({ user, services }: Context): object => user ?? services
const statements = new WeakMap<object, StatementCache>()

function statementsOf(ctx: Context): StatementCache {
  const owner = ownerOf(ctx)
  const known = statements.get(owner)
  if (known !== undefined) return known
  const created = createStatementCache(maxStatements, ctx.services.checkStatement)
  statements.set(owner, created)
  return created
}

const callTexts = perOwner(() => new Map<string | null, string>())

/**
 * Returns a text with the operation and the token's abilities, which also determine the SQL. The
 * text is cached per token and operation, so that its hash is computed once.
 */
function callOf({ token, operation, services }: Context): string {
  const known = callTexts(token ?? services)
  const found = known.get(operation)
  if (found !== undefined) return found
  const text = `${operation} ${token?.abilities.toSorted().join() ?? ''}`
  known.set(operation, text)
  return text
}

/**
 * Returns whether a query must not be cached. After a write the caller may see the written record
 * with any owner (`visibleRecord`), so the same query has different SQL.
 */
const bypassesCache = ({ visibleRecord, user }: Context): boolean =>
  visibleRecord !== undefined && user !== null && (user.visibleOwners !== null || user.permissions !== 'all')

/** Runs a query and returns its rows. The query is compiled once per caller and name. */
export async function queryCached<Row>(ctx: Context, query: CallerQuery<Row>): Promise<Row[]> {
  return (await execute(ctx, query)).rows
}

async function execute<Row>(ctx: Context, { name, values, build }: CallerQuery<Row>): Promise<QueryResult<Row>> {
  if (name === null || bypassesCache(ctx)) return ctx.db.executeQuery((await build()).compile())
  return statementsOf(ctx).run(ctx.db, { name: `${callOf(ctx)} ${name}`, values, build })
}

/**
 * Returns the rows of a query by ids. `build` may get an id several times, because lists of ids are
 * padded to a few lengths to limit the number of statements. Runs no query when `ids` is empty.
 */
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

/**
 * The statement name of the last insert into each table. Most inserts into a table have the same
 * columns, so the name can be reused.
 */
const insertions = new Map<string, { columns: readonly string[]; name: string }>()

function insertionOf(table: string, columns: readonly string[]): string {
  const known = insertions.get(table)
  if (known?.columns.length === columns.length && known.columns.every((column, at) => column === columns[at]))
    return known.name
  const name = `insert ${table} ${columns.join()}`
  insertions.set(table, { columns, name })
  return name
}

/** Inserts a row and returns its id. Omits columns whose value is undefined. */
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
  const { returnsInsertId } = ctx.services.store.dialect
  const build = (): Compilable<{ id: number }> => {
    const insertion = ctx.db.insertInto(table as never).values(row as never)
    return (returnsInsertId ? insertion : insertion.returning('id' as never)) as Compilable<{ id: number }>
  }
  const name = isPlain ? insertionOf(table, columns) : null
  const { rows, insertId } = await execute(ctx, { name, values, build })
  const id = returnsInsertId ? insertId : rows[0]?.id
  if (id === undefined) throw new Error(`No row was added to ${table}.`)
  return Number(id)
}

const results = perOwner(() => new LRUCache<string, { generation: number; value: unknown }>({ max: maxResults }))

/**
 * Returns the result of `read`, cached until the next commit. `read` must read committed data.
 * `owner` is the object to which the cache belongs: the store or a caller.
 */
export async function untilNextCommit<T>(store: Store, owner: object, key: string, read: () => Promise<T>): Promise<T> {
  const memory = results(owner)
  const generation = store.commitGeneration()
  const known = memory.get(key)
  if (known?.generation === generation) return known.value as T
  const value = await read()
  memory.set(key, { generation, value })
  return value
}

/**
 * Caches like `untilNextCommit`, but per caller, for a result that depends on visibility.
 * Transactions and snapshots bypass the cache, because they do not read the state of the last
 * commit. A null key bypasses it, too.
 */
export const untilNextCommitFor = <T>(ctx: Context, key: string | null, read: () => Promise<T>): Promise<T> =>
  key !== null && ctx.db === ctx.services.store.db && !bypassesCache(ctx)
    ? untilNextCommit(ctx.services.store, ownerOf(ctx), `${key} ${callOf(ctx)}`, read)
    : read()

/**
 * Returns the result of `read`, cached inside a batch. The result must not depend on the type of
 * record that the batch writes. A write of any other type clears the cache (`write`).
 */
export async function oncePerBatch<T>({ batch }: Context, key: string, read: () => Promise<T>): Promise<T> {
  if (!batch) return read()
  if (!batch.results.has(key)) batch.results.set(key, await read())
  return batch.results.get(key) as T
}
