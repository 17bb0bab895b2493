// The order of commits: from its first row in the event log to its commit, a transaction holds the
// row of the table commit_order. A process that stands still meanwhile would stop the commits of
// all processes, so the server ends its transaction after a short pause.
import { setTimeout as sleep } from 'node:timers/promises'
import { lockTimeoutMs, type Pools } from './connection.ts'

/**
 * The longest pause between two statements of a transaction. Then the server ends it. A process
 * that stands still can hold the others up twice: with a transaction in the order, and then with
 * one that runs alone. Twice this pause is 2.2 seconds.
 */
export const maxPauseInTransactionMs = 1_100

export const enterCommitOrder = `select
  set_config('idle_in_transaction_session_timeout', '${maxPauseInTransactionMs}', true)
  from (select id from commit_order for update) as entered`

/**
 * The longest time that a transaction waits for the others of its process before it waits for the
 * lock on the server, where deadlocks are detected.
 */
const maxTurnMs = 1_000

/** Gives the transactions of a process their turns. */
export interface Turns {
  /** Waits for a turn. The returned function ends the turn; repeated calls do nothing. */
  take(): Promise<() => void>
}

export interface CommitOrder {
  /** For the row of commit_order. */
  entering: Turns
  /** For transactions that run alone. They hold no lock while they wait, so none deadlocks. */
  alone: Turns
}

const orders = new WeakMap<Pools, CommitOrder>()

/**
 * Returns the turns of the transactions of these pools. At most one of them waits on the server for
 * each lock. Otherwise a process that stands still would get the lock again for each waiting
 * transaction, and each would have to time out.
 */
export function commitOrderOf(pools: Pools): CommitOrder {
  const known = orders.get(pools) ?? { entering: createTurns(maxTurnMs), alone: createTurns(lockTimeoutMs) }
  orders.set(pools, known)
  return known
}

function createTurns(maxMs: number): Turns {
  let last: Promise<void> = Promise.resolve()
  return {
    async take() {
      const before = last
      const { promise, resolve } = withResolvers()
      last = before.then(() => promise)
      const timer = new AbortController()
      await Promise.race([before, sleep(maxMs, undefined, { ref: false, signal: timer.signal }).catch(() => undefined)])
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
