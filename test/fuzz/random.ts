// A seeded random generator. Each request has its own sequence, derived from the seed of the run
// and its index, so that it can be generated again without the requests before it.

export interface Random {
  /** Returns a number from 0 to below 1. */
  next(): number
  /** Returns an integer from `low` to `high`, inclusive. */
  whole(low: number, high: number): number
  chance(share: number): boolean
  pick<T>(from: readonly T[]): T
  /** Returns one of the keys, by weight. */
  weighted<K extends string>(weights: Record<K, number>): K
  /** Returns a mostly small integer, such as 0, 0, 1, 0, 2, 0. */
  few(most: number): number
  bytes(length: number): Buffer
}

const mix = (value: number): number => {
  let mixed = Math.imul(value ^ (value >>> 16), 0x85ebca6b)
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35)
  return (mixed ^ (mixed >>> 16)) >>> 0
}

/** Returns the generator of a request (sfc32, seeded with both numbers). */
export function randomOf(seed: number, index: number): Random {
  let [a, b, c, counter] = [
    mix(seed + 0x9e3779b9),
    mix(index + 0x7f4a7c15),
    mix(seed ^ Math.imul(index, 0x27d4eb2f)),
    1,
  ]
  const step = (): number => {
    const sum = (a + b + counter) | 0
    counter = (counter + 1) | 0
    a = b ^ (b >>> 9)
    b = (c + (c << 3)) | 0
    c = (((c << 21) | (c >>> 11)) + sum) | 0
    return sum >>> 0
  }
  for (let round = 0; round < 12; round++) step()
  const next = (): number => step() / 0x1_0000_0000
  const whole = (low: number, high: number): number => low + Math.floor(next() * (high - low + 1))
  const pick = <T>(from: readonly T[]): T => from[whole(0, from.length - 1)] as T
  return {
    next,
    whole,
    pick,
    chance: (share) => next() < share,
    weighted(weights) {
      const entries = Object.entries(weights) as [keyof typeof weights, number][]
      let at = next() * entries.reduce((sum, [, weight]) => sum + weight, 0)
      for (const [key, weight] of entries) {
        at -= weight
        if (at < 0) return key
      }
      return (entries.at(-1) as [keyof typeof weights, number])[0]
    },
    few: (most) => Math.floor(next() ** 3 * (most + 1)),
    bytes: (length) => Buffer.from(Uint8Array.from({ length }, () => step() & 255)),
  }
}
