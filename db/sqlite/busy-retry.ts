// Retries work while another process has the write lock. The event loop runs between the attempts.
// SQLite's `busy_timeout` would block the event loop, so connections of the server do not set it.

import { setTimeout as sleep } from 'node:timers/promises'
import { sqliteStorageFault } from './errors.ts'

/** The default maximum wait for the lock in milliseconds. After this time the work fails. */
export const maxBusyWaitMs = 5000
/**
 * The first pauses between attempts in milliseconds. Every later pause is `maxPauseMs`, which is
 * shorter than the gaps that long work leaves for other writers.
 */
const pausesMs = [1, 2, 5] as const
const maxPauseMs = 10

export const isBusy = (error: unknown): boolean => sqliteStorageFault(error) === 'busy'

export const retryDelayMs = (tries: number): number => pausesMs[tries] ?? maxPauseMs

/**
 * Runs the work and returns its result. Retries while another process has the lock. Throws
 * SQLITE_BUSY when the lock is not free after `waitMs`.
 */
export function retryWhileBusy<T>(work: () => T, waitMs = maxBusyWaitMs): T | Promise<T> {
  try {
    return work()
  } catch (error) {
    if (!isBusy(error) || waitMs <= 0) throw error
    return tryAgain(work, waitMs)
  }
}

async function tryAgain<T>(work: () => T, waitMs: number): Promise<T> {
  const since = performance.now()
  for (let tries = 0; ; tries++) {
    await sleep(retryDelayMs(tries))
    try {
      return work()
    } catch (error) {
      if (!isBusy(error) || performance.now() - since >= waitMs) throw error
    }
  }
}
