// Decimal numbers of any length as they are compared: exactly, from their digits. Numeric texts may have more digits than an
// amount, so kernel/values/money.ts does not reach.
const pattern = /^([+-]?)(\d+)(?:\.(\d+))?(?:e([+-]?\d{1,3}))?$/i

/** The digits as one whole number, and how many of them stand behind the point. */
interface Decimal {
  digits: bigint
  places: number
}

/** Undefined for what is no number. */
function read(value: unknown): Decimal | undefined {
  const match = pattern.exec(String(value).trim())
  if (!match) return undefined
  const [, sign, whole = '0', part = '', exponent = '0'] = match
  const digits = BigInt(`${whole}${part}`)
  return { digits: sign === '-' ? -digits : digits, places: part.length - Number(exponent) }
}

/** Less than, equal to or greater than zero as `a` is less than, equal to or greater than `b`; undefined when one is no number. */
export function compareDecimals(a: unknown, b: unknown): number | undefined {
  const [one, other] = [read(a), read(b)]
  if (!one || !other) return undefined
  const places = Math.max(one.places, other.places)
  const [left, right] = [one, other].map(({ digits, places: own }) => digits * 10n ** BigInt(places - own)) as [
    bigint,
    bigint,
  ]
  return left < right ? -1 : left > right ? 1 : 0
}
