// The admission queue, in which requests wait in the order of arrival until their handlers may
// start. Its limit is the expected waiting time, so that an accepted request gets its response soon
// under any load. A limit on the number of requests is not enough: a hundred lists
// take twenty times as long as a hundred single records.
import { fineStopwatch } from '../../kernel/runtime/clock.ts'

export interface AdmissionQueue {
  /**
   * Returns whether the queue is too full for another request of the client. Called before the body
   * is read, so that a refusal is cheap.
   */
  isFull(client?: string): boolean
  /** Returns whether a request of the client is queued. */
  hasQueued(client: string): boolean
  /**
   * Queues a request and calls `begin` when its handler may start. Returns false when the queue is
   * full. Otherwise returns a function that releases the place. Repeated calls of this function do
   * nothing.
   */
  admit(begin: () => void, isWrite?: boolean, client?: string): (() => void) | false
  /** Returns whether a request that writes is queued. */
  hasQueuedWrites(): boolean
}

export interface Limits {
  /**
   * The maximum expected wait in milliseconds without overload. Requests that would wait longer are
   * refused.
   */
  burstWaitMs: number
  /**
   * The maximum expected wait in milliseconds under overload. Each refusal means overload for the
   * next `overloadMs`.
   */
  waitMs: number
  overloadMs: number
  /**
   * The number of requests that may always queue, so that a slow request does not cause refusals.
   */
  alwaysQueued: number
  /**
   * The same for each client, so that one client with many requests causes no refusals of others.
   */
  alwaysQueuedOfOne: number
  /** The maximum number of queued requests, to limit memory. */
  queued: number
  /** The maximum number of started requests. They may wait for a commit or a password hash. */
  inFlight: number
  /** The maximum number of queued and started writes, so that a slow disk leaves room for reads. */
  writes: number
}

export const defaultLimits: Limits = {
  burstWaitMs: 100,
  waitMs: 12,
  overloadMs: 1_000,
  alwaysQueued: 8,
  alwaysQueuedOfOne: 2,
  queued: 200,
  inFlight: 200,
  writes: 150,
}

/**
 * The time in milliseconds for starting handlers in one turn of the event loop, before sockets are
 * read again.
 */
const sliceMs = 2
const maxStartsPerTurn = 16
/** The weight of the newest turn in the moving average, from 0 to 1. */
const smoothing = 0.1

/** Estimates the time between two starts while requests are queued. */
function createStartEstimate({ waitMs }: Limits, stopwatch: typeof fineStopwatch) {
  let msPerStart = 0
  let wasBusy = false
  let elapsedSinceTurn = stopwatch()
  return {
    msPerStart: () => msPerStart,
    closeTurn(starts: number, isBusy: boolean): void {
      const elapsed = elapsedSinceTurn()
      elapsedSinceTurn = stopwatch()
      // Only turns in which requests were queued the whole time count. All work in such a turn,
      // also refusals, delayed these requests.
      if (wasBusy && starts > 0) msPerStart += smoothing * (Math.min(elapsed / starts, waitMs) - msPerStart)
      wasBusy = isBusy
    },
  }
}

/** Knows the maximum expected wait, which is shorter under overload. */
function createOverload({ overloadMs, burstWaitMs, waitMs }: Limits, stopwatch: typeof fineStopwatch) {
  // The time since the last refusal in milliseconds. It determines the end of an overload, because
  // the queue can be empty for a moment during an overload.
  let sinceRefusal = (): number => Number.POSITIVE_INFINITY
  return {
    maxWaitMs: () => (sinceRefusal() > overloadMs ? burstWaitMs : waitMs),
    refused(): void {
      sinceRefusal = stopwatch()
    },
  }
}

/** Returns counters by key. A counter at 0 takes no memory. */
function createCounts() {
  const counts = new Map<string, number>()
  return {
    get: (key: string): number => counts.get(key) ?? 0,
    add(key: string, change: number): void {
      const count = (counts.get(key) ?? 0) + change
      if (count > 0) counts.set(key, count)
      else counts.delete(key)
    },
  }
}

export function createAdmissionQueue({ limits = defaultLimits, stopwatch = fineStopwatch } = {}): AdmissionQueue {
  // Not a Set, because V8 keeps the old tables of a Set and their contents in memory until a full
  // garbage collection.
  const queue: (() => void)[] = []
  let inFlight = 0
  let queuedWrites = 0
  let writes = 0
  let isScheduled = false
  let starts = 0
  const overload = createOverload(limits, stopwatch)
  let elapsedInTurn = stopwatch()
  const estimate = createStartEstimate(limits, stopwatch)

  const queuedOf = createCounts()

  const isBeyondBounds = (client: string | undefined): boolean => {
    if (queue.length >= limits.queued) return true
    if (queue.length < limits.alwaysQueued) return false
    if (client !== undefined && queuedOf.get(client) < limits.alwaysQueuedOfOne) return false
    return queue.length * estimate.msPerStart() > overload.maxWaitMs()
  }

  const isFull = (client?: string): boolean => {
    if (!isBeyondBounds(client)) return false
    overload.refused()
    return true
  }

  function schedule(): void {
    if (isScheduled || inFlight >= limits.inFlight || queue.length === 0) return
    isScheduled = true
    setImmediate(() => {
      starts = 0
      elapsedInTurn = stopwatch()
    })
    // Each start has its own `setImmediate`, so that the promises of a request settle before the
    // next request starts.
    for (let left = Math.min(queue.length, maxStartsPerTurn); left > 0; left--) setImmediate(startNext)
    setImmediate(closeTurn)
  }

  function startNext(): void {
    const isOver = starts > 0 && elapsedInTurn() >= sliceMs
    if (isOver || inFlight >= limits.inFlight) return
    starts++
    queue[0]?.()
  }

  function closeTurn(): void {
    estimate.closeTurn(starts, queue.length > 0)
    isScheduled = false
    schedule()
  }

  return {
    isFull,
    hasQueued: (client) => queuedOf.get(client) > 0,
    hasQueuedWrites: () => queuedWrites > 0,
    admit(begin, isWrite = false, client = '') {
      if (isFull(client === '' ? undefined : client) || (isWrite && writes >= limits.writes)) return false
      let hasStarted = false
      let isReleased = false
      const leaveQueue = (): void => {
        const place = queue.indexOf(start)
        if (place < 0) return
        queue.splice(place, 1)
        queuedOf.add(client, -1)
        if (isWrite) queuedWrites--
      }
      const start = (): void => {
        leaveQueue()
        hasStarted = true
        inFlight++
        begin()
      }
      queue.push(start)
      queuedOf.add(client, 1)
      if (isWrite) {
        queuedWrites++
        writes++
      }
      schedule()
      return () => {
        if (isReleased) return
        isReleased = true
        leaveQueue()
        if (hasStarted) inFlight--
        if (isWrite) writes--
        schedule()
      }
    },
  }
}
