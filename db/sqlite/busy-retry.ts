// How this process waits for a lock that another process holds: it tries, lets the event loop turn, and tries again. SQLite's own way of
// waiting (`busy_timeout`) sleeps on the thread that asks, so it is 0 on every connection of a running server.

import { setTimeout as sleep } from 'node:timers/promises'
import { sqliteStorageFault } from './errors.ts'

/** After this long the answer is that the database is busy. */
export const maxBusyWaitMs = 5000
/** Pauses between tries. The longest is shorter than the gap that every long work in pieces leaves to others. */
const pausesMs = [1, 2, 5] as const
const maxPauseMs = 10

export const isBusy = (error: unknown): boolean => sqliteStorageFault(error) === 'busy'

export const retryDelayMs = (tries: number): number => pausesMs[tries] ?? maxPauseMs

/** Does the work at once where it can. Rejects with the error of SQLite when the lock was not free in time. */
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
