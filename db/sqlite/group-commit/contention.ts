// Limits the waiting requests of the write queue while another process has the write lock. At other
// times only http/load-shedding limits them.

/** The limit applies once another process has had the lock for this many milliseconds. */
const briefLockMs = 250
/**
 * The maximum number of waiting requests during a long lock. More would fill the admission queue of
 * http/load-shedding and so block reads, too.
 */
const maxWaiting = 100

/**
 * A series of failed attempts to begin a transaction, because another process has the write lock.
 */
export interface Contention {
  readonly since: number
  readonly tries: number
  readonly error: unknown
}

/** Returns whether the queue must refuse further requests because of a long lock. */
export const isQueueFull = (contention: Contention | null, waiting: number): contention is Contention =>
  contention !== null && waiting >= maxWaiting && performance.now() - contention.since > briefLockMs
