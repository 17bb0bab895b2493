// In whose turn requests are worked on. A request takes milliseconds of the one thread; begun as they are read, a thousand of
// them would hold it for seconds. Here they wait in line, a few are begun in each turn of the event loop, and who finds the line
// full is sent away at once: so what is answered is answered soon, whatever is asked for.

import { fineStopwatch } from './clock.ts'

export interface Turns {
  /** Whether nobody else may wait: asked before anything is read, because a refusal must cost next to nothing. */
  isFull(): boolean
  /** Begins when it is its turn; false when the line is full. Answers how to leave, at whatever stage, any number of times. */
  enter(begin: () => void): (() => void) | false
}

/** How many wait at most. A request costs milliseconds; with 10 ms each, the last in the line begins after a second. */
export const mostWaiting = 100
/** How many are begun and not done: those wait for something else, such as the hash of a password, which has a line of its own. */
export const mostBegun = 200

/**
 * So few are begun together: a turn of the event loop costs as much as a simple request. Of more, one in each turn, because each turn
 * takes one new connection: with long turns these would wait for so long that they are given up.
 */
const few = 8
/** Nobody more is begun in a turn that has lasted so long. */
const longestTurnMs = 5

export function createTurns(most = { waiting: mostWaiting, begun: mostBegun }): Turns {
  const waiting = new Set<() => void>()
  let begun = 0
  let due = 0

  /** After what came in meanwhile was read: otherwise who must be refused would wait for all who are not. */
  function next(): void {
    if (due > 0 || begun >= most.begun) return
    due = waiting.size <= few ? waiting.size : 1
    let lasts: (() => number) | undefined
    // One each, so that what one does is done before the next one begins.
    for (let one = due; one > 0; one--)
      setImmediate(() => {
        due--
        lasts ??= fineStopwatch()
        if (begun < most.begun && lasts() <= longestTurnMs) {
          const [first] = waiting
          first?.()
        }
        if (due === 0) next()
      })
  }

  return {
    isFull: () => waiting.size >= most.waiting,
    enter(begin) {
      if (waiting.size >= most.waiting) return false
      let isBegun = false
      let hasLeft = false
      const turn = (): void => {
        waiting.delete(turn)
        isBegun = true
        begun++
        begin()
      }
      waiting.add(turn)
      next()
      return () => {
        if (hasLeft) return
        hasLeft = true
        waiting.delete(turn)
        if (isBegun) begun--
        next()
      }
    },
  }
}
