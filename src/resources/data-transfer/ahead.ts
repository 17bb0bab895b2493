// The batches of a file in their order. Between some of them the database is left to other processes, and the next are read meanwhile.
import { setTimeout } from 'node:timers/promises'
import { fineStopwatch } from '../../kernel/runtime/clock.ts'
import type { Batch } from './run.ts'

/** How long the batches between two gaps may take in all. */
const heldMs = 100
/** Longer than the longest pause between two tries of another process that waits for the database (db/sqlite/busy-retry.ts). */
const gapMs = 15
/** So many take about as long to read as a gap lasts, and some megabytes at most. */
const maxAhead = 4

export interface Ahead {
  /** Undefined behind the last one. Throws what keeps the file from being read, once all that stands before it was asked for. */
  next(): Promise<Batch | undefined>
  /** To be called between two batches: leaves a gap behind one long batch or several short ones. */
  breathe(): Promise<void>
  /** Closes the file. */
  close(): Promise<void>
}

export function readAhead(batches: AsyncGenerator<Batch>): Ahead {
  const read: Promise<IteratorResult<Batch, undefined>>[] = []
  let held = fineStopwatch()

  /** What is wrong with it is for whoever asks for it. */
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
      if (held() < heldMs) return
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
