// Long work in short slices: SQLite answers synchronously, so long work must yield to the event
// loop. All long work of a process shares one queue: one slice at a time, and requests run in
// between.
import { setImmediate as turn } from 'node:timers/promises'
import { fineStopwatch } from './clock.ts'

/** The length of a time slice in milliseconds, about that of a request. */
const sliceMs = 2

let line: Promise<void> = Promise.resolve()
let held = fineStopwatch()

/**
 * Ends a slice. It takes three turns of the event loop to read, run and answer the requests that
 * came meanwhile.
 */
export function yieldToEventLoop(): Promise<void> {
  line = line.then(async () => {
    for (let turns = 0; turns < 3; turns++) await turn()
    held = fineStopwatch()
  })
  return line
}

/** Ends the slice if its time is used up. Call it between two steps. */
export const yieldIfDue = async (): Promise<void> => {
  if (held() >= sliceMs) await yieldToEventLoop()
}

export interface Portions {
  /** Returns the number of items for the next slice. */
  size(): number
  /** Runs a slice of `count` items and adapts the size to the time it took. */
  taking<T>(count: number, work: () => Promise<T>): Promise<T>
}

/** Sizes batches so that each takes about one slice, beginning with `first` items. */
export function adaptiveBatches(fewest: number, most: number, first: number): Portions {
  let size = first
  return {
    size: () => size,
    async taking(count, work) {
      const took = fineStopwatch()
      const done = await work()
      const fitting = (count * sliceMs) / Math.max(took(), 0.01)
      // The size changes slowly, because one batch can be unusually cheap or wait for the CPU.
      size = Math.min(most, Math.max(fewest, Math.round((3 * size + Math.min(fitting, 2 * size)) / 4)))
      return done
    },
  }
}
