// Long work in short pieces (DESIGN 8): the database answers without leaving the turn of the event loop, so whoever works for long must
// let others go on. All long work of a process stands in one line here: one piece at a time, and what was asked meanwhile between two.
import { setImmediate as turn } from 'node:timers/promises'
import { fineStopwatch } from './clock.ts'

/** How long a piece may take: not much longer than a request. */
const sliceMs = 2

let line: Promise<void> = Promise.resolve()
let held = fineStopwatch()

/** Ends a piece. In the first turn requests are read that came meanwhile, in the second they have begun, in the third they are answered. */
export function yieldToEventLoop(): Promise<void> {
  line = line.then(async () => {
    for (let turns = 0; turns < 3; turns++) await turn()
    held = fineStopwatch()
  })
  return line
}

/** Between two steps of a piece: ends it if it is long enough. */
export const yieldIfDue = async (): Promise<void> => {
  if (held() >= sliceMs) await yieldToEventLoop()
}

export interface Portions {
  /** How many make a piece. */
  size(): number
  /** Does a piece of so many, to learn from it. */
  taking<T>(count: number, work: () => Promise<T>): Promise<T>
}

/** For work that is cheaper done for several at once: how many of them take about as long as a piece may, `first` at first. */
export function adaptiveBatches(fewest: number, most: number, first: number): Portions {
  let size = first
  return {
    size: () => size,
    async taking(count, work) {
      const took = fineStopwatch()
      const done = await work()
      const fitting = (count * sliceMs) / Math.max(took(), 0.01)
      // One that was cheap, or had to wait for the processor, says little.
      size = Math.min(most, Math.max(fewest, Math.round((3 * size + Math.min(fitting, 2 * size)) / 4)))
      return done
    },
  }
}
