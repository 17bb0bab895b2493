// The server's clock. Only this file asks the system for the time, so that a test can set it.
export interface Clock {
  now(): Date
}

export const systemClock: Clock = { now: () => new Date() }

/** A moment as it is stored and returned: `YYYY-MM-DDTHH:mm:ss.sssZ`. */
export const stamp = (time: Date): string => time.toISOString()

/** A moment some days after another, as stored. */
export const daysAfter = (time: Date, days: number): string => stamp(new Date(time.getTime() + daysMs(days)))

export const daysMs = (days: number): number => days * 24 * 60 * 60 * 1000

/**
 * Starts a stopwatch; the function answers the whole milliseconds since. It does not depend on the
 * time of day.
 */
export function stopwatch(): () => number {
  const elapsed = fineStopwatch()
  return () => Math.round(elapsed())
}

/** The same with fractions of milliseconds. */
export function fineStopwatch(): () => number {
  const start = performance.now()
  return () => performance.now() - start
}
