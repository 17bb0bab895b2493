// Hashes and verifies passwords with argon2id in threads, with limited concurrency. Callers wait
// in one of two queues, for at most 15 seconds.
import { availableParallelism } from 'node:os'
import { argon2id, hash, needsRehash, verify } from 'argon2'
import type { Config } from '../../config/config.ts'
import { Problem } from '../errors.ts'
import { createFairQueue } from '../runtime/fair-queue.ts'

const atOnce = Math.max(1, availableParallelism() - 1)
/** Together with the longest wait of attempts.ts, less than the 30 seconds of a request. */
const limits = { maxWaitMs: 15_000, maxWaiting: 1_000 }

/** Returns the 429 of a caller who waited too long to sign in. */
export const tooManySignIns = (): Problem =>
  new Problem('rate_limited', 'Too many people are signing in at once.', { headers: { 'retry-after': '1' } })

/**
 * The number of hashes being computed. `p-limit` does not fit: it has only one queue, and a caller
 * cannot leave that queue.
 */
let running = 0
/**
 * The two queues of waiting callers. Signed-in callers, and callers with a device token of the
 * account, use `known`, so that strangers do not delay them. In each queue, the networks take
 * turns.
 */
const queues = {
  known: createFairQueue(limits, tooManySignIns),
  unknown: createFairQueue(limits, tooManySignIns),
}
let wasKnown = false

/** The place that a caller waits in. */
export interface Waiting {
  isKnown: boolean
  /** The network or device of the caller. */
  place: string
}

const signedIn: Waiting = { isKnown: true, place: 'signed in' }

async function inTurn<T>({ isKnown, place }: Waiting, work: () => Promise<T>): Promise<T> {
  if (running >= atOnce) await (isKnown ? queues.known : queues.unknown).wait(place)
  else running++
  try {
    return await work()
  } finally {
    handOver()
  }
}

/**
 * Passes a released slot to the next waiting caller, alternating between the two queues. The slot
 * stays counted as used meanwhile, so a new caller cannot take it.
 */
function handOver(): void {
  const [first, second] = wasKnown ? [queues.unknown, queues.known] : [queues.known, queues.unknown]
  wasKnown = (first.size() > 0 ? first : second) === queues.known
  if (first.next() === undefined && second.next() === undefined) running--
}

const parameters = (config: Config) =>
  ({ type: argon2id, memoryCost: config.passwordMemoryKiB, timeCost: 2, parallelism: 1 }) as const

/**
 * Returns the hash to store, which includes the argon2id parameters. Must be called only for an
 * authenticated caller, because it waits in the queue `known`. Must not be called inside a
 * transaction, because hashing takes tens of milliseconds.
 */
export const hashPassword = (config: Config, password: string): Promise<string> =>
  inTurn(signedIn, () => hash(password, parameters(config)))

interface Attempt {
  /** The stored hash; null when there is no account or the account has no password. */
  stored: string | null
  password: string
  /** The caller; a signed-in caller when it is missing. */
  from?: Waiting
}

/**
 * Returns whether the password is right, and whether its hash is outdated. Without a stored hash it
 * hashes the password anyway, so that the response time does not reveal whether the account exists.
 * Throws 429 when no slot is free within 15 seconds.
 */
export async function verifyPassword(
  config: Config,
  { stored, password, from = signedIn }: Attempt,
): Promise<{ right: boolean; outdated: boolean }> {
  if (stored === null) {
    await inTurn(from, () => hash(password, parameters(config)))
    return { right: false, outdated: false }
  }
  const right = await inTurn(from, () => verify(stored, password))
  return { right, outdated: right && needsRehash(stored, parameters(config)) }
}
