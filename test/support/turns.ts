// Counts turns of the event loop, for tests that long work lets other work run between its parts.

export interface Turns {
  /** The number of turns since the start. */
  readonly count: number
  stop(): void
}

export function countTurns(): Turns {
  let count = 0
  const turn = (): void => {
    count++
    next = setImmediate(turn)
  }
  let next = setImmediate(turn)
  return {
    get count() {
      return count
    },
    stop: () => clearImmediate(next),
  }
}
