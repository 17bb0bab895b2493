// Reads batches of a file ahead, and pauses between batches so that other processes get the
// database.
import { setTimeout } from 'node:timers/promises'
import { fineStopwatch } from '../../kernel/runtime/clock.ts'
import type { Batch } from './run.ts'

/** Batches may hold the database for this long before a gap follows. */
const maxBusyMs = 100
/**
 * Longer than the longest retry pause of a process that waits for the database
 * (db/sqlite/busy-retry.ts).
 */
const gapMs = 15
/** Reading these takes about as long as a gap, and they hold a few megabytes at most. */
const maxAhead = 4

export interface BatchReader {
  /**
   * The next batch; undefined after the last. Throws read errors in order, after the batches before
   * them.
   */
  next(): Promise<Batch | undefined>
  /** Must be called between two batches: pauses when a gap is due, and reads ahead meanwhile. */
  breathe(): Promise<void>
  /** Closes the file. */
  close(): Promise<void>
}

export function readAhead(batches: AsyncGenerator<Batch>): BatchReader {
  const read: Promise<IteratorResult<Batch, undefined>>[] = []
  let held = fineStopwatch()

  /** Never throws: `next` reports read errors. */
  async function readOne(): Promise<boolean> {
    const next = batches.next()
    read.push(next)
    return next.then(
      ({ done }) => done !== true,
      () => false,
    )
  }

  return {
    async next() {
      if (read.length === 0) await readOne()
      return (await read.shift())?.value
    },
    async breathe() {
      if (held() < maxBusyMs) return
      const gap = setTimeout(gapMs)
      while (read.length < maxAhead && (await readOne()));
      await gap
      held = fineStopwatch()
    },
    async close() {
      await batches.return(undefined)
    },
  }
}
