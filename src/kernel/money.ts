// Exact amounts (DOMAIN 3.2): a JSON number outside, an integer of ten-thousandths inside, never arithmetic on floats.
import { type RawBuilder, sql } from 'kysely'

const scale = 10_000
const largest = 99_999_999_999_9999

/** The stored integer of a number with at most 4 decimals. Read from its text, so 0.1 is exactly 1000. */
export function toScaled(value: number): number {
  const text = String(value)
  const match = /^(-?)(\d+)(?:\.(\d{1,4}))?$/.exec(text)
  if (!match) throw new RangeError(`${text} is not an amount with at most 4 decimals.`)
  const [, sign, whole = '0', part = ''] = match
  const scaled = Number(whole + part.padEnd(4, '0'))
  return sign ? -scaled : scaled
}

/** The number of a stored integer; the nearest double prints as the same decimal. */
export const fromScaled = (scaled: number): number => scaled / scale

/** The number of a sum of stored integers, exact beyond what a double counts in ones. */
export const totalOf = (scaled: readonly number[]): number =>
  fromBig(scaled.reduce((sum, each) => sum + BigInt(each), 0n))

/** price × quantity, or undefined when the product is larger than any amount can be. */
export function times(scaledPrice: number, quantity: number): number | undefined {
  const product = BigInt(scaledPrice) * BigInt(quantity)
  return product > BigInt(largest) ? undefined : Number(product)
}

/** A sum that cannot overflow: whole units and ten-thousandths are added apart, as text `units|parts`. */
export const sumOf = (ref: string): RawBuilder<string> =>
  sql<string>`cast(coalesce(sum(${sql.ref(ref)} / 10000), 0) as text) || '|' || cast(coalesce(sum(${sql.ref(ref)} % 10000), 0) as text)`

/** The number of a `sumOf`. */
export function fromSum(text: string): number {
  const [units = '0', parts = '0'] = text.split('|')
  return fromBig(BigInt(units) * BigInt(scale) + BigInt(parts))
}

function fromBig(scaled: bigint): number {
  const absolute = scaled < 0n ? -scaled : scaled
  const parts = String(absolute % BigInt(scale)).padStart(4, '0')
  return Number(`${scaled < 0n ? '-' : ''}${absolute / BigInt(scale)}.${parts}`)
}
