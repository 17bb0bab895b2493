// Counts commits, so that caches of committed data know when to read again. Commits of this process
// count at once. Those of other processes are found by asking the server for its snapshot, whose
// text changes whenever any transaction with a transaction id begins or ends. The same question
// shows that a server is gone without a sign, as after a power cut.

import type { Pools } from './connection.ts'
import { readOnce } from './driver.ts'
import { ConnectionLostError, PoolFullError } from './errors.ts'
import { endClient } from './snapshot.ts'

export interface CommitWatch {
  generation(): number
  /** Called after a commit of this process, and when a lost connection leaves changes unknown. */
  noteChange(): void
  close(): Promise<void>
}

/** Caches of committed data are at most this old, so that a revoked token is refused in time. */
const pollMs = 400
/** A server that leaves the question unanswered for so long is given up. */
const maxSilenceMs = 10_000

const currentState = { sql: 'select pg_current_snapshot()::text as state', parameters: [] }

/** The number of stores opened by this process. Each store counts in a range of its own. */
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
      // Without an answer nothing is known, so no cached result may be used.
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

/** A full pool says nothing about the server: its statements may be slow, or wait in vain. */
async function abandonIfGone(pools: Pools, generation: number): Promise<void> {
  try {
    await endClient(await pools.connect())
  } catch (error) {
    if (error instanceof ConnectionLostError) pools.abandon(generation)
  }
}
