// Reads numbers and amounts as people write them: `1.234,50 €`, `1’234.50` and `(12)`.

export type DecimalSeparator = '.' | ','

/** Returns the decimal separator of a locale. */
export function decimalSeparatorOf(locale: string): DecimalSeparator {
  const parts = new Intl.NumberFormat(locale, { numberingSystem: 'latn' }).formatToParts(1.5)
  return parts.find(({ type }) => type === 'decimal')?.value === ',' ? ',' : '.'
}

/**
 * Matches sign, integer digits and decimals, by decimal separator. The integer digits may be
 * grouped by the opposite separator, spaces or apostrophes, in Indian numbers after two digits.
 */
const numbers: Readonly<Record<DecimalSeparator, RegExp>> = {
  '.': /^([-+]?)(\d+|\d{1,3}(?:,\d{3})+|\d{1,2}(?:,\d{2})+,\d{3}|\d{1,3}(?:[ \u00a0\u202f'’]\d{3})+)(?:\.(\d+|-))?$/,
  ',': /^([-+]?)(\d+|\d{1,3}(?:\.\d{3})+|\d{1,3}(?:[ \u00a0\u202f'’]\d{3})+)(?:,(\d+|-))?$/,
}

const currencyMark = String.raw`(?:\p{Sc}|\b[A-Z]{2}\$|\b[A-Z]{3}\b\$?|US\$|Rs\.?|Fr\.|kr\.?|zł|Kč|R\$)`
const currencyBefore = new RegExp(String.raw`^([-+]?)(${currencyMark})[\s\u00a0\u202f]*(?=[-+\d])`, 'u')
const currencyAfter = new RegExp(String.raw`[\s\u00a0\u202f]*(${currencyMark})$`, 'u')

/** Longer texts are neither amounts nor dates, and take too long to match. */
export const maxFormattedLength = 100

export function withoutCurrency(text: string): string {
  const trimmed = text.trim()
  if (trimmed.length > maxFormattedLength) return trimmed
  const number = trimmed.replace(currencyBefore, '$1')
  return number === trimmed ? trimmed.replace(currencyAfter, '').trimEnd() : number
}

/** The symbols that only one currency has. */
const symbols: Readonly<Record<string, string>> = {
  ...{ '€': 'EUR', '£': 'GBP', '₹': 'INR', '₽': 'RUB', '₩': 'KRW', '₺': 'TRY', '₪': 'ILS', '฿': 'THB' },
  ...{ zł: 'PLN', Kč: 'CZK', R$: 'BRL', US$: 'USD' },
}

/** Returns the code of the currency that a text such as `CHF 20` names, else undefined. */
export function currencyCodeIn(text: string): string | undefined {
  if (text.length > maxFormattedLength) return undefined
  const [, , before] = currencyBefore.exec(text.trim()) ?? []
  const [, after] = currencyAfter.exec(text.trim()) ?? []
  const mark = before ?? after
  return mark === undefined ? undefined : (symbols[mark] ?? (/^[A-Z]{3}$/.test(mark) ? mark : undefined))
}

/**
 * Returns a number such as `1.234,50 €` in the notation of JSON, `1234.50`. Returns null for a text
 * that is none with this decimal separator: `1.5` is none with a comma, and `1.234` is 1234.
 */
export function readNumber(text: string, decimal: DecimalSeparator): string | null {
  const bare = withoutCurrency(text)
  // Accountants write a negative amount in brackets.
  const [, bracketed] = /^\((.+)\)$/.exec(bare) ?? []
  const [, sign, whole, decimals] = numbers[decimal].exec(withoutCurrency(bracketed ?? bare)) ?? []
  if (whole === undefined) return null
  const digits = whole.replace(/\D/g, '')
  const isNegative = sign === '-' || bracketed !== undefined
  return `${isNegative ? '-' : ''}${digits}${decimals === undefined || decimals === '-' ? '' : `.${decimals}`}`
}
