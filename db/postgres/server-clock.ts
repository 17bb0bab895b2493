// The clock of the database server, which all processes share. Leases, locks and schedules compare
// times that different processes have written. Otherwise a process with a wrong clock would take
// jobs that another process still runs.

import type { Pools } from './connection.ts'
import { readOnce } from './statements.ts'

export interface ServerClock {
  /** Returns how many milliseconds the server's clock is ahead of the clock of this process. */
  offsetMs(): number
  /** Reads the time of the server now, and then every ten seconds until `close`. Never rejects. */
  synchronize(): Promise<void>
  close(): void
}

const intervalMs = 10_000
/**
 * Slower responses are ignored, because the moment at which the server read its clock is too
 * uncertain.
 */
const maxRoundTripMs = 2_000
/** A larger change of `startOfProcessMs` means that the wall clock of this process was set. */
const minStepMs = 100

/**
 * Returns the wall-clock time at which the process started. The value changes only when the wall
 * clock is set.
 */
const startOfProcessMs = (): number => Date.now() - performance.now()

const currentTime = { sql: 'select (extract(epoch from clock_timestamp()) * 1000)::float8 as ms', parameters: [] }

export function createServerClock(pools: Pools): ServerClock {
  let offsetMs = 0
  let localStartMs = startOfProcessMs()
  let timer: NodeJS.Timeout | undefined
  let isClosed = false

  async function ask(): Promise<void> {
    const before = Date.now()
    const { rows } = await readOnce<{ ms: number }>(pools, currentTime)
    const roundTripMs = Date.now() - before
    // A negative round trip means that the clock of this process was set in between.
    if (rows[0] === undefined || roundTripMs < 0 || roundTripMs > maxRoundTripMs) return
    const found = Math.round(rows[0].ms - before - roundTripMs / 2)
    // A smaller difference may be a measurement error.
    if (Math.abs(found - currentOffsetMs()) <= roundTripMs + 1) return
    offsetMs = found
    localStartMs = startOfProcessMs()
  }

  /** Returns the offset, corrected if the clock of this process was set since the last response. */
  function currentOffsetMs(): number {
    const stepMs = Math.round(startOfProcessMs() - localStartMs)
    return Math.abs(stepMs) < minStepMs ? offsetMs : offsetMs - stepMs
  }

  async function synchronize(): Promise<void> {
    clearTimeout(timer)
    // After a failure, the last offset stays in use.
    await ask().catch(() => undefined)
    if (!isClosed) timer = setTimeout(() => void synchronize(), intervalMs).unref()
  }

  return {
    offsetMs: currentOffsetMs,
    synchronize,
    close: () => {
      isClosed = true
      clearTimeout(timer)
    },
  }
}
