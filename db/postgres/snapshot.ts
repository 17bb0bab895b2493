// The database as it was at one moment, for long reads while others write.

import { type Compilable, type Kysely, sql } from 'kysely'
import type { PoolClient } from 'pg'
import type { DatabaseSnapshot } from '../snapshots.ts'
import type { DB } from '../tables.gen.ts'
import type { Pools } from './connection.ts'
import { kyselyOnClient } from './driver.ts'
import { asLost } from './errors.ts'

/** Rows that a stream fetches at once. */
const rowsAtOnce = 500

/** Opens connections for snapshots of a store, by its Kysely instance. */
const poolsOf = new WeakMap<object, Pools>()
export const rememberPools = (db: Kysely<never>, pools: Pools): unknown => poolsOf.set(db, pools)

async function begin(client: PoolClient): Promise<void> {
  // Long reads have no limit of time, but they keep PostgreSQL from removing old rows.
  await client.query('begin isolation level repeatable read')
  await client.query('set local statement_timeout = 0; set local idle_in_transaction_session_timeout = 0')
  // Plans for all rows of a cursor instead of for the first tenth.
  await client.query('set local cursor_tuple_fraction = 1')
  // The snapshot is taken by the first query.
  await client.query('select 1 from pg_class limit 1')
}

export const endClient = (client: PoolClient): Promise<void> => (client as unknown as { end(): Promise<void> }).end()

/** Begins a snapshot on a connection of its own, which the snapshot closes. */
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
      // A cursor of SQL leaves the connection free for other queries between two fetches.
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
      // A closed snapshot must not look like the last row.
      if (isClosed) throw new Error('The snapshot was closed while it was read.')
    },
    close: async () => {
      if (isClosed) return
      isClosed = true
      await endClient(client)
    },
  }
}

/** Runs `work` over a snapshot that is rolled back, so it may create temporary tables. */
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

/** The size of the database in bytes. */
export async function databaseSize(db: Kysely<unknown>): Promise<number> {
  const { rows } = await sql<{ size: number }>`select pg_database_size(current_database()) as size`.execute(db)
  return rows[0]?.size ?? 0
}
