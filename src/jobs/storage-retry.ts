// Patience with a database that is locked, or whose disk is full or fails: what cannot be done now is done later, once for all that
// it holds up it is said why, and nothing counts as a failed try.
import { setTimeout as sleep } from 'node:timers/promises'
import { storageFaultOf } from '../../db/storage-errors.ts'
import type { Services } from '../kernel/context.ts'

const pauseMs = 1000
/** Said again after that. */
const saidMs = 60_000

export interface StorageRetry {
  /** Whether an error is of that kind. Says so in the log now and then. */
  isTransient(error: unknown): boolean
  /** Tries until it is stored, or nobody waits for it any more: what was done must not be done twice for want of a row that says so. */
  untilStored(work: () => Promise<void>): Promise<void>
}

export function createStorageRetry({ log, clock }: Services, isOver: () => boolean): StorageRetry {
  let saidAt = Number.NEGATIVE_INFINITY

  function isPassing(error: unknown): boolean {
    const trouble = storageFaultOf(error)
    const now = clock.now().getTime()
    // Another process may hold the database for a moment.
    if (trouble !== null && trouble !== 'busy' && trouble !== 'damaged' && (now - saidAt >= saidMs || now < saidAt)) {
      saidAt = now
      log.error({ err: error, trouble }, 'Nothing can be written at the moment; work in the background waits.')
    }
    // A damaged database does not mend itself, and one job must not hold up all others.
    return trouble !== null && trouble !== 'damaged'
  }

  return {
    isTransient: isPassing,
    async untilStored(work) {
      for (;;) {
        try {
          return await work()
        } catch (error) {
          if (!isPassing(error) || isOver()) throw error
          await sleep(pauseMs)
        }
      }
    },
  }
}
