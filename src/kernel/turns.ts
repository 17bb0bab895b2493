// In whose turn requests are worked on. A request takes milliseconds of the one thread; begun as they are read, a thousand of
// them would hold it for seconds. Here they wait in line, and who finds the line full is sent away at once: so what is answered is
// answered soon, whatever is asked for. Of the time that is asked for, the line gets about half; what is read and refused gets the
// other half, so that neither waits for the other one to end. While connections come the line gets less: turns must be short then
// (arrivals.ts).

import { fineStopwatch } from './clock.ts'

export interface Turns {
  /** Whether nobody else may wait: asked before anything is read, because a refusal must cost next to nothing. */
  isFull(): boolean
  /** Begins when it is its turn; false when the line is full. Answers how to leave, at whatever stage, any number of times. */
  enter(begin: () => void, isWrite?: boolean): (() => void) | false
  /** Whether somebody waits who will write. */
  hasWrites(): boolean
}

/** How many wait at most. With 10 ms each the last begins after one or two seconds, while connections come ten. */
export const mostWaiting = 100
/** How many are begun and not done: those wait for something else, such as the hash of a password, which has a line of its own. */
export const mostBegun = 200

/** So few are begun together, whatever it takes: a turn of the event loop costs as much as a simple request. */
const few = 8
/** So many are begun in one turn at most. */
const mostInTurn = 16
/** Of the time spent elsewhere the line gets so much while connections come. */
const shareOfArrivals = 0.1
/** What the line has not used is kept for those who come together, what it used too much is given back; each up to this. */
const mostCreditMs = 10

export function createTurns({
  most = { waiting: mostWaiting, begun: mostBegun },
  stopwatch = fineStopwatch,
  areComing = (): boolean => false,
} = {}): Turns {
  // No set: when engines make its table anew, which is every few requests, the old one keeps whoever was in it, and the new one, until
  // all of the memory is looked through; so every request would be kept for seconds.
  const waiting: (() => void)[] = []
  let begun = 0
  let writes = 0
  let isDue = false
  let credit = mostCreditMs
  let elsewhere = stopwatch()
  let here = elsewhere
  let atLeast = 1

  /** After what came in meanwhile was read: otherwise who must be refused would wait for all who are not. */
  function next(): void {
    if (isDue || begun >= most.begun || waiting.length === 0) return
    isDue = true
    setImmediate(open)
    // One each, so that what one does is done before the next one begins.
    for (let left = Math.min(waiting.length, mostInTurn); left > 0; left--) setImmediate(beginOne)
    setImmediate(close)
  }

  function open(): void {
    credit = Math.min(credit + elsewhere() * (areComing() ? shareOfArrivals : 1), mostCreditMs)
    here = stopwatch()
    // Of a long line nobody while connections come: others may wait behind those that were taken.
    atLeast = waiting.length <= few ? few : areComing() ? 0 : 1
  }

  function beginOne(): void {
    if (begun >= most.begun || (atLeast <= 0 && credit <= here())) return
    atLeast--
    waiting[0]?.()
  }

  function close(): void {
    credit = Math.max(credit - here(), -mostCreditMs)
    elsewhere = stopwatch()
    isDue = false
    next()
  }

  return {
    isFull: () => waiting.length >= most.waiting,
    hasWrites: () => writes > 0,
    enter(begin, isWrite = false) {
      if (waiting.length >= most.waiting) return false
      let isBegun = false
      let hasLeft = false
      const leaveLine = (): void => {
        const place = waiting.indexOf(turn)
        if (place < 0) return
        waiting.splice(place, 1)
        if (isWrite) writes--
      }
      const turn = (): void => {
        leaveLine()
        isBegun = true
        begun++
        begin()
      }
      waiting.push(turn)
      if (isWrite) writes++
      next()
      return () => {
        if (hasLeft) return
        hasLeft = true
        leaveLine()
        if (isBegun) begun--
        next()
      }
    },
  }
}
