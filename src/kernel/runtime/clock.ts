// The server's clock. Only this file reads the system time, so that a test can supply another
// clock.
import type { Store } from '../../../db/store.ts'

export interface Clock {
  now(): Date
}

export const systemClock: Clock = { now: () => new Date() }

/** Returns the clock that all processes with this database share. */
export const sharedClock = (store: Pick<Store, 'clockOffsetMs'>): Clock => ({
  now: () => new Date(Date.now() + store.clockOffsetMs()),
})

/** Returns a time in stored form: `YYYY-MM-DDTHH:mm:ss.sssZ`. */
export const stamp = (time: Date): string => time.toISOString()

/** Returns the time `days` days after `time`, in stored form. */
export const daysAfter = (time: Date, days: number): string => stamp(new Date(time.getTime() + daysMs(days)))

export const daysMs = (days: number): number => days * 24 * 60 * 60 * 1000

/**
 * Starts a stopwatch. The returned function returns the milliseconds since the start, as an
 * integer. Changes of the system time do not affect the result.
 */
export function stopwatch(): () => number {
  const elapsed = fineStopwatch()
  return () => Math.round(elapsed())
}

/** Starts a stopwatch like `stopwatch`, but its result includes fractions of a millisecond. */
export function fineStopwatch(): () => number {
  const start = performance.now()
  return () => performance.now() - start
}
