// Reads batches of a file ahead, and pauses between batches so that other processes can use the
// database.
import { setTimeout } from 'node:timers/promises'
import { fineStopwatch } from '../../kernel/runtime/clock.ts'
import type { Batch } from './run.ts'

/** The time in milliseconds that batches may use the database before a pause. */
const maxBusyMs = 100
/**
 * The length of a pause in milliseconds. The pause is longer than the longest retry interval of a
 * process that waits for the database (db/sqlite/busy-retry.ts), so the waiting process gets its
 * turn.
 */
const gapMs = 15
/**
 * The maximum number of batches to read ahead. Reading this many takes about as long as a pause and
 * uses a few megabytes at most.
 */
const maxAhead = 4

export interface BatchReader {
  /**
   * Returns the next batch, or undefined after the last one. Throws a read error only after all
   * batches before the error have been returned.
   */
  next(): Promise<Batch | undefined>
  /**
   * Pauses if a pause is due, and reads ahead during the pause. Must be called between two batches.
   */
  breathe(): Promise<void>
  close(): Promise<void>
}

export function readAhead(batches: AsyncGenerator<Batch>): BatchReader {
  const read: Promise<IteratorResult<Batch, undefined>>[] = []
  let held = fineStopwatch()

  /**
   * Reads one more batch and returns whether there was one. Never throws: `next` throws the error
   * when the caller reaches it.
   */
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
