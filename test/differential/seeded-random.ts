// Replaces the random functions of this process by a seeded generator, and its stopwatch by one
// that stands still. Two servers that do the same work then generate the same tokens, form ids,
// nonces and request ids, and take their batches in the same order.
import crypto from 'node:crypto'
import { syncBuiltinESMExports } from 'node:module'
import { type Random, randomOf } from '../fuzz/random.ts'

export interface SeededRandom {
  /** Makes all later random values depend only on these two numbers. */
  restart(seed: number, index: number): void
  /** Restores the functions of Node.js. */
  end(): void
}

export function seedRandomness(): SeededRandom {
  const { randomBytes, randomUUID } = crypto
  const { random: mathRandom } = Math
  const getRandomValues = globalThis.crypto.getRandomValues
  // UUIDs have their own generator, because a retried transaction of PostgreSQL draws another UUID
  // for its lock.
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
  // The package uuid uses this function.
  globalThis.crypto.getRandomValues = (array) => {
    if (array instanceof Uint8Array) array.set(uuids.bytes(array.length))
    return array
  }
  // Constant, because the pauses between the attempts of a PostgreSQL transaction would draw
  // numbers that SQLite does not draw.
  Math.random = () => 0.5
  // Constant, because batches adapt to the time that the last one took. Event consumers and jobs
  // would then run in another order on the slower engine.
  const { now } = performance
  performance.now = () => 0
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
      performance.now = now
      syncBuiltinESMExports()
    },
  }
}
