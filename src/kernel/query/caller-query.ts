// Queries of a resource whose SQL depends on the caller: the rows that the caller may see. Their
// statements are cached for each user and token abilities, and the totals of lists until the next
// commit.
import { createHash } from 'node:crypto'
import type { Compilable } from 'kysely'
import { LRUCache } from 'lru-cache'
import { type Bound, perEngine, runCached, runWithLists, type StatementPlace } from '../../../db/cached-query.ts'
import type { Store } from '../../../db/store.ts'
import type { Context, Services } from '../context.ts'
import { perOwner } from '../runtime/per-owner.ts'

/**
 * The facts on which the SQL of a resource's rows may depend. `callerKey` contains all of them, so
 * no caller gets the statement of another caller.
 */
export interface SqlCaller {
  readonly user: Pick<NonNullable<Context['user']>, 'id' | 'permissions' | 'visibleOwners' | 'seesOwnerless'> | null
  readonly token: Pick<NonNullable<Context['token']>, 'abilities'> | null
  readonly visibleRecord?: Context['visibleRecord']
  readonly services: Pick<Services, 'store'>
}

const statementsOf = perEngine(3_000)

/**
 * Returns a text that differs between callers whose SQL may differ; null for a caller who has just
 * written a record and may see it with any owner (`visibleRecord`).
 */
function callerKey({ user, token, visibleRecord }: SqlCaller): string | null {
  const isLimited = user !== null && (user.visibleOwners !== null || user.permissions !== 'all')
  if (visibleRecord !== undefined && isLimited) return null
  return `${user === null ? '' : userKey(user)} ${token === null ? 'all' : `[${token.abilities.join()}]`}`
}

const userKey = perOwner(({ id, permissions, visibleOwners, seesOwnerless }: NonNullable<SqlCaller['user']>) => {
  if (permissions === 'all' && visibleOwners === null) return String(id)
  const rights = JSON.stringify([permissions === 'all' ? permissions : [...permissions], visibleOwners, seesOwnerless])
  return `${id} ${createHash('sha1').update(rights).digest('base64')}`
})

/** Returns the place of a caller's statement; null for one that is not cached. */
function placeOf(ctx: Context, name: string | null): StatementPlace | null {
  const caller = callerKey(ctx)
  if (name === null || caller === null) return null
  return { statements: statementsOf(ctx.db), key: `${caller} ${name}` }
}

/**
 * Runs a query whose SQL depends on `name` and the caller alone. `values` are the last parameters
 * of its SQL. A query whose name is null is not cached.
 */
export async function queryAsCaller<Row>(
  ctx: Context,
  name: string | null,
  values: readonly unknown[],
  build: () => Compilable<Row>,
): Promise<Row[]> {
  return (await runCached(ctx.db, placeOf(ctx, name), values, build)).rows
}

/** Runs a query like `queryAsCaller` for a list of ids. Without ids it has no rows. */
export const queryByIds = <Row>(
  ctx: Context,
  name: string,
  ids: readonly number[],
  build: (ids: Bound<number[]>) => Compilable<Row>,
): Promise<Row[]> => runWithLists(ctx.db, placeOf(ctx, name), [ids], (slots) => build(slots as Bound<number[]>))

const maxResults = 2_000
const results = perOwner(
  (_store: Store) => new LRUCache<string, { generation: number; value: unknown }>({ max: maxResults }),
)

/**
 * Returns the result of `read`, cached until the next commit of any process
 * (`Store.commitGeneration`). `read` must read committed data.
 */
export async function untilNextCommit<T>(store: Store, key: string, read: () => Promise<T>): Promise<T> {
  const memory = results(store)
  const generation = store.commitGeneration()
  const known = memory.get(key)
  if (known?.generation === generation) return known.value as T
  const value = await read()
  memory.set(key, { generation, value })
  return value
}

/**
 * Caches like `untilNextCommit`, for a result that depends on the caller. Transactions and
 * snapshots bypass the cache, because they do not read the state of the last commit. A null key
 * bypasses it, too.
 */
export function untilNextCommitFor<T>(ctx: Context, key: string | null, read: () => Promise<T>): Promise<T> {
  const caller = callerKey(ctx)
  const { store } = ctx.services
  return key !== null && caller !== null && ctx.db === store.db
    ? untilNextCommit(store, `${caller} ${key}`, read)
    : read()
}
