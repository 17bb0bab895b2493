// The admission queue: a request waits here, first come, first served, until its handler may start.
// The bound is the expected waiting time, so an accepted request is answered soon under any load
// (DOMAIN 25.2). A count alone does not bound the time: a hundred lists take twenty times as long
// as a hundred shows.
import { fineStopwatch } from '../../kernel/runtime/clock.ts'

export interface AdmissionQueue {
  /**
   * Whether `admit` would refuse. Asked before a body is read, so that a refusal costs next to
   * nothing.
   */
  isFull(): boolean
  /**
   * Calls `begin` in its turn. Returns false when the queue is full, else a release function, which
   * is idempotent.
   */
  admit(begin: () => void, isWrite?: boolean): (() => void) | false
  /** Whether a queued request writes. */
  hasQueuedWrites(): boolean
}

export interface Limits {
  /** A request is refused above this expected wait … */
  burstWaitMs: number
  /** … and above this one under overload, which lasts for `overloadMs` after a refusal. */
  waitMs: number
  overloadMs: number
  /** This many requests may always queue, so that one slow request does not refuse the next few. */
  alwaysQueued: number
  /** At most this many may queue: the bound on memory. */
  queued: number
  /** At most this many may have started and be waiting, for a commit or the hash of a password. */
  inFlight: number
  /**
   * At most this many, queued or in flight, may write, so that a slow disk leaves room for reads.
   */
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
/** The weight of the newest turn in the moving average. */
const smoothing = 0.1

/** Estimates the time from one start to the next while requests are queued. */
function createStartEstimate({ waitMs }: Limits, stopwatch: typeof fineStopwatch) {
  let msPerStart = 0
  let wasBusy = false
  let elapsedSinceTurn = stopwatch()
  return {
    msPerStart: () => msPerStart,
    closeTurn(starts: number, isBusy: boolean): void {
      const elapsed = elapsedSinceTurn()
      elapsedSinceTurn = stopwatch()
      // Requests were queued all through this turn, so its other work, such as refusals, was part
      // of their wait.
      if (wasBusy && starts > 0) msPerStart += smoothing * (Math.min(elapsed / starts, waitMs) - msPerStart)
      wasBusy = isBusy
    },
  }
}

export function createAdmissionQueue({ limits = defaultLimits, stopwatch = fineStopwatch } = {}): AdmissionQueue {
  // An array, because V8 keeps the former tables of a Set and their contents alive until a full
  // collection.
  const queue: (() => void)[] = []
  let inFlight = 0
  let queuedWrites = 0
  let writes = 0
  let isScheduled = false
  let starts = 0
  // An empty queue does not end an overload: under overload the queue is empty now and then.
  let sinceRefusal = (): number => Number.POSITIVE_INFINITY
  let elapsedInTurn = stopwatch()
  const estimate = createStartEstimate(limits, stopwatch)

  const isBeyondBounds = (): boolean => {
    if (queue.length >= limits.queued) return true
    if (queue.length < limits.alwaysQueued) return false
    return (
      queue.length * estimate.msPerStart() > (sinceRefusal() > limits.overloadMs ? limits.burstWaitMs : limits.waitMs)
    )
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
    // One immediate each, so that the promises of a request settle before the next one starts.
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
    estimate.closeTurn(starts, queue.length > 0)
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
