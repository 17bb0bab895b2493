// Exact arithmetic with amounts. An amount is a JSON number in the API, and an integer
// of ten-thousandths in the database and the code. No calculation uses floating-point numbers.
import { type Expression, type RawBuilder, sql } from 'kysely'

const scale = 10_000
const largest = 99_999_999_999_9999

/**
 * Returns the number of ten-thousandths in an amount with at most 4 decimals. Parses the decimal
 * text of the number, so 0.1 is exactly 1000.
 */
export function toScaled(value: number): number {
  const text = String(value)
  const match = /^(-?)(\d+)(?:\.(\d{1,4}))?$/.exec(text)
  if (!match) throw new RangeError(`${text} is not an amount with at most 4 decimals.`)
  const [, sign, whole = '0', part = ''] = match
  const scaled = Number(whole + part.padEnd(4, '0'))
  return sign ? -scaled : scaled
}

/** Returns `toScaled` of an amount, or undefined when none was sent. */
export const scaled = (sent: number | undefined): number | undefined =>
  sent === undefined ? undefined : toScaled(sent)

/** Converts a stored integer to an amount, which prints as the exact decimal. */
export const fromScaled = (scaled: number): number => scaled / scale

/** Returns the sum of stored integers as an amount. The addition is exact beyond 2^53. */
export const totalOf = (scaled: readonly number[]): number =>
  fromBig(scaled.reduce((sum, each) => sum + BigInt(each), 0n))

/** Returns whether an integer of ten-thousandths is within the limits of an amount. */
export const isAmount = (scaled: bigint): boolean => scaled <= BigInt(largest) && scaled >= -BigInt(largest)

/**
 * Returns SQL that sums a column without overflow. The SQL adds whole units and ten-thousandths
 * separately and yields the text `units|parts`.
 */
export function sumOf(column: string | Expression<unknown>): RawBuilder<string> {
  const each = operand(column)
  return sql<string>`cast(coalesce(sum(${each} / 10000), 0) as text) || '|' || cast(coalesce(sum(${each} % 10000), 0) as text)`
}

const operand = (column: string | Expression<unknown>) => (typeof column === 'string' ? sql.ref(column) : column)

/**
 * Returns two SQL expressions that sort by the sum of a column of non-negative amounts: the whole
 * units of the sum, then its ten-thousandths.
 */
export const sumOrder = (column: string | Expression<unknown>): [RawBuilder<number>, RawBuilder<number>] => {
  const each = operand(column)
  return [
    sql<number>`sum(${each} / 10000) + cast(sum(${each} % 10000) as bigint) / 10000`,
    sql<number>`sum(${each} % 10000) % 10000`,
  ]
}

/** Converts a text `units|parts` from `sumOf` to an amount. */
export const fromSum = (text: string): number => fromBig(scaledSum(text))

/**
 * Converts a text `units|parts` from `sumOf` to an integer of ten-thousandths, for exact
 * calculations.
 */
export function scaledSum(text: string): bigint {
  const [units = '0', parts = '0'] = text.split('|')
  return BigInt(units) * BigInt(scale) + BigInt(parts)
}

/** Multiplies each sum by its percentage and returns the total, rounded once to 4 decimals. */
export const weighted = (parts: readonly { scaled: bigint; percent: number }[]): number =>
  fromBig(
    divided(
      parts.reduce((total, { scaled, percent }) => total + scaled * BigInt(percent), 0n),
      100n,
    ),
  )

/** Returns a quotient rounded to the nearest integer. Halves are rounded away from zero. */
export function divided(dividend: bigint, divisor: bigint): bigint {
  const [above, below] = divisor < 0n ? [-dividend, -divisor] : [dividend, divisor]
  const twice = 2n * (above < 0n ? -above : above)
  const rounded = (twice + below) / (2n * below)
  return above < 0n ? -rounded : rounded
}

/** Converts an integer of ten-thousandths to an amount. */
export function fromBig(scaled: bigint): number {
  const absolute = scaled < 0n ? -scaled : scaled
  const parts = String(absolute % BigInt(scale)).padStart(4, '0')
  return Number(`${scaled < 0n ? '-' : ''}${absolute / BigInt(scale)}.${parts}`)
}

const units = new Map<string, bigint>()

/**
 * Returns the smallest amount that is printed in a currency (ISO 4217), in ten-thousandths: 100 for
 * USD, 10,000 for JPY, 10 for KWD.
 */
export function smallestUnit(currency: string): bigint {
  let unit = units.get(currency)
  if (unit === undefined) {
    const format = new Intl.NumberFormat('en', { style: 'currency', currency }).resolvedOptions()
    unit = 10n ** BigInt(Math.max(0, 4 - (format.maximumFractionDigits ?? 2)))
    units.set(currency, unit)
  }
  return unit
}

/** Returns a quotient rounded to a multiple of `unit`. Halves are rounded away from zero. */
export const dividedTo = (unit: bigint, dividend: bigint, divisor: bigint): bigint =>
  divided(dividend, divisor * unit) * unit
