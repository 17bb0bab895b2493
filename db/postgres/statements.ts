// Runs statements on the connections of the pools. Reads outside of transactions use the read-only
// pool.
import type { QueryResult } from 'kysely'
import type { QueryResult as PgResult, PoolClient } from 'pg'
import { type Pools, roleQuery, statementName } from './connection.ts'
import { asLost, isStalePlan, StandbyError } from './errors.ts'
import { isLockTimeout } from './locked-tables.ts'

export interface TextQuery {
  readonly sql: string
  readonly parameters: readonly unknown[]
}

const reading = /^\s*(select|values|explain|show|with)\b/i
/**
 * Finds the words that make a statement write, because `with` and `select` statements can write
 * too.
 */
const changing = /\b(insert|update|delete|merge|nextval|setval|for\s+(no\s+key\s+)?update|for\s+share)\b/i

export const isReading = (text: string): boolean => reading.test(text) && !changing.test(text)

/**
 * Replaces U+0000, which PostgreSQL cannot store (SQLSTATE 22021), by U+FFFD. Requests with U+0000
 * are refused earlier, so this affects texts from other sources, such as event listeners.
 */
const storable = (value: unknown): unknown =>
  typeof value === 'string' && value.includes('\0') ? value.replaceAll('\0', '\ufffd') : value

/** Runs a statement. Errors without an SQLSTATE become `ConnectionLostError`. */
export async function runQuery<R>(client: PoolClient, { sql: text, parameters }: TextQuery): Promise<QueryResult<R>> {
  let result: PgResult
  try {
    // Only a query without parameters may contain several statements.
    result = await (parameters.length === 0
      ? client.query(text)
      : client.query({ name: statementName(client, text), text, values: parameters.map(storable) }))
  } catch (error) {
    throw asLost(error)
  }
  const { command, rowCount, rows } = result
  const isWrite = command === 'INSERT' || command === 'UPDATE' || command === 'DELETE' || command === 'MERGE'
  return { rows: rows as R[], ...(isWrite && { numAffectedRows: BigInt(rowCount ?? 0) }) }
}

/** Runs one statement on the read-only pool. Retries it once if its prepared plan is stale. */
export async function readOnce<R>(pools: Pools, query: TextQuery): Promise<QueryResult<R>> {
  const read = (client: PoolClient): Promise<QueryResult<R>> =>
    unlessLocked(pools, query, () => runQuery<R>(client, query))
  try {
    return await withReader(pools, read)
  } catch (error) {
    if (!isStalePlan(error)) throw error
    return withReader(pools, read)
  }
}

/** Runs a statement. Throws `LockedTableError` at once if another session has locked its table. */
export async function unlessLocked<T>({ lockedTables }: Pools, { sql }: TextQuery, run: () => Promise<T>): Promise<T> {
  const leave = lockedTables.enter(sql)
  let isDone = false
  try {
    const result = await run()
    isDone = true
    return result
  } finally {
    leave(isDone)
  }
}

export async function withReader<T>(pools: Pools, read: (client: PoolClient) => Promise<T>): Promise<T> {
  const client = await pools.take('read')
  let failure: unknown
  try {
    return await read(client)
  } catch (error) {
    failure = error
    if (isLockTimeout(error)) await pools.lockedTables.learn(client).catch(() => undefined)
    throw error
  } finally {
    pools.release(client, failure)
  }
}

/** Throws `StandbyError` when the server is a standby, and closes the connections to it. */
export const assertPrimary = (pools: Pools): Promise<void> =>
  withReader(pools, async (client) => {
    const { rows } = await runQuery<{ isStandby: 0 | 1 }>(client, {
      sql: roleQuery,
      parameters: [],
    })
    if (rows[0]?.isStandby) throw new StandbyError()
  })
