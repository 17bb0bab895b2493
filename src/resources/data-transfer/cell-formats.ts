// Converts numbers, dates and flags from the notations that files use to the notation of the API.
// Any other text stays unchanged, and the validator then refuses it.
import type { Schema } from '../../contract/types.ts'
import { fold } from '../../kernel/values/format.ts'

export type DateFormat = Schema<'ImportDateFormat'>
export type DecimalSeparator = Schema<'ImportDecimalSeparator'>

/**
 * The formats of dates and numbers in the file. With null, only the notation of the API is read.
 */
export interface CellFormats {
  date: DateFormat | null
  decimal: DecimalSeparator | null
  /**
   * Whether the point in a number such as `1.234` is always the decimal separator, even if
   * `decimal` is a comma. True for workbooks, which store numbers and not formatted text.
   */
  hasPlainNumbers: boolean
}

/** Matches a date of three numbers and any text after it, which may be a time. */
const threeNumbers = /^(\d{1,4})[./\- ]+(\d{1,2})[./\- ]+(\d{1,4})(?:,?[ T]+(.+))?$/

/** Returns the three numbers of a date as written, or null for a text of another form. */
export function dateParts(text: string): [string, string, string] | null {
  const [, first, second, third] = threeNumbers.exec(text.trim()) ?? []
  return first && second && third ? [first, second, third] : null
}

/** Two-digit years from 69 on are in the 20th century, as in POSIX `strptime`. */
const firstYearOf1900 = 69

/** Returns the year in four digits: 69 to 99 are 1969 to 1999, and 00 to 68 are 2000 to 2068. */
const wholeYear = (year: string): string =>
  year.length === 2 ? `${Number(year) >= firstYearOf1900 ? '19' : '20'}${year}` : year

/** Rewrites a date, with or without a time, as `2026-03-01 14:30`. */
export function readFormattedDate(text: string, format: DateFormat | null): string {
  const [, first = '', second = '', third = '', rest] = threeNumbers.exec(text.trim()) ?? []
  if (format === null || first === '' || isIso(text)) return text
  const [day, month, written] = {
    dmy: [first, second, third],
    mdy: [second, first, third],
    ymd: [third, second, first],
  }[format] as [string, string, string]
  const year = wholeYear(written)
  if (year.length !== 4 || day.length > 2 || month.length > 2) return text
  const date = `${year}-${month.padStart(2, '0')}-${day.padStart(2, '0')}`
  if (rest === undefined) return date
  const time = timeOf(rest)
  return time === undefined ? text : `${date} ${time}`
}

/** Returns whether a text begins with a date such as 2026-03-01, which is not ambiguous. */
export const isIso = (text: string): boolean => /^\d{4}-\d\d-\d\d(?!\d)/.test(text.trim())

/** Converts a time of day to the 24-hour clock. Returns undefined for any other text. */
function timeOf(text: string): string | undefined {
  const [, hour, minutes, half] = /^(\d{1,2})(:\d{2}(?::\d{2})?)(?:\s*([ap])\.?m\.?)?$/i.exec(text.trim()) ?? []
  if (hour === undefined) return undefined
  if (half === undefined) return `${hour.padStart(2, '0')}${minutes}`
  if (Number(hour) < 1 || Number(hour) > 12) return undefined
  const inDay = (Number(hour) % 12) + (half.toLowerCase() === 'p' ? 12 : 0)
  return `${String(inDay).padStart(2, '0')}${minutes}`
}

/**
 * Matches sign, integer digits and decimals, by decimal separator. The integer digits may be
 * grouped by the opposite separator, spaces or apostrophes.
 */
const numbers: Readonly<Record<DecimalSeparator, RegExp>> = {
  '.': /^([-+]?)(\d+|\d{1,3}(?:,\d{3})+|\d{1,3}(?:[ \u00a0\u202f'’]\d{3})+)(?:\.(\d+))?$/,
  ',': /^([-+]?)(\d+|\d{1,3}(?:\.\d{3})+|\d{1,3}(?:[ \u00a0\u202f'’]\d{3})+)(?:,(\d+))?$/,
}

export function withoutCurrency(text: string): string {
  const trimmed = text.trim()
  const number = trimmed.replace(/^([-+]?)\p{Sc}\s*/u, '$1')
  return number === trimmed ? trimmed.replace(/\p{Sc}$/u, '').trimEnd() : number
}

/** Rewrites a number such as `1.234,50 €` as `1234.50`. */
export function readFormattedNumber(text: string, { decimal, hasPlainNumbers }: CellFormats): string {
  if (decimal === null || (hasPlainNumbers && /^-?\d+(\.\d+)?$/.test(text.trim()))) return text
  const [, sign, whole, decimals] = numbers[decimal].exec(withoutCurrency(text)) ?? []
  if (whole === undefined) return text
  const digits = whole.replace(/\D/g, '')
  return `${sign === '-' ? '-' : ''}${digits}${decimals === undefined ? '' : `.${decimals}`}`
}

const yes = 'yes y true t on 1 x ✓ ✔ ja j wahr oui vrai si verdadero vero sim verdadeiro tak prawda ano да'.split(' ')
const no = 'no n false f off 0 nein falsch non faux falso nao nie falsz ne нет'.split(' ')
const flags = new Map([...yes.map((word) => [word, true] as const), ...no.map((word) => [word, false] as const)])

/** Converts words for yes and no, in English and some other languages, to a boolean. */
export const readFlag = (text: string): unknown =>
  flags.get(fold(text.trim()).normalize('NFKD').replaceAll(/\p{M}/gu, '')) ?? text
