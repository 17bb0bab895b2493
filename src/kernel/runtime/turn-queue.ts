// A queue in which keys take turns: each key has a line of its own, and the next caller comes from
// the key that has waited longest for its turn. A key with many callers therefore delays another
// key by one caller only.
import { Problem } from '../errors.ts'

export interface TurnQueue {
  /** The number of waiting callers. */
  size(): number
  /**
   * Waits for the turn of this caller. Throws 429 with Retry-After when the queue is full or the
   * turn does not come within the longest wait.
   */
  wait(key: string): Promise<void>
  /** Lets the next caller go on. Returns false when the queue is empty. */
  next(): boolean
}

interface Limits {
  maxWaitMs: number
  /** The maximum number of waiting callers, to limit memory. */
  maxWaiting: number
  /** Returns the problem of a caller whose turn did not come. */
  refusal: () => Problem
}

export function createTurnQueue({ maxWaitMs, maxWaiting, refusal }: Limits): TurnQueue {
  // A Map keeps the order in which keys were added, which is the order of their turns.
  const lines = new Map<string, (() => void)[]>()
  let size = 0
  const leave = (key: string, enter: () => void): void => {
    const line = lines.get(key) ?? []
    line.splice(line.indexOf(enter), 1)
    if (line.length === 0) lines.delete(key)
    size--
  }
  return {
    size: () => size,
    async wait(key) {
      if (size >= maxWaiting) throw refusal()
      await new Promise<void>((resolve, reject) => {
        const enter = (): void => {
          clearTimeout(timer)
          resolve()
        }
        const timer = setTimeout(() => {
          leave(key, enter)
          reject(refusal())
        }, maxWaitMs)
        lines.set(key, [...(lines.get(key) ?? []), enter])
        size++
      })
    },
    next() {
      const [turn] = lines
      if (!turn) return false
      const [key, [enter, ...rest]] = turn
      lines.delete(key)
      if (rest.length > 0) lines.set(key, rest)
      size--
      enter?.()
      return true
    },
  }
}

/** Returns the 429 of a caller who waited too long to sign in. */
export const tooMany = (): Problem =>
  new Problem('rate_limited', 'Too many people are signing in at once.', { headers: { 'retry-after': '1' } })
