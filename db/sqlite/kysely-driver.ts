// The Kysely driver for SQLite. Reads outside of transactions use a separate connection and never
// wait for a write. All other statements use the write queue.

import { type Kysely, type QueryResult, SqliteAdapter, SqliteIntrospector } from 'kysely'
import { directKysely, type Execute } from '../direct-executor.ts'
import { SqliteCompiler } from '../long-lists.ts'
import type { Pause } from '../store.ts'
import { retryWhileBusy } from './busy-retry.ts'
import type { WriteQueue } from './group-commit/types.ts'
import { mayBeRead, type PreparedStatements, runStatement, type SqlQuery } from './prepared-statements.ts'
import type { ReadTransaction } from './read-transaction.ts'
import type { FaultLog } from './storage-faults.ts'

/**
 * Returns the Kysely instance of a store. A database in memory has no `reader`, so its reads wait
 * while a transaction is open.
 */
export function kyselySqlite<DB>(
  writer: WriteQueue<never>,
  {
    own,
    reader,
    faults,
  }: {
    own: PreparedStatements
    reader: { statements: PreparedStatements; transaction: ReadTransaction } | null
    faults: FaultLog
  },
): Kysely<DB> {
  const reading = reader?.statements ?? own
  return kyselyOf<DB>(async <R>(query: SqlQuery) => {
    const statement =
      reading.cached(query.sql) ?? faults.recording(() => (mayBeRead(query.sql) ? reading : own).prepare(query.sql))
    if (statement.kind === 'write') return writer.write<R>(query)
    if (statement.kind === 'other' || !(reader !== null || writer.isIdle())) return writer.runOutside<R>(query)
    if (reader === null) return faults.recording(() => runStatement<R>(statement, query.parameters))
    // Writes do not block reads. A process that recovers or closes the log can block a read
    // briefly.
    const read = (): QueryResult<R> => {
      reader.transaction.begin()
      // The statement is prepared again, because `begin` empties the cache when the schema has
      // changed.
      return runStatement<R>(reading.prepare(query.sql), query.parameters)
    }
    return retryWhileBusy(() => faults.recording(read))
  })
}

/** Returns a Kysely instance for a connection to a snapshot. */
export const kyselySqliteSnapshot = <DB>(statements: PreparedStatements, faults: FaultLog): Kysely<DB> =>
  kyselySqliteConnection(({ sql, parameters }) =>
    faults.recording(() => runStatement(statements.prepare(sql), parameters)),
  )

/**
 * Returns a Kysely instance that runs each statement without the write queue: immediately, or after
 * a pause.
 */
export const kyselySqliteConnection = <DB>(
  runNow: <R>(query: SqlQuery) => QueryResult<R>,
  pause: Pause = () => null,
): Kysely<DB> =>
  kyselyOf<DB>(async <R>(query: SqlQuery) => {
    const due = pause()
    if (due !== null) await due
    return runNow<R>(query)
  })

/** Returns a Kysely instance that runs its statements on another thread. */
export const kyselySqliteRemote = <DB>(execute: Execute): Kysely<DB> => kyselyOf<DB>(execute)

const kyselyOf = directKysely({
  createAdapter: () => new SqliteAdapter(),
  createIntrospector: (db) => new SqliteIntrospector(db),
  createQueryCompiler: () => new SqliteCompiler(),
})
