// Exact amounts (DOMAIN 3.2): JSON numbers outside, integers of ten-thousandths inside, and never
// arithmetic on floats.
import { type RawBuilder, sql } from 'kysely'

const scale = 10_000
const largest = 99_999_999_999_9999

/**
 * Returns the stored integer of a number with at most 4 decimals. It parses the number's text, so
 * 0.1 is exactly 1000.
 */
export function toScaled(value: number): number {
  const text = String(value)
  const match = /^(-?)(\d+)(?:\.(\d{1,4}))?$/.exec(text)
  if (!match) throw new RangeError(`${text} is not an amount with at most 4 decimals.`)
  const [, sign, whole = '0', part = ''] = match
  const scaled = Number(whole + part.padEnd(4, '0'))
  return sign ? -scaled : scaled
}

/** Returns the stored integer of an optional field, or undefined. */
export const scaled = (sent: number | undefined): number | undefined =>
  sent === undefined ? undefined : toScaled(sent)

/** Returns the number of a stored integer; the nearest double prints as the same decimal. */
export const fromScaled = (scaled: number): number => scaled / scale

/** Returns the number of a sum of stored integers. The sum is exact beyond 2^53. */
export const totalOf = (scaled: readonly number[]): number =>
  fromBig(scaled.reduce((sum, each) => sum + BigInt(each), 0n))

/** Returns price × quantity, or undefined when the product exceeds the largest amount. */
export function times(scaledPrice: number, quantity: number): number | undefined {
  const product = BigInt(scaledPrice) * BigInt(quantity)
  return product > BigInt(largest) ? undefined : Number(product)
}

/** Returns whether a scaled integer of any size is an amount that can be stored and shown. */
export const isAmount = (scaled: bigint): boolean => scaled <= BigInt(largest) && scaled >= -BigInt(largest)

/**
 * Returns the SQL of a sum that cannot overflow: it adds whole units and ten-thousandths separately
 * and returns the text `units|parts`.
 */
export const sumOf = (ref: string): RawBuilder<string> =>
  sql<string>`cast(coalesce(sum(${sql.ref(ref)} / 10000), 0) as text) || '|' || cast(coalesce(sum(${sql.ref(ref)} % 10000), 0) as text)`

/**
 * Returns the sort expressions for a `sumOf` of non-negative amounts: its whole units, then the
 * rest.
 */
export const sumOrder = (ref: string): [RawBuilder<number>, RawBuilder<number>] => [
  sql<number>`sum(${sql.ref(ref)} / 10000) + cast(sum(${sql.ref(ref)} % 10000) as bigint) / 10000`,
  sql<number>`sum(${sql.ref(ref)} % 10000) % 10000`,
]

/** Returns the number of a `sumOf` text. */
export const fromSum = (text: string): number => fromBig(scaledSum(text))

/** Returns the exact scaled integer of a `sumOf` text, for further arithmetic. */
export function scaledSum(text: string): bigint {
  const [units = '0', parts = '0'] = text.split('|')
  return BigInt(units) * BigInt(scale) + BigInt(parts)
}

/** Returns the total of each sum times its percentage, rounded once to 4 decimals. */
export const weighted = (parts: readonly { scaled: bigint; percent: number }[]): number =>
  fromBig(
    divided(
      parts.reduce((total, { scaled, percent }) => total + scaled * BigInt(percent), 0n),
      100n,
    ),
  )

/** Returns a quotient rounded to the nearest integer, halves away from zero. */
export function divided(dividend: bigint, divisor: bigint): bigint {
  const [above, below] = divisor < 0n ? [-dividend, -divisor] : [dividend, divisor]
  const twice = 2n * (above < 0n ? -above : above)
  const rounded = (twice + below) / (2n * below)
  return above < 0n ? -rounded : rounded
}

/** Returns the number of a scaled integer of any size. */
export function fromBig(scaled: bigint): number {
  const absolute = scaled < 0n ? -scaled : scaled
  const parts = String(absolute % BigInt(scale)).padStart(4, '0')
  return Number(`${scaled < 0n ? '-' : ''}${absolute / BigInt(scale)}.${parts}`)
}
