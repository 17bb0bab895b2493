// Retries background work while the database or the storage of files cannot be used. Such a
// storage fault does not count as a failed attempt and is logged at most once a minute.
import { setTimeout as sleep } from 'node:timers/promises'
import { storageFaultOf } from '../../db/storage-errors.ts'
import type { Services } from '../kernel/context.ts'

const pauseMs = 1000
/** The minimum time between two log lines about storage faults, in milliseconds. */
const logIntervalMs = 60_000

export interface StorageRetry {
  /**
   * Returns whether the error is a storage fault that may pass. Logs the fault at most once a
   * minute.
   */
  isTransient(error: unknown): boolean
  /**
   * Runs `work`, and repeats it after a transient storage fault until the worker stops. Throws any
   * other error. Without the repetition, the outcome of a finished job would be lost and the job
   * would run twice.
   */
  untilStored(work: () => Promise<void>): Promise<void>
}

export function createStorageRetry({ log, clock }: Services, isOver: () => boolean): StorageRetry {
  let loggedAt = Number.NEGATIVE_INFINITY

  function isTransient(error: unknown): boolean {
    const fault = storageFaultOf(error)
    const now = clock.now().getTime()
    // `busy` is not logged, because other processes often lock the database for a moment.
    if (
      fault !== null &&
      fault !== 'busy' &&
      fault !== 'damaged' &&
      (now - loggedAt >= logIntervalMs || now < loggedAt)
    ) {
      loggedAt = now
      log.error({ err: error, fault }, 'Storage cannot be used at the moment; background work waits.')
    }
    // Damage does not pass. A job that meets damage must fail, so that it does not block all other
    // jobs.
    return fault !== null && fault !== 'damaged'
  }

  return {
    isTransient,
    async untilStored(work) {
      for (;;) {
        try {
          return await work()
        } catch (error) {
          if (!isTransient(error) || isOver()) throw error
          await sleep(pauseMs)
        }
      }
    },
  }
}
