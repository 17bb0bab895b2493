// Retries while another process holds the write lock, with turns of the event loop in between.
// SQLite's own `busy_timeout` would block the event loop, so it is 0 on every connection of a
// server.

import { setTimeout as sleep } from 'node:timers/promises'
import { sqliteStorageFault } from './errors.ts'

/** After this long the call fails as busy. */
export const maxBusyWaitMs = 5000
/** The longest pause is shorter than the gaps that long work leaves for other writers. */
const pausesMs = [1, 2, 5] as const
const maxPauseMs = 10

export const isBusy = (error: unknown): boolean => sqliteStorageFault(error) === 'busy'

export const retryDelayMs = (tries: number): number => pausesMs[tries] ?? maxPauseMs

/**
 * Runs the work at once if the lock is free. Throws SQLite's error when the lock is not free in
 * time.
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
