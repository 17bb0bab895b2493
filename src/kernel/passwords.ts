// Password hashing: argon2id on its own threads, a bounded number at a time (DOMAIN 6.3, DESIGN 8).
import { availableParallelism } from 'node:os'
import { argon2id, hash, needsRehash, verify } from 'argon2'
import type { Config } from '../config.ts'
import { Problem } from './errors.ts'

const atOnce = Math.max(1, availableParallelism() - 1)
const mayWait = 100
let running = 0
const waiting: (() => void)[] = []

async function limited<T>(work: () => Promise<T>): Promise<T> {
  if (running >= atOnce) {
    if (waiting.length >= mayWait)
      throw new Problem('rate_limited', 'Too many people are signing in at once.', { headers: { 'retry-after': '1' } })
    // Whoever is done hands the place over: it is never free in between.
    await new Promise<void>((resolve) => waiting.push(resolve))
  } else running++
  try {
    return await work()
  } finally {
    const next = waiting.shift()
    if (next) next()
    else running--
  }
}

const parameters = (config: Config) =>
  ({ type: argon2id, memoryCost: config.passwordMemoryKiB, timeCost: 2, parallelism: 1 }) as const

/** The hash to store, with its parameters in it. Never call it inside a transaction: it takes tens of milliseconds. */
export const hashPassword = (config: Config, password: string): Promise<string> =>
  limited(() => hash(password, parameters(config)))

// What an unknown e-mail is compared with, so that it takes as long as a known one. One per set of parameters.
const decoys = new Map<number, Promise<string>>()

/** Whether the password is right; compares with a decoy when there is no hash, so that both take the same time. */
export async function verifyPassword(
  config: Config,
  stored: string | null,
  password: string,
): Promise<{ right: boolean; outdated: boolean }> {
  if (stored === null) {
    const memory = config.passwordMemoryKiB
    const decoy = decoys.get(memory) ?? hashPassword(config, 'no account has this password')
    decoys.set(memory, decoy)
    const known = await decoy
    await limited(() => verify(known, password))
    return { right: false, outdated: false }
  }
  const right = await limited(() => verify(stored, password))
  return { right, outdated: right && needsRehash(stored, parameters(config)) }
}
