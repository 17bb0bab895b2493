// The order of commits: from its first row in the event log to its commit, a transaction holds the
// row of the table commit_order. A process that stands still meanwhile would stop the commits of
// all processes, so the server ends its transaction after a short pause.
import { setTimeout as sleep } from 'node:timers/promises'

/**
 * The longest pause between two statements of a transaction. Then the server ends it. A transaction
 * with `isLong` may pause longer, until it enters the order.
 */
export const maxPauseInTransactionMs = 2_000

export const enterCommitOrder = `select
  set_config('idle_in_transaction_session_timeout', '${maxPauseInTransactionMs}', true)
  from (select id from commit_order for update) as entered`

/**
 * The longest time that a transaction waits for the others of its process before it waits for the
 * lock on the server, where deadlocks are detected.
 */
const maxTurnMs = 1_000

/** Gives the transactions of a process their turn to enter the order. */
export interface CommitOrder {
  /** Waits for a turn. The returned function ends the turn; repeated calls do nothing. */
  turn(): Promise<() => void>
}

/**
 * At most one transaction of the process waits on the server. Otherwise a process that stands still
 * would get the lock again for each waiting transaction, and each would have to time out.
 */
export function createCommitOrder(): CommitOrder {
  let last: Promise<void> = Promise.resolve()
  return {
    async turn() {
      const before = last
      const { promise, resolve } = withResolvers()
      last = before.then(() => promise)
      const timer = new AbortController()
      await Promise.race([
        before,
        sleep(maxTurnMs, undefined, { ref: false, signal: timer.signal }).catch(() => undefined),
      ])
      timer.abort()
      return resolve
    },
  }
}

/** `Promise.withResolvers`, which Node 20 lacks. */
function withResolvers(): { promise: Promise<void>; resolve: () => void } {
  let resolve = (): void => undefined
  const promise = new Promise<void>((settle) => {
    resolve = settle
  })
  return { promise, resolve }
}
