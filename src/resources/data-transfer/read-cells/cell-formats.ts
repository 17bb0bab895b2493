// Converts numbers, dates and flags from the notations that files use to the notation of the API.
// Any other text stays unchanged, and the validator then refuses it.
import { flagIn } from '../../../contract/input/flags.ts'
import type { Schema } from '../../../contract/types.ts'
import { fold } from '../../../kernel/values/format.ts'
import { type DecimalSeparator, maxFormattedLength, readNumber } from '../../../texts/numbers.ts'
import type { CountryReader } from './countries.ts'

export type DateFormat = Schema<'ImportDateFormat'>

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
  /** The language of the installation, for the names of months. */
  locale: string
  country: CountryReader
  /** The currency of the installation. */
  currency: string
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
export function readFormattedDate(
  text: string,
  { date: format, locale }: Pick<CellFormats, 'date' | 'locale'>,
): string {
  const [, bareYear, bareMonth, bareDay] = /^((?:19|20)\d\d)(0[1-9]|1[0-2])([0-3]\d)$/.exec(text.trim()) ?? []
  if (bareYear !== undefined) return `${bareYear}-${bareMonth}-${bareDay}`
  const named = namedMonthDate(text, locale)
  const [, first = '', second = '', third = '', rest] = named ?? threeNumbers.exec(text.trim()) ?? []
  // A date with the year in front has one order only.
  const order = named || first.length === 4 ? 'ymd' : format
  if (order === null || first === '' || isIso(text)) return isIso(text) ? isoWithTime(text) : text
  const [day, month, written] = {
    dmy: [first, second, third],
    mdy: [second, first, third],
    ymd: [third, second, first],
  }[order] as [string, string, string]
  const year = wholeYear(written)
  if (year.length !== 4 || day.length > 2 || month.length > 2) return text
  const date = `${year}-${month.padStart(2, '0')}-${day.padStart(2, '0')}`
  if (rest === undefined) return date
  const time = timeOf(rest)
  return time === undefined ? text : `${date} ${time}`
}

/** Rewrites the time of a date such as `2026-03-01 02:30 PM`, and its zone. */
function isoWithTime(text: string): string {
  const [, date, rest] = /^(\d{4}-\d\d-\d\d)[ T]+(\d.*)$/.exec(text.trim()) ?? []
  if (date === undefined || rest === undefined) return text
  const [, time, zone] = /^(\d{1,2}:\d\d(?::\d\d)?) +(UTC|GMT|Z|[+-]\d\d:?\d\d)$/.exec(rest) ?? []
  if (time !== undefined && zone !== undefined) {
    const offset = /^[A-Z]/.test(zone) ? 'Z' : zone.replace(/^(...):?(..)$/, '$1:$2')
    return `${date}T${time.padStart(time.length < 6 ? 5 : 8, '0')}${time.length < 6 ? ':00' : ''}${offset}`
  }
  return /[ap]\.?m/i.test(rest) ? `${date} ${timeOf(rest) ?? rest}` : text
}

const monthsByLocale = new Map<string, ReadonlyMap<string, number>>()

const monthKey = (name: string): string =>
  fold(name)
    .normalize('NFKD')
    .replaceAll(/[\p{M}.]/gu, '')

/** Returns the number of each month by its long and short names, in English and in the locale. */
function monthsOf(locale: string): ReadonlyMap<string, number> {
  const known = monthsByLocale.get(locale)
  if (known) return known
  const months = new Map<string, number>([
    ['sept', 9],
    // The abbreviation of Excel in German.
    ['mrz', 3],
  ])
  for (const each of ['en', locale])
    for (const style of ['long', 'short'] as const)
      for (let month = 1; month <= 12; month++) {
        const parts = new Intl.DateTimeFormat(each, { day: 'numeric', month: style, timeZone: 'UTC' })
        const part = parts.formatToParts(Date.UTC(2026, month - 1, 1)).find(({ type }) => type === 'month')
        if (part && /\p{L}/u.test(part.value)) months.set(monthKey(part.value), month)
      }
  monthsByLocale.set(locale, months)
  return months
}

const dayFirst =
  /^(?:\p{L}+\.?,? +)?(\d{1,2})(?:st|nd|rd|th|\.|er|º)?[ -]+(?:de +)?(\p{L}+\.?)[ -]+(?:de +)?(\d{2}|\d{4})(?:,?[ T]+(.+))?$/u
const monthFirst = /^(?:\p{L}+\.?,? +)?(\p{L}+\.?) +(\d{1,2})(?:st|nd|rd|th)?,? +(\d{4})(?:,?[ T]+(.+))?$/u

/** Returns the parts of a date with the name of a month, year first, as `threeNumbers` does. */
function namedMonthDate(text: string, locale: string): (string | undefined)[] | null {
  if (text.length > maxFormattedLength || !/\p{L}{3}/u.test(text) || !/\d/.test(text)) return null
  const trimmed = text.trim()
  const [, day, name, year, rest] = dayFirst.exec(trimmed) ?? []
  if (day !== undefined) return withMonth(locale, [year, name, day, rest])
  const [, month, first, last, time] = monthFirst.exec(trimmed) ?? []
  return month === undefined ? null : withMonth(locale, [last, month, first, time])
}

function withMonth(locale: string, [year, name, day, rest]: (string | undefined)[]): (string | undefined)[] | null {
  const month = monthsOf(locale).get(monthKey(name ?? ''))
  return month === undefined ? null : ['', wholeYear(year ?? ''), String(month), day, rest]
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

/** Rewrites a number such as `1.234,50 €` as `1234.50`. */
export function readFormattedNumber(text: string, { decimal, hasPlainNumbers }: CellFormats): string {
  if (decimal === null || (hasPlainNumbers && /^-?\d+(\.\d+)?$/.test(text.trim()))) return text
  return readNumber(text, decimal) ?? text
}

/** Converts words for yes and no to a boolean. Returns any other text unchanged. */
export const readFlag = (text: string): unknown => flagIn(text) ?? text
