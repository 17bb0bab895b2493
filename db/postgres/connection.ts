// The connections to a PostgreSQL server: two pools, the types of values, and lost connections.

import { createRequire } from 'node:module'
import type { Duplex } from 'node:stream'
import type { Client, ClientConfig, Pool, PoolClient, PoolConfig } from 'pg'
import { asLost, endsConnection, PoolFullError, postgresStorageFault, StandbyError } from './errors.ts'
import { Hosts } from './hosts.ts'
import { StatementNames } from './statement-names.ts'

/** Connections that only read, and connections that write. */
export interface Pools {
  readonly read: Pool
  readonly write: Pool
  /** Takes a connection of a pool. Throws a storage fault when there is none. */
  take(pool: 'read' | 'write'): Promise<PoolClient>
  /**
   * Gives a connection back. `error` is the error that a statement on it failed with: a connection
   * that is lost or leads to a standby is closed.
   */
  release(client: PoolClient, error?: unknown): void
  /** Opens a connection of its own, outside of both pools. The caller must close it. */
  connect(): Promise<PoolClient>
  /** Changes when connections that were opened before must no longer be used. */
  generation(): number
  /**
   * Ends all connections of the pools up to this generation, whose server no longer answers. Their
   * statements fail, and new connections go to the next host first.
   */
  abandon(generation: number): void
  close(): Promise<void>
}

export interface PoolOptions {
  /** Maximum number of connections of each pool. */
  max?: number
  /** `any` also takes a standby. Otherwise a connection asks the server for its role. */
  accepts?: 'writes' | 'any'
  /**
   * The server is behind a pooler in transaction mode, such as PgBouncer. Such a pooler refuses
   * settings of a connection, so the timeouts below must be settings of the database role. No
   * statement is prepared, because the next transaction may run on another connection.
   */
  isPooled?: boolean
  /** Called when an idle connection is lost. */
  onLost?: (error: Error) => void
}

/** Asks a server whether it is a standby. */
export const roleQuery = 'select pg_is_in_recovery() as "isStandby"'

const defaultConnections = 8
export const connectTimeoutMs = 5_000
const statementTimeoutMs = 60_000
/**
 * An idle connection asks after this time whether the other end is there. It gives up 10 s later.
 */
const keepAliveMs = 10_000
/** A new connection prepares the statements that are frequent by then. */
const maxLifetimeSeconds = 1_800
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

/** Loaded with the first connection, because most installations use SQLite. */
const driver = (): typeof import('pg') => createRequire(import.meta.url)('pg') as typeof import('pg')

/** A connection that goes to the present one of the hosts, and leaves the host if that fails. */
interface HostClient extends Client {
  readonly url: string
  /** The generation of the hosts at its beginning. */
  readonly generation: number
  /** Closes the connection without telling the server. */
  destroy(): void
  /** Counts a use of a statement. Returns the name to prepare it under, if any. */
  nameOf(text: string): string | undefined
}

/** Returns the name under which a connection of a pool prepares the statement, if any. */
export const statementName = (client: PoolClient, text: string): string | undefined =>
  (client as unknown as Partial<HostClient>).nameOf?.(text)

/** Returns the class of connections to the hosts, in the form that a pool takes. */
function hostClients(hosts: Hosts, names: StatementNames | null): new (config: ClientConfig) => HostClient {
  return class extends driver().Client implements HostClient {
    readonly generation = hosts.generation
    // Private, because the log may show an error with its connection, and the URL has a password.
    readonly #url = hosts.url
    readonly #prepared = new Set<string>()

    constructor(config: ClientConfig) {
      super({ ...config, connectionString: hosts.url })
      // A connection that is lost emits an error, which would end the process without a listener.
      this.on('error', () => undefined)
    }

    get url(): string {
      return this.#url
    }

    nameOf(text: string): string | undefined {
      return names?.use(text, this.#prepared)
    }

    destroy(): void {
      // pg-pool does the same after a timeout.
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
        if (endsConnection(error)) hosts.leave(this.#url)
        void super.end().catch(() => undefined)
        throw error
      }
    }
  }
}

/** Calls `connect` again after a failure that made the next host the present one. */
async function onSomeHost<T>(hosts: Hosts, connect: () => Promise<T>): Promise<T> {
  for (let left = hosts.count - 1; ; left--) {
    const { url } = hosts
    try {
      return await connect()
    } catch (error) {
      if (left <= 0 || hosts.url === url) throw error
    }
  }
}

/** Opens a connection of its own to the first host that fits. */
export async function connectAlone(
  config: ClientConfig & { connectionString: string },
  hosts = new Hosts(config.connectionString),
): Promise<Client> {
  const Connection = hostClients(hosts, null)
  return onSomeHost(hosts, () => new Connection(config).connect())
}

/** The message of pg-pool when all connections stay in use. */
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
      idle_in_transaction_session_timeout: idleInTransactionMs,
    }),
  }
  const settings = (text: string) => (isPooled ? {} : { options: `-c timezone=UTC -c jit=off ${text}` })
  const reading = { ...common, ...settings('-c default_transaction_read_only=on') }
  // A scan of a whole table conflicts with every write to that table, so writes read by index.
  const writing = { ...common, ...settings('-c enable_seqscan=off') }
  const pools = { read: new Pool(reading), write: new Pool(writing) }
  const open = new Set<HostClient>()
  for (const pool of [pools.read, pools.write]) {
    pool.on('error', onLost)
    pool.on('connect', (connected) => {
      const client = connected as unknown as HostClient
      // This host fits, so statements on another one may wait in vain.
      for (const other of open) if (other.url !== client.url) other.destroy()
      open.add(client)
      // The pool listens to idle connections only, but a connection can also be lost between two
      // statements of a transaction.
      client.on('error', onLost)
    })
    pool.on('remove', (client) => open.delete(client as unknown as HostClient))
  }

  /** Closes connections of the pool that are of an earlier generation. */
  async function takeCurrent(pool: Pool): Promise<PoolClient> {
    for (;;) {
      const client = await pool.connect()
      if ((client as unknown as HostClient).generation === hosts.generation) return client
      client.release(true)
    }
  }

  return {
    ...pools,
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
      // Long reads of whole tables, so scans are welcome.
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
