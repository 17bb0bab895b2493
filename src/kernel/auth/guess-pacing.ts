// Paces the sign-ins of an account that is being guessed. Callers without a device token of the
// account wait for their turn before the password is checked; no caller is refused because others
// guess. A network that has not failed at the account goes before all that have.
import { createTurnQueue, type TurnQueue } from '../runtime/turn-queue.ts'
import { tooManySignIns } from './passwords.ts'

/** The time in milliseconds between two checks for one account: at most 90,000 an hour. */
const everyMs = 40
/** The same for networks that have failed at the account within the last hour, all together. */
const everyAfterFailureMs = 1_000
const limits = { maxWaitMs: 12_000, maxWaiting: 1_000 }

interface Pace {
  fresh: TurnQueue
  failed: TurnQueue
  /** Whether the time after the last check is not over. */
  rests: boolean
  /** Whether the time after the last check for a network with failures is not over. */
  restsAfterFailure: boolean
}

/** The accounts with waiting callers, or with a check in the last second. */
const paces = new Map<string, Pace>()

/** Waits until a password of this account may be checked for this network. */
export async function waitForTurn(account: string, network: string, { hasFailed }: { hasFailed: boolean }) {
  const pace = paces.get(account) ?? {
    fresh: createTurnQueue(limits, tooManySignIns),
    failed: createTurnQueue(limits, tooManySignIns),
    rests: false,
    restsAfterFailure: false,
  }
  paces.set(account, pace)
  const turn = (hasFailed ? pace.failed : pace.fresh).wait(network)
  goOn(account, pace)
  await turn
}

/** Lets the next caller go on, unless the account rests. */
function goOn(account: string, pace: Pace): void {
  if (pace.rests) return
  if (pace.fresh.next() === undefined && !nextOfFailed(account, pace)) {
    if (!pace.restsAfterFailure) paces.delete(account)
    return
  }
  pace.rests = true
  setTimeout(() => {
    pace.rests = false
    goOn(account, pace)
  }, everyMs).unref()
}

function nextOfFailed(account: string, pace: Pace): boolean {
  if (pace.restsAfterFailure || pace.failed.next() === undefined) return false
  pace.restsAfterFailure = true
  setTimeout(() => {
    pace.restsAfterFailure = false
    goOn(account, pace)
  }, everyAfterFailureMs).unref()
  return true
}
