// A queue in which keys take turns: each key has a line of its own, and the next caller comes from
// the key that has waited longest for its turn. A key with many callers therefore delays another
// key by one caller only.

export type QueueKey = string | number

export type Refusal = 'caller_busy' | 'queue_full' | 'waited_too_long' | 'closed'

export interface FairQueue {
  /** The number of waiting callers. */
  size(): number
  /**
   * Waits for the turn of this caller. Rejects with `refused(reason)` when a line or the queue is
   * full, and when the turn does not come within the longest wait.
   */
  wait(key: QueueKey): Promise<void>
  /**
   * Lets the next caller go on, of a key that is not in `except`. Returns its key, or undefined
   * when none waits.
   */
  next(except?: ReadonlySet<QueueKey>): QueueKey | undefined
  /** Refuses all waiting callers, and every caller who comes later. */
  close(): void
}

interface Limits {
  maxWaitMs: number
  /** The maximum number of waiting callers, to limit memory. */
  maxWaiting: number
  maxWaitingPerKey?: number
}

interface Waiting {
  enter: () => void
  refuse: (reason: Refusal) => void
}

export function createFairQueue(limits: Limits, refused: (reason: Refusal) => Error): FairQueue {
  // A Map keeps the order in which keys were added, which is the order of their turns.
  const lines = new Map<QueueKey, Waiting[]>()
  let size = 0
  let isClosed = false

  const reasonToRefuse = (line: readonly Waiting[]): Refusal | null => {
    if (isClosed) return 'closed'
    if (line.length >= (limits.maxWaitingPerKey ?? limits.maxWaiting)) return 'caller_busy'
    return size >= limits.maxWaiting ? 'queue_full' : null
  }

  function leave(key: QueueKey, waiting: Waiting): void {
    const line = (lines.get(key) ?? []).filter((each) => each !== waiting)
    if (line.length > 0) lines.set(key, line)
    else lines.delete(key)
    size--
  }

  return {
    size: () => size,
    wait: (key) =>
      new Promise((resolve, reject) => {
        const line = lines.get(key) ?? []
        const reason = reasonToRefuse(line)
        if (reason !== null) return reject(refused(reason))
        const waiting: Waiting = {
          enter() {
            clearTimeout(patience)
            leave(key, waiting)
            resolve()
          },
          refuse(reason) {
            clearTimeout(patience)
            leave(key, waiting)
            reject(refused(reason))
          },
        }
        const patience = setTimeout(() => waiting.refuse('waited_too_long'), limits.maxWaitMs)
        lines.set(key, [...line, waiting])
        size++
      }),
    next(except) {
      for (const [key, line] of lines) {
        if (except?.has(key)) continue
        line[0]?.enter()
        // The rest of the line waits at the end.
        const rest = lines.get(key)
        if (rest !== undefined && lines.delete(key)) lines.set(key, rest)
        return key
      }
      return undefined
    },
    close() {
      isClosed = true
      for (const waiting of [...lines.values()].flat()) waiting.refuse('closed')
    },
  }
}
