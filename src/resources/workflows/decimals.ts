// Compares decimal numbers of any length exactly. Attributes with numeric text may have more digits
// than amounts of money, so kernel/values/money.ts cannot compare them.
const decimalPattern = /^([+-]?)(\d+)(?:\.(\d+))?(?:e([+-]?\d{1,3}))?$/i

/**
 * A decimal number: all digits as one integer, and the number of digits after the decimal point.
 */
interface Decimal {
  digits: bigint
  places: number
}

/** Returns the parsed decimal number; undefined for any other text. */
function parseDecimal(value: unknown): Decimal | undefined {
  const match = decimalPattern.exec(String(value).trim())
  if (!match) return undefined
  const [, sign, whole = '0', part = '', exponent = '0'] = match
  const digits = BigInt(`${whole}${part}`)
  return { digits: sign === '-' ? -digits : digits, places: part.length - Number(exponent) }
}

/**
 * Returns a negative number, zero or a positive number when `a` is less than, equal to or greater
 * than `b`. Returns undefined when `a` or `b` is not a number.
 */
export function compareDecimals(a: unknown, b: unknown): number | undefined {
  const [one, other] = [parseDecimal(a), parseDecimal(b)]
  if (!one || !other) return undefined
  const places = Math.max(one.places, other.places)
  const [left, right] = [one, other].map(({ digits, places: own }) => digits * 10n ** BigInt(places - own)) as [
    bigint,
    bigint,
  ]
  return left < right ? -1 : left > right ? 1 : 0
}
