// Counts commits, so that caches know when to read again. A poll finds commits of other processes:
// the result of pg_current_snapshot() changes when any write transaction begins or ends. A poll
// without a response also shows that a server has stopped without closing its connections.

import type { Pools } from './connection.ts'
import { ConnectionLostError, PoolFullError } from './errors.ts'
import { endClient } from './snapshot.ts'
import { readOnce } from './statements.ts'

export interface CommitWatch {
  generation(): number
  /**
   * Called after a commit of this process, and when a connection is lost, because changes may be
   * missed.
   */
  noteChange(): void
  close(): Promise<void>
}

/** The poll interval. It limits the age of cached data, so that a revoked token is refused soon. */
const pollMs = 400
/** After a poll has waited this long, the connections to the server are closed. */
const maxSilenceMs = 10_000

const currentState = { sql: 'select pg_current_snapshot()::text as state', parameters: [] }

/**
 * The number of stores opened by this process. Each store counts from another start value, so that
 * no two stores have the same generation.
 */
let opened = 0

export function watchCommits(pools: Pools): CommitWatch {
  let generation = opened++ * 2 ** 32
  let known = ''
  let timer: NodeJS.Timeout | undefined
  let polling: Promise<void> = Promise.resolve()
  let isClosed = false

  async function poll(): Promise<void> {
    const asked = pools.generation()
    const silence = setTimeout(() => pools.abandon(asked), maxSilenceMs).unref()
    try {
      const { rows } = await readOnce<{ state: string }>(pools, currentState)
      const state = rows[0]?.state ?? ''
      if (state !== known) generation += 1
      known = state
    } catch (error) {
      // Other processes may have committed, so cached results must not be used.
      generation += 1
      if (error instanceof PoolFullError) await abandonIfGone(pools, asked)
    } finally {
      clearTimeout(silence)
    }
    if (!isClosed) timer = setTimeout(next, pollMs).unref()
  }
  const next = (): void => {
    polling = poll()
  }
  timer = setTimeout(next, pollMs).unref()

  return {
    generation: () => generation,
    noteChange: () => {
      generation += 1
    },
    close: async () => {
      isClosed = true
      clearTimeout(timer)
      await polling
    },
  }
}

/**
 * Abandons the server if a new connection to it fails. Called when a pool is full, because its
 * statements may be slow or the server may be gone.
 */
async function abandonIfGone(pools: Pools, generation: number): Promise<void> {
  try {
    await endClient(await pools.connect())
  } catch (error) {
    if (error instanceof ConnectionLostError) pools.abandon(generation)
  }
}
