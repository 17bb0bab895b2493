// The server's clock. Only this file asks the system for the time, so that a test can set it.
export interface Clock {
  now(): Date
}

export const systemClock: Clock = { now: () => new Date() }

/** Returns a time in stored form: `YYYY-MM-DDTHH:mm:ss.sssZ`. */
export const stamp = (time: Date): string => time.toISOString()

/** Returns the time some days after another, in stored form. */
export const daysAfter = (time: Date, days: number): string => stamp(new Date(time.getTime() + daysMs(days)))

export const daysMs = (days: number): number => days * 24 * 60 * 60 * 1000

/**
 * Starts a stopwatch. The returned function returns the whole milliseconds since then. Clock
 * changes do not affect it.
 */
export function stopwatch(): () => number {
  const elapsed = fineStopwatch()
  return () => Math.round(elapsed())
}

/** Starts a stopwatch that also returns fractions of milliseconds. */
export function fineStopwatch(): () => number {
  const start = performance.now()
  return () => performance.now() - start
}
