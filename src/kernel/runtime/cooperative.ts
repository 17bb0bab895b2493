// Splits long work into short time slices. SQLite blocks the event loop, so long work must yield
// between slices. All long work of a process shares one queue: one slice runs at a time, and
// requests run in between.
import { setImmediate as turn } from 'node:timers/promises'
import { fineStopwatch } from './clock.ts'

/** The length of a time slice in milliseconds: about the duration of a request. */
const sliceMs = 2

let line: Promise<void> = Promise.resolve()
let held = fineStopwatch()

/**
 * Ends the current time slice, so that waiting requests run. A request needs three turns of the
 * event loop: it is read, handled and sent.
 */
export function yieldToEventLoop(): Promise<void> {
  line = line.then(async () => {
    for (let turns = 0; turns < 3; turns++) await turn()
    held = fineStopwatch()
  })
  return line
}

/**
 * Ends the current time slice if it has lasted `sliceMs`. Long work calls this between two steps.
 */
export const yieldIfDue = async (): Promise<void> => {
  if (held() >= sliceMs) await yieldToEventLoop()
}

/** The milliseconds for which a transaction runs before it ends time slices. */
const patienceMs = 8

/**
 * Returns the pause of a transaction that begins now (`Store.paceTransactions`). A short
 * transaction runs in one turn of the event loop. A longer one ends each time slice between two of
 * its statements, however many records depend on the changed one.
 */
export function pacedFromNow(): () => Promise<void> | null {
  const lasted = fineStopwatch()
  return () => (lasted() < patienceMs || held() < sliceMs ? null : yieldToEventLoop())
}

export interface Portions {
  /** Returns the number of items for the next slice. */
  size(): number
  /**
   * Runs `work`, which handles `count` items in one slice. Adapts the size of the next slice to the
   * time that this slice took.
   */
  run<T>(count: number, work: () => Promise<T>): Promise<T>
}

/**
 * Returns an object that sizes batches so that each batch takes about one time slice. The first
 * batch has `first` items; later ones have `fewest` to `most`.
 */
export function adaptiveBatches(fewest: number, most: number, first: number): Portions {
  let size = first
  return {
    size: () => size,
    async run(count, work) {
      const took = fineStopwatch()
      const done = await work()
      const fitting = (count * sliceMs) / Math.max(took(), 0.01)
      // The size changes slowly, because a single batch can be unusually cheap or can wait for the
      // CPU.
      size = Math.min(most, Math.max(fewest, Math.round((3 * size + Math.min(fitting, 2 * size)) / 4)))
      return done
    },
  }
}
