// Read-only snapshots of the database, for long reads that do not block writes.

import { type Compilable, type Kysely, sql } from 'kysely'
import type { PoolClient } from 'pg'
import type { DatabaseSnapshot } from '../snapshots.ts'
import type { DB } from '../tables.gen.ts'
import type { Pools } from './connection.ts'
import { kyselyOnClient } from './driver.ts'
import { asLost } from './errors.ts'

/** The number of rows that a stream fetches at once. */
const rowsAtOnce = 500

/** Maps the Kysely instance of a store to its pools, so that `inSnapshot` can open a connection. */
const poolsOf = new WeakMap<object, Pools>()
export const rememberPools = (db: Kysely<never>, pools: Pools): unknown => poolsOf.set(db, pools)

async function begin(client: PoolClient): Promise<void> {
  // Long reads have no time limit, although an open snapshot keeps PostgreSQL from removing old row
  // versions.
  await client.query('begin isolation level repeatable read')
  await client.query('set local statement_timeout = 0; set local idle_in_transaction_session_timeout = 0')
  // Makes the planner optimize a cursor for all its rows. By default, it optimizes for the first
  // tenth.
  await client.query('set local cursor_tuple_fraction = 1')
  // PostgreSQL takes the snapshot at the first query.
  await client.query('select 1 from pg_class limit 1')
}

export const endClient = (client: PoolClient): Promise<void> => (client as unknown as { end(): Promise<void> }).end()

/** Begins a snapshot on the given connection. Closing the snapshot closes the connection. */
export async function openPostgresSnapshot(client: PoolClient): Promise<DatabaseSnapshot> {
  try {
    await begin(client)
  } catch (error) {
    await endClient(client)
    throw asLost(error)
  }
  let isClosed = false
  let cursors = 0
  return {
    db: kyselyOnClient<DB>(client),
    async *each<Row>(query: Compilable<Row>) {
      const { sql: text, parameters } = query.compile()
      const name = `rows_${++cursors}`
      // With an SQL cursor, other queries can use the connection between two fetches.
      await client.query(`declare ${name} no scroll cursor for ${text}`, [...parameters])
      try {
        for (;;) {
          const { rows } = await client.query(`fetch ${rowsAtOnce} from ${name}`)
          if (rows.length === 0) break
          yield* rows as Row[]
        }
      } finally {
        if (!isClosed) await client.query(`close ${name}`)
      }
      // The caller must not mistake a closed snapshot for the end of the rows.
      if (isClosed) throw new Error('The snapshot was closed while it was read.')
    },
    close: async () => {
      if (isClosed) return
      isClosed = true
      await endClient(client)
    },
  }
}

/** Runs `work` on a snapshot that is rolled back at the end. `work` may create temporary tables. */
export async function inSnapshot<Tables, T>(
  db: Kysely<Tables>,
  work: (snapshot: Kysely<Tables>) => Promise<T>,
): Promise<T> {
  const pools = poolsOf.get(db)
  if (pools === undefined) throw new Error('Only the database of a store can be read as a snapshot.')
  const client = await pools.connect()
  try {
    await begin(client)
    return await work(kyselyOnClient<Tables>(client))
  } finally {
    await endClient(client)
  }
}

/** Returns the size of the database in bytes. */
export async function databaseSize(db: Kysely<unknown>): Promise<number> {
  const { rows } = await sql<{ size: number }>`select pg_database_size(current_database()) as size`.execute(db)
  return rows[0]?.size ?? 0
}
