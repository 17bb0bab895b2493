// The admission queue: requests wait here, first come, first served, until their handler may start. It is bounded by the time that
// a request can expect to wait, so an accepted request is answered soon, however many requests arrive (DOMAIN 25.2). A count alone
// does not bound the time: a hundred lists take twenty times as long as a hundred shows.
import { fineStopwatch } from '../../kernel/runtime/clock.ts'

export interface AdmissionQueue {
  /** Whether `admit` refuses. It is asked before a body is read, because a refusal must cost next to nothing. */
  isFull(): boolean
  /** Calls `begin` in its turn. Returns false when the queue is full, else the release function, which may be called repeatedly. */
  admit(begin: () => void, isWrite?: boolean): (() => void) | false
  /** Whether a queued request writes. */
  hasQueuedWrites(): boolean
}

export interface Limits {
  /** The expected wait above which a request is refused, in milliseconds: in a burst … */
  burstWaitMs: number
  /** … and under overload, that is for `overloadMs` after a refusal. */
  waitMs: number
  overloadMs: number
  /** This many requests may queue whatever their expected wait, so that one slow request does not turn away the next few. */
  alwaysQueued: number
  /** This many may queue at most: the bound on memory. */
  queued: number
  /** Requests that have started and wait for something else, such as a commit or the hash of a password. */
  inFlight: number
  /** This many requests, queued and in flight, may write: on a slow disk they must leave places to reads. */
  writes: number
}

export const defaultLimits: Limits = {
  burstWaitMs: 100,
  waitMs: 12,
  overloadMs: 1_000,
  alwaysQueued: 8,
  queued: 200,
  inFlight: 200,
  writes: 150,
}

/** In one turn of the event loop, handlers start for this long; then sockets are read again. */
const sliceMs = 2
const maxStartsPerTurn = 16
/** The weight of the newest turn in the estimate of the time per start. */
const smoothing = 0.1

export function createAdmissionQueue({ limits = defaultLimits, stopwatch = fineStopwatch } = {}): AdmissionQueue {
  // An array: V8 keeps the former tables of a Set, and all that was in them, alive until a full collection.
  const queue: (() => void)[] = []
  let inFlight = 0
  let queuedWrites = 0
  let writes = 0
  let isScheduled = false
  let wasBusy = false
  let starts = 0
  /** The time since the last refusal. An empty queue would not end an overload: under one, it is empty now and then. */
  let sinceRefusal = (): number => Number.POSITIVE_INFINITY
  let elapsedInTurn = stopwatch()
  let elapsedSinceTurn = stopwatch()
  /** The moving average of the time from one start to the next while requests are queued. */
  let msPerStart = 0

  const isBeyondBounds = (): boolean => {
    if (queue.length >= limits.queued) return true
    if (queue.length < limits.alwaysQueued) return false
    return queue.length * msPerStart > (sinceRefusal() > limits.overloadMs ? limits.burstWaitMs : limits.waitMs)
  }

  const isFull = (): boolean => {
    if (!isBeyondBounds()) return false
    sinceRefusal = stopwatch()
    return true
  }

  function schedule(): void {
    if (isScheduled || inFlight >= limits.inFlight || queue.length === 0) return
    isScheduled = true
    setImmediate(openTurn)
    // One immediate for each: its promises settle before the next request starts, so the time it takes is seen.
    for (let left = Math.min(queue.length, maxStartsPerTurn); left > 0; left--) setImmediate(startNext)
    setImmediate(closeTurn)
  }

  function openTurn(): void {
    starts = 0
    elapsedInTurn = stopwatch()
  }

  function startNext(): void {
    const isOver = starts > 0 && elapsedInTurn() >= sliceMs
    if (isOver || inFlight >= limits.inFlight) return
    starts++
    queue[0]?.()
  }

  function closeTurn(): void {
    const elapsed = elapsedSinceTurn()
    elapsedSinceTurn = stopwatch()
    // Requests were queued for all of this turn, so what else it did, such as refusing others, was part of their wait.
    if (wasBusy && starts > 0) msPerStart += smoothing * (Math.min(elapsed / starts, limits.waitMs) - msPerStart)
    wasBusy = queue.length > 0
    isScheduled = false
    schedule()
  }

  return {
    isFull,
    hasQueuedWrites: () => queuedWrites > 0,
    admit(begin, isWrite = false) {
      if (isFull() || (isWrite && writes >= limits.writes)) return false
      let hasStarted = false
      let isReleased = false
      const leaveQueue = (): void => {
        const place = queue.indexOf(start)
        if (place < 0) return
        queue.splice(place, 1)
        if (isWrite) queuedWrites--
      }
      const start = (): void => {
        leaveQueue()
        hasStarted = true
        inFlight++
        begin()
      }
      queue.push(start)
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
