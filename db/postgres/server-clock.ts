// The clock of the database server, which all processes share. Leases, locks and schedules compare
// times that different processes have written, so a process whose own clock is wrong would take the
// jobs of another one.

import type { Pools } from './connection.ts'
import { readOnce } from './driver.ts'

export interface ServerClock {
  /** The milliseconds by which the server's clock is ahead of the clock of this process. */
  offsetMs(): number
  /** Asks the server for its time now, and then at intervals until `close`. Never rejects. */
  synchronize(): Promise<void>
  close(): void
}

const intervalMs = 10_000
/** A slower answer says too little about the moment at which the server read its clock. */
const maxRoundTripMs = 2_000
/** A larger difference between the two clocks of this process means that one was set. */
const minStepMs = 100

/** Changes only when the clock of this process is set. */
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
    // The clock of this process may have been set meanwhile.
    if (rows[0] === undefined || roundTripMs < 0 || roundTripMs > maxRoundTripMs) return
    const found = Math.round(rows[0].ms - before - roundTripMs / 2)
    // A smaller difference may be an error of the measurement.
    if (Math.abs(found - currentOffsetMs()) <= roundTripMs + 1) return
    offsetMs = found
    localStartMs = startOfProcessMs()
  }

  /** The clock of this process may have been set since the server was asked. */
  function currentOffsetMs(): number {
    const stepMs = Math.round(startOfProcessMs() - localStartMs)
    return Math.abs(stepMs) < minStepMs ? offsetMs : offsetMs - stepMs
  }

  async function synchronize(): Promise<void> {
    clearTimeout(timer)
    // Without an answer the last offset stays.
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
