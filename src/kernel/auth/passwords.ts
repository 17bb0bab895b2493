// Password hashing: argon2id on its own threads, a bounded number at a time (DOMAIN 6.3, DESIGN 8). Others wait in two lines, up to
// two seconds.
import { availableParallelism } from 'node:os'
import { argon2id, hash, needsRehash, verify } from 'argon2'
import type { Config } from '../../config/config.ts'
import { Problem } from '../errors.ts'

const atOnce = Math.max(1, availableParallelism() - 1)
const maxWaitMs = 2_000
/** In each line. How long one waits bounds them as well; this bounds the memory. */
const maxWaiting = 1_000
let running = 0
/** Those who come from where somebody has signed in before do not stand behind strangers, who may be many. */
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

/** Resolves with a place. Throws 429 after two seconds without one. */
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

/** To the first of each line in turn. A place that is handed over is never free in between. */
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
 * The hash to store, with its parameters in it, for somebody who has proven who they are. Never call it inside a transaction: it takes
 * tens of milliseconds.
 */
export const hashPassword = (config: Config, password: string): Promise<string> =>
  inTurn(true, () => hash(password, parameters(config)))

// What an unknown e-mail is compared with, so that it takes as long as a known one. One per set of parameters.
const dummyHashes = new Map<number, string>()

async function decoyOf(config: Config): Promise<string> {
  const decoy =
    dummyHashes.get(config.passwordMemoryKiB) ?? (await hash('no account has this password', parameters(config)))
  dummyHashes.set(config.passwordMemoryKiB, decoy)
  return decoy
}

interface Attempt {
  /** Null where there is no account or no password: compared with a decoy, so that it takes as long. */
  stored: string | null
  password: string
  /** Whether it comes from a network from which somebody has signed in before. */
  isKnown: boolean
}

/** Whether the password is right. Throws 429 when there is no turn within two seconds. */
export async function verifyPassword(
  config: Config,
  { stored, password, isKnown }: Attempt,
): Promise<{ right: boolean; outdated: boolean }> {
  const isRight = await inTurn(isKnown, async () => verify(stored ?? (await decoyOf(config)), password))
  const right = stored !== null && isRight
  return { right, outdated: right && needsRehash(stored, parameters(config)) }
}
