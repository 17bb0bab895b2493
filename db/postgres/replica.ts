// A read replica for long reads. A read uses it only after it has replayed every commit that the
// primary had made when the read began. So a read never misses an earlier write.

import { setTimeout as sleep } from 'node:timers/promises'
import { type Kysely, sql } from 'kysely'
import type { Pool, PoolClient } from 'pg'
import type { ReplicaState } from '../store.ts'
import type { DB } from '../tables.gen.ts'
import { openPools, type PoolOptions, type Pools } from './connection.ts'
import { kyselyOnClient } from './driver.ts'
import { mustRunAgain, postgresStorageFault, StandbyError } from './errors.ts'
import { endClient } from './snapshot.ts'
import { readOnce } from './statements.ts'

/** A read waits this long for the replica, and then uses the primary. */
const maxWaitMs = 250
const pauseMs = 10
/** A replica that does not answer within this time counts as unreachable. */
const maxSilenceMs = 1_000
/** After a failed connection, reads use the primary for this long. */
const restMs = 5_000

/**
 * A position in the write-ahead log (WAL) of a server. A promoted standby begins a new timeline,
 * and positions of different timelines cannot be compared.
 */
interface Place {
  position: string
  timeline: number
}

/**
 * Uses the insert position, which includes commits that are not yet on the disk: with asynchronous
 * commit, their callers may already have a response.
 */
const placeOfPrimary = {
  // On a standby, pg_current_wal_insert_lsn() fails, so the position is null there.
  sql: `
    select position::text, ('x' || left(pg_walfile_name(position), 8))::bit(32)::int as timeline
    from (select case when not pg_is_in_recovery() then pg_current_wal_insert_lsn() end as position) as current`,
  parameters: [],
}
/**
 * A promoted replica is never current, because it may have commits that the primary lacks. After a
 * failover, a standby becomes current at its next restartpoint, which records the new timeline.
 */
const currentQuery = `
  select coalesce(pg_is_in_recovery() and pg_last_wal_replay_lsn() >= $1::pg_lsn
    and timeline_id = $2, false) as "isCurrent"
  from pg_control_checkpoint()`

/** Opens and closes connections to the replica: pooled, or dedicated to one caller. */
interface Source {
  open(): Promise<PoolClient>
  close(client: PoolClient, error?: unknown): void
}

export class Replica {
  readonly #pools: Pools
  readonly #primary: Pools
  readonly #pooled: Source
  #restsUntil = 0

  constructor(url: string, primary: Pools, options: PoolOptions) {
    const pools = openPools(url, { ...options, accepts: 'any' })
    this.#pools = pools
    this.#primary = primary
    this.#pooled = {
      open: () => pools.take('read'),
      close: (client, error) => pools.release(client, error),
    }
  }

  get pool(): Pool {
    return this.#pools.read
  }

  /**
   * Runs `work` on the replica. Returns null when the replica is behind or fails. `work` may have
   * started by then. Throws the errors of `work`, and storage faults of the primary.
   */
  async run<T>(work: (db: Kysely<DB>) => Promise<T>): Promise<{ result: T } | null> {
    const { client } = await this.#take(this.#pooled)
    if (client === null) return null
    let failure: unknown
    try {
      return { result: await work(kyselyOnClient<DB>(client)) }
    } catch (error) {
      failure = error
      // A standby cancels a query when the replay must remove a row that the query needs.
      if (postgresStorageFault(error) === 'unreachable' || mustRunAgain(error)) return null
      throw error
    } finally {
      this.#pooled.close(client, failure)
    }
  }

  /**
   * Opens a connection that the caller must close. Returns null when the replica is behind or
   * fails.
   */
  async connect(): Promise<PoolClient | null> {
    const alone: Source = { open: () => this.#pools.connect(), close: (client) => void endClient(client) }
    return (await this.#take(alone)).client
  }

  async state(): Promise<ReplicaState> {
    const { client, state } = await this.#take(this.#pooled)
    if (client !== null) this.#pooled.close(client)
    return state
  }

  /** Returns the setting `hot_standby_feedback`; null when the replica is behind or fails. */
  async sendsFeedback(): Promise<boolean | null> {
    const found = await this.run((db) =>
      sql<{ isOn: 0 | 1 }>`select current_setting('hot_standby_feedback')::boolean as "isOn"`.execute(db),
    )
    return found === null ? null : found.result.rows[0]?.isOn === 1
  }

  close = (): Promise<void> => this.#pools.close()

  async #take(source: Source): Promise<{ client: PoolClient | null; state: ReplicaState }> {
    if (performance.now() < this.#restsUntil) return { client: null, state: 'unreachable' }
    const { rows } = await readOnce<Place | { position: null }>(this.#primary, placeOfPrimary)
    const [place] = rows
    if (place === undefined || place.position === null) throw new StandbyError()
    const taking = this.#takeAt(source, place)
    const taken = await Promise.race([taking, sleep(maxSilenceMs, null, { ref: false })])
    if (taken !== null) return taken
    // A connection that opens later is closed unused.
    void taking.then(({ client }) => client !== null && source.close(client))
    this.#restsUntil = performance.now() + restMs
    return { client: null, state: 'unreachable' }
  }

  async #takeAt(source: Source, place: Place): Promise<{ client: PoolClient | null; state: ReplicaState }> {
    let client: PoolClient | undefined
    try {
      client = await source.open()
      if (await hasReplayed(client, place)) return { client, state: 'ok' }
      source.close(client)
      return { client: null, state: 'behind' }
    } catch (error) {
      // The error is not thrown: the read uses the primary, and /readyz reports the state of the
      // replica.
      if (client !== undefined) source.close(client, error)
      this.#restsUntil = performance.now() + restMs
      return { client: null, state: 'unreachable' }
    }
  }
}

async function hasReplayed(client: PoolClient, { position, timeline }: Place): Promise<boolean> {
  const until = performance.now() + maxWaitMs
  for (;;) {
    const { rows } = await client.query<{ isCurrent: 0 | 1 }>(currentQuery, [position, timeline])
    if (rows[0]?.isCurrent) return true
    if (performance.now() >= until) return false
    await sleep(pauseMs)
  }
}
