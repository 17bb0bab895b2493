// Limits the waiting requests of the write queue while another process has the write lock. Without
// the lock there is no limit here: http/load-shedding limits the requests of a server.

/**
 * The time in milliseconds after which a lock of another process limits the number of waiting
 * requests.
 */
const briefLockMs = 250
/**
 * The maximum number of waiting requests during a long lock. More would fill the admission queue of
 * http/load-shedding, which reads share.
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

/** Returns whether a lock has lasted so long that the queue takes no further request. */
export const isQueueFull = (contention: Contention | null, waiting: number): contention is Contention =>
  contention !== null && waiting >= maxWaiting && performance.now() - contention.since > briefLockMs
