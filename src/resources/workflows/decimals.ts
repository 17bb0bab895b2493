// Compares decimal numbers of any length exactly, digit by digit. Numeric texts may have more
// digits than amounts, so kernel/values/money.ts cannot compare them.
const decimalPattern = /^([+-]?)(\d+)(?:\.(\d+))?(?:e([+-]?\d{1,3}))?$/i

/** The digits as one integer, and how many of them follow the decimal point. */
interface Decimal {
  digits: bigint
  places: number
}

/** The parsed decimal; undefined for other text. */
function parseDecimal(value: unknown): Decimal | undefined {
  const match = decimalPattern.exec(String(value).trim())
  if (!match) return undefined
  const [, sign, whole = '0', part = '', exponent = '0'] = match
  const digits = BigInt(`${whole}${part}`)
  return { digits: sign === '-' ? -digits : digits, places: part.length - Number(exponent) }
}

/**
 * Negative, zero or positive as `a` is less than, equal to or greater than `b`; undefined when one
 * of them is not a number.
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
