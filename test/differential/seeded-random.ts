// Replaces the randomness of this process by a seeded generator, so that two servers that do the
// same work make the same tokens, form ids, nonces and request ids.
import crypto from 'node:crypto'
import { syncBuiltinESMExports } from 'node:module'
import { type Random, randomOf } from '../fuzz/random.ts'

export interface SeededRandom {
  /** From now on all random values depend on these two numbers alone. */
  restart(seed: number, index: number): void
  /** Brings the randomness of Node.js back. */
  end(): void
}

export function seedRandomness(): SeededRandom {
  const { randomBytes, randomUUID } = crypto
  const { random: mathRandom } = Math
  const getRandomValues = globalThis.crypto.getRandomValues
  // Of their own, because a repeated transaction of PostgreSQL draws another UUID for its lock.
  let [source, uuids]: [Random, Random] = [randomOf(0, 0), randomOf(1, 0)]
  const bytes = (size: number, callback?: (error: Error | null, bytes: Buffer) => void): Buffer | undefined => {
    const drawn = source.bytes(size)
    if (!callback) return drawn
    setImmediate(callback, null, drawn)
    return undefined
  }
  const uuid = (): string => {
    const text = uuids.bytes(16).toString('hex')
    return [
      text.slice(0, 8),
      text.slice(8, 12),
      `4${text.slice(13, 16)}`,
      `8${text.slice(17, 20)}`,
      text.slice(20),
    ].join('-')
  }
  Object.assign(crypto, { randomBytes: bytes, randomUUID: uuid })
  // The package uuid draws from here.
  globalThis.crypto.getRandomValues = (array) => {
    if (array instanceof Uint8Array) array.set(uuids.bytes(array.length))
    return array
  }
  // The pauses between two attempts of a transaction are the only use that differs between engines.
  Math.random = () => 0.5
  syncBuiltinESMExports()
  return {
    restart: (seed, index) => {
      source = randomOf(seed, index)
      uuids = randomOf(seed + 1, index)
    },
    end: () => {
      Object.assign(crypto, { randomBytes, randomUUID })
      globalThis.crypto.getRandomValues = getRandomValues
      Math.random = mathRandom
      syncBuiltinESMExports()
    },
  }
}
