// The connections to a PostgreSQL server: two pools, the types of values, and lost connections.

import { createRequire } from 'node:module'
import type { Pool, PoolClient, PoolConfig } from 'pg'

/** Connections that only read, and connections that write. */
export interface Pools {
  readonly read: Pool
  readonly write: Pool
  /** Opens a connection of its own, outside of both pools. The caller must close it. */
  connect(): Promise<PoolClient>
  close(): Promise<void>
}

export interface PoolOptions {
  /** Maximum number of connections of each pool. */
  max?: number
  /**
   * The server is behind a pooler in transaction mode, such as PgBouncer. Such a pooler refuses
   * settings of a connection, so the timeouts below must be settings of the database role.
   */
  isPooled?: boolean
  /** Called when an idle connection is lost. */
  onLost?: (error: Error) => void
}

const defaultConnections = 8
export const connectTimeoutMs = 5_000
const statementTimeoutMs = 60_000
/** A transaction that waits for its process this long is rolled back, because it blocks others. */
const idleInTransactionMs = 30_000

/** Object ids of types, from the catalog of PostgreSQL. */
const types = { bool: 16, int8: 20, json: 114, date: 1082, timestamptz: 1184, numeric: 1700 } as const

const parsers = new Map<number, (text: string) => unknown>([
  [types.bool, (text) => (text === 't' ? 1 : 0)],
  [types.int8, readInteger],
  [types.numeric, Number],
  [types.json, (text) => text],
  [types.date, (text) => text],
  [types.timestamptz, readTimestamp],
])

/** Throws RangeError for a number that JavaScript cannot hold exactly. */
function readInteger(text: string): number {
  const value = Number(text)
  if (!Number.isSafeInteger(value)) throw new RangeError(`${text} is not a safe integer.`)
  return value
}

/** Converts `2026-03-01 09:30:00.5+00` to `2026-03-01T09:30:00.500Z`. */
export function readTimestamp(text: string): string {
  const [, date, time, fraction = ''] = /^(\S+) (\d\d:\d\d:\d\d)(?:\.(\d+))?\+00$/.exec(text) ?? []
  if (date === undefined) throw new Error(`"${text}" is not a timestamp in UTC.`)
  return `${date}T${time}.${fraction.padEnd(3, '0').slice(0, 3)}Z`
}

/** Loaded with the first pool, because most installations use SQLite. */
const driver = (): typeof import('pg') => createRequire(import.meta.url)('pg') as typeof import('pg')

export function openPools(url: string, options: PoolOptions = {}): Pools {
  const { Pool, Client, types: defaults } = driver()
  const { max = defaultConnections, isPooled = false, onLost = () => undefined } = options
  const common: PoolConfig = {
    connectionString: url,
    max,
    connectionTimeoutMillis: connectTimeoutMs,
    application_name: 'accord',
    keepAlive: true,
    types: {
      getTypeParser: ((id: number, format?: 'text' | 'binary') =>
        (format !== 'binary' && parsers.get(id)) ||
        defaults.getTypeParser(id, format)) as typeof defaults.getTypeParser,
    },
    ...(!isPooled && {
      statement_timeout: statementTimeoutMs,
      idle_in_transaction_session_timeout: idleInTransactionMs,
    }),
  }
  const settings = (text: string) => (isPooled ? {} : { options: `-c timezone=UTC -c jit=off ${text}` })
  const reading = { ...common, ...settings('-c default_transaction_read_only=on') }
  // A scan of a whole table conflicts with every write to that table, so writes read by index.
  const writing = { ...common, ...settings('-c enable_seqscan=off') }
  const [read, write] = [new Pool(reading), new Pool(writing)]
  // A connection that is lost emits an error, which would end the process without a listener. The
  // pool listens to idle connections only, but one can also be lost between two statements of a
  // transaction.
  for (const pool of [read, write]) {
    pool.on('error', onLost)
    pool.on('connect', (client) => client.on('error', onLost))
  }
  return {
    read,
    write,
    async connect() {
      // Long reads of whole tables, so scans are welcome.
      const client = new Client({ ...common, ...settings('') })
      client.on('error', onLost)
      await client.connect()
      return client as unknown as PoolClient
    },
    async close() {
      await Promise.all([read.end(), write.end()])
    },
  }
}
