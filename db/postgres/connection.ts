// Manages the connections to a PostgreSQL server: a read and a write pool, parsers for column
// values, and the change to another host after a failure.

import { createRequire } from 'node:module'
import type { Duplex } from 'node:stream'
import type { Client, ClientConfig, Pool, PoolClient, PoolConfig } from 'pg'
import { asLost, endsConnection, PoolFullError, postgresStorageFault, StandbyError } from './errors.ts'
import { Hosts, pgUrl } from './hosts.ts'
import { LockedTables } from './locked-tables.ts'
import { StatementNames } from './statement-names.ts'
import { splitOptions } from './url.ts'

/** The read-only pool and the write pool. */
export interface Pools {
  readonly read: Pool
  readonly write: Pool
  readonly lockedTables: LockedTables
  /**
   * Takes a connection from a pool. Throws `PoolFullError`, `StandbyError` or
   * `ConnectionLostError`.
   */
  take(pool: 'read' | 'write'): Promise<PoolClient>
  /**
   * Returns a connection to its pool. `error` is the error of a failed statement on the connection.
   * A lost connection and a connection to a standby are closed.
   */
  release(client: PoolClient, error?: unknown): void
  /** Opens a connection outside of both pools. The caller must close it. */
  connect(): Promise<PoolClient>
  /** Changes when connections that were opened earlier must not be used again. */
  generation(): number
  /**
   * Closes all pooled connections up to this generation, because their server no longer answers.
   * Their statements fail. New connections try the next host first.
   */
  abandon(generation: number): void
  close(): Promise<void>
}

export interface PoolOptions {
  /** The maximum number of connections in each pool. */
  max?: number
  /** With `any`, a connection to a standby is accepted. */
  accepts?: 'writes' | 'any'
  /**
   * Whether the server is behind a pooler in transaction mode, such as PgBouncer. The pooler
   * refuses connection settings, so the timeouts below must be set for the database role.
   * Statements are not prepared, because the next transaction may use another server connection.
   */
  isPooled?: boolean
  /** Called when an idle connection is lost. */
  onLost?: (error: Error) => void
}

/** Returns whether the server is a standby. */
export const roleQuery = 'select pg_is_in_recovery() as "isStandby"'

const defaultConnections = 8
export const connectTimeoutMs = 5_000
/**
 * The longest time of a statement. It is shorter than the 30 s after which the server closes a
 * silent socket, so the caller gets 503 with Retry-After.
 */
export const statementTimeoutMs = 25_000
/** The longest wait of a write for its place among the others. Then the answer is 503. */
export const lockTimeoutMs = 4_000
/**
 * The longest wait of a statement of a write for any other lock. It is short, because writes that
 * run alone wait for this write; and longer than the pause after which the server ends a
 * transaction (commit-order.ts).
 */
export const statementLockTimeoutMs = 1_500
/**
 * The longest wait of a read for a lock. Reads wait only while a table is locked as a whole, such
 * as by `ALTER TABLE`, and must not occupy all connections (locked-tables.ts).
 */
const readLockTimeoutMs = 1_000
/**
 * The idle time before the first TCP keep-alive probe. A connection without a response to the
 * probes is closed about 10 s later.
 */
const keepAliveMs = 10_000
/**
 * A connection is replaced after this time, so that the new one prepares the statements that are
 * frequent by then.
 */
const maxLifetimeSeconds = 1_800
/** A transaction that is idle for this long is rolled back, because it blocks others. */
export const idleInTransactionMs = 30_000

/** The object ids of types in the system catalog of PostgreSQL. */
const types = { bool: 16, int8: 20, json: 114, date: 1082, timestamptz: 1184, numeric: 1700 } as const

const parsers = new Map<number, (text: string) => unknown>([
  [types.bool, (text) => (text === 't' ? 1 : 0)],
  [types.int8, readInteger],
  [types.numeric, Number],
  [types.json, (text) => text],
  [types.date, (text) => text],
  [types.timestamptz, readTimestamp],
])

/** Throws RangeError for an integer that a JavaScript number cannot represent exactly. */
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

/** Loads the package pg at the first connection, because most installations use SQLite. */
const driver = (): typeof import('pg') => createRequire(import.meta.url)('pg') as typeof import('pg')

/** A connection to the current host. If it cannot connect, it calls `hosts.leave`. */
interface HostClient extends Client {
  readonly url: string
  /** The generation of the hosts when the connection was created. */
  readonly generation: number
  /** Closes the socket without a message to the server. */
  destroy(): void
  /** See `StatementNames.use`. */
  nameOf(text: string): string | undefined
}

/** Returns the name to prepare the statement with, or undefined when it must not be prepared. */
export const statementName = (client: PoolClient, text: string): string | undefined =>
  (client as unknown as Partial<HostClient>).nameOf?.(text)

/**
 * Returns a client class for the option `Client` of a pool. Each instance connects to the current
 * host.
 */
