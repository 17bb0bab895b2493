// Hashes and verifies passwords with argon2id in threads, with limited concurrency. Callers wait
// in one of two queues, for at most two seconds.
import { availableParallelism } from 'node:os'
import { argon2id, hash, needsRehash, verify } from 'argon2'
import type { Config } from '../../config/config.ts'
import { Problem } from '../errors.ts'

const atOnce = Math.max(1, availableParallelism() - 1)
const maxWaitMs = 2_000
/** The maximum number of waiting callers per queue. The number limits the memory use. */
const maxWaiting = 1_000
/**
 * The number of hashes being computed. `p-limit` does not fit: it has only one queue, and a caller
 * cannot leave that queue.
 */
let running = 0
/**
 * The two queues of waiting callers. Networks from which someone has signed in before use `known`,
 * so that many attempts from unknown networks do not delay them.
 */
const lines = { known: [] as (() => void)[], unknown: [] as (() => void)[] }
let wasKnown = false

const tooMany = (): Problem =>
  new Problem('rate_limited', 'Too many people are signing in at once.', { headers: { 'retry-after': '1' } })

async function inTurn<T>(isKnown: boolean, work: () => Promise<T>): Promise<T> {
  if (running >= atOnce) await waitIn(isKnown ? lines.known : lines.unknown)
  else running++
  try {
    return await work()
  } finally {
    handOver()
  }
}

/** Waits for a slot. Throws 429 after two seconds. */
function waitIn(line: (() => void)[]): Promise<void> {
  if (line.length >= maxWaiting) throw tooMany()
  return new Promise((resolve, reject) => {
    const enter = (): void => {
      clearTimeout(timer)
      resolve()
    }
    const timer = setTimeout(() => {
      line.splice(line.indexOf(enter), 1)
      reject(tooMany())
    }, maxWaitMs)
    line.push(enter)
  })
}

/**
 * Passes a released slot to the next waiting caller, alternating between the two queues. The slot
 * stays counted as used meanwhile, so a new caller cannot take it.
 */
function handOver(): void {
  const [first, second] = wasKnown ? [lines.unknown, lines.known] : [lines.known, lines.unknown]
  const line = first.length > 0 ? first : second
  const next = line.shift()
  wasKnown = line === lines.known
  if (next) next()
  else running--
}

const parameters = (config: Config) =>
  ({ type: argon2id, memoryCost: config.passwordMemoryKiB, timeCost: 2, parallelism: 1 }) as const

/**
 * Returns the hash to store, which includes the argon2id parameters. Must be called only for an
 * authenticated caller, because it waits in the queue `known`. Must not be called inside a
 * transaction, because hashing takes tens of milliseconds.
 */
export const hashPassword = (config: Config, password: string): Promise<string> =>
  inTurn(true, () => hash(password, parameters(config)))

interface Attempt {
  /** The stored hash; null when there is no account or the account has no password. */
  stored: string | null
  password: string
  /** Whether an account has signed in from this network before. */
  isKnown: boolean
}

/**
 * Returns whether the password is right, and whether its hash is outdated. Without a stored hash it
 * hashes the password anyway, so that the response time does not reveal whether the account exists.
 * Throws 429 when no slot is free within two seconds.
 */
export async function verifyPassword(
  config: Config,
  { stored, password, isKnown }: Attempt,
): Promise<{ right: boolean; outdated: boolean }> {
  if (stored === null) {
    await inTurn(isKnown, () => hash(password, parameters(config)))
    return { right: false, outdated: false }
  }
  const right = await inTurn(isKnown, () => verify(stored, password))
  return { right, outdated: right && needsRehash(stored, parameters(config)) }
}