function hostClients(hosts: Hosts, names: StatementNames | null): new (config: ClientConfig) => HostClient {
  return class extends driver().Client implements HostClient {
    readonly generation = hosts.generation
    // Private, because the URL contains a password, and a log line may show an error with its
    // client.
    readonly #url = hosts.url
    readonly #prepared = new Set<string>()

    constructor(config: ClientConfig) {
      const { url, options } = splitOptions(hosts.url)
      // The options of the URL would replace those of the program.
      const all = [config.options, options].filter(Boolean).join(' ')
      super({ ...config, connectionString: pgUrl(url), ...(all !== '' && { options: all }) })
      // A lost connection emits `error`. Without a listener, the event would end the process.
      this.on('error', () => undefined)
    }

    get url(): string {
      return this.#url
    }

    nameOf(text: string): string | undefined {
      return names?.use(text, this.#prepared)
    }

    destroy(): void {
      // pg has no method for this. pg-pool does the same after a timeout.
      ;(this as unknown as { connection: { stream: Duplex } }).connection.stream.destroy()
    }

    override connect(): Promise<this>
    override connect(callback: (error: Error) => void): void
    override connect(callback?: (error: Error) => void): unknown {
      const connected = this.#connect()
      if (callback === undefined) return connected
      return void connected.then(() => (callback as () => void)(), callback)
    }

    async #connect(): Promise<this> {
      try {
        await super.connect()
        if (!hosts.mustAcceptWrites) return this
        const { rows } = await this.query<{ isStandby: boolean | number }>(roleQuery)
        if (rows[0]?.isStandby) throw new StandbyError()
        return this
      } catch (error) {
        if (!(isWithoutTls(error) && hosts.leaveTls(this.#url)) && endsConnection(error)) hosts.leave(this.#url)
        void super.end().catch(() => undefined)
        throw error
      }
    }
  }
}

/** Returns whether the server refused TLS. The package pg has no code for it. */
const isWithoutTls = (error: unknown): boolean =>
  error instanceof Error && error.message.includes('does not support SSL')

/** Retries `connect` with the next host after each failure that changed the current host. */
async function onSomeHost<T>(hosts: Hosts, connect: () => Promise<T>): Promise<T> {
  // Each host can fail once, and once more because it has no TLS.
  for (let left = 2 * hosts.count - 1; ; left--) {
    const { url } = hosts
    try {
      return await connect()
    } catch (error) {
      if (left <= 0 || hosts.url === url) throw error
    }
  }
}

/** Opens a connection without a pool. Tries the other hosts when the current host fails. */
export async function connectAlone(
  config: ClientConfig & { connectionString: string },
  hosts = new Hosts(config.connectionString),
): Promise<Client> {
  const Connection = hostClients(hosts, null)
  return onSomeHost(hosts, () => new Connection(config).connect())
}

/** Returns whether pg-pool timed out because all connections were in use. */
const isFull = (error: unknown): boolean =>
  error instanceof Error && error.message.startsWith('timeout exceeded when trying to connect')

export function openPools(url: string, options: PoolOptions = {}): Pools {
  const { Pool, types: defaults } = driver()
  const { max = defaultConnections, isPooled = false, onLost = () => undefined, accepts = 'writes' } = options
  const hosts = new Hosts(url, accepts)
  const common: PoolConfig & { connectionString: string } = {
    connectionString: url,
    Client: hostClients(hosts, isPooled ? null : new StatementNames()) as unknown as new () => HostClient,
    max,
    maxLifetimeSeconds,
    connectionTimeoutMillis: connectTimeoutMs,
    application_name: 'accord',
    keepAlive: true,
    keepAliveInitialDelayMillis: keepAliveMs,
    types: {
      getTypeParser: ((id: number, format?: 'text' | 'binary') =>
        (format !== 'binary' && parsers.get(id)) ||
        defaults.getTypeParser(id, format)) as typeof defaults.getTypeParser,
    },
    ...(!isPooled && {
      statement_timeout: statementTimeoutMs,
      lock_timeout: lockTimeoutMs,
      idle_in_transaction_session_timeout: idleInTransactionMs,
    }),
  }
  const settings = (text: string) => (isPooled ? {} : { options: `-c timezone=UTC -c jit=off ${text}` })
  const reading = {
    ...common,
    ...settings('-c default_transaction_read_only=on'),
    ...(!isPooled && { lock_timeout: readLockTimeoutMs }),
  }
  // In a SERIALIZABLE transaction, a sequential scan conflicts with every write to the table, so
  // the planner is told to prefer indexes.
  const writing = { ...common, ...settings('-c enable_seqscan=off') }
  const pools = { read: new Pool(reading), write: new Pool(writing) }
  const open = new Set<HostClient>()
  for (const pool of [pools.read, pools.write]) {
    pool.on('error', onLost)
    pool.on('connect', (connected) => {
      const client = connected as unknown as HostClient
      // This host works. Connections to another host are closed, because their statements may never
      // return.
      for (const other of open) if (other.url !== client.url) other.destroy()
      open.add(client)
      // The pool listens for errors of idle connections only. A connection can also be lost between
      // two statements of a transaction.
      client.on('error', onLost)
    })
    pool.on('remove', (client) => open.delete(client as unknown as HostClient))
  }

  /**
   * Takes a connection of the current generation, and closes idle connections of earlier
   * generations.
   */
  async function takeCurrent(pool: Pool): Promise<PoolClient> {
    for (;;) {
      const client = await pool.connect()
      if ((client as unknown as HostClient).generation === hosts.generation) return client
      client.release(true)
    }
  }

  return {
    ...pools,
    lockedTables: new LockedTables(),
    async take(name) {
      try {
        return await onSomeHost(hosts, () => takeCurrent(pools[name]))
      } catch (error) {
        throw isFull(error) ? new PoolFullError(error) : asLost(error)
      }
    },
    release(client, error) {
      if (postgresStorageFault(error) === 'standby') hosts.renew()
      client.release(error !== undefined && endsConnection(error))
    },
    async connect() {
      // This connection reads whole tables, so sequential scans stay enabled.
      const client = await connectAlone({ ...common, ...settings('') }, hosts).catch((error: unknown) => {
        throw asLost(error)
      })
      client.on('error', onLost)
      return client as unknown as PoolClient
    },
    generation: () => hosts.generation,
    abandon(generation) {
      if (generation === hosts.generation) {
        hosts.leave(hosts.url)
        hosts.renew()
      }
      for (const client of open) if (client.generation <= generation) client.destroy()
    },
    async close() {
      await Promise.all([pools.read.end(), pools.write.end()])
    },
  }
}
