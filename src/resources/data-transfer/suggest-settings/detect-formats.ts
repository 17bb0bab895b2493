// Detects the formats of dates and numbers from the values of a file. When the values are
// ambiguous, the user must set the format.
import { type DecimalSeparator, withoutCurrency } from '../../../texts/numbers.ts'
import { type DateFormat, dateParts, isIso } from '../read-cells/cell-formats.ts'

export interface ColumnValues {
  header: string
  values: readonly string[]
}

export interface Detected<Format> {
  /** Null when every value has the notation of the API or is ambiguous. */
  format: Format | null
  /** The header of the first column with ambiguous values. Null when a format was detected. */
  open: string | null
  /** Whether the values have different formats. `format` is then the most frequent one. */
  isMixed: boolean
}

export interface DetectedDates extends Detected<DateFormat> {
  /** The first date with a year of two digits. */
  short: { header: string; value: string } | null
}

/** Detects the order of day, month and year. A number above 12 cannot be a month. */
export function detectDateFormat(columns: readonly ColumnValues[]): DetectedDates {
  const votes = { dmy: 0, mdy: 0, ymd: 0 }
  let open: string | null = null
  let short: DetectedDates['short'] = null
  let hasYearFirst = false
  for (const { header, values } of columns)
    for (const value of values) {
      const parts = isIso(value) ? null : dateParts(value)
      if (parts === null) continue
      if (parts.every(({ length }) => length <= 2)) short ??= { header, value: value.trim() }
      const order = orderOf(parts, value)
      if (parts[0].length === 4) hasYearFirst = true
      else if (order) votes[order]++
      else open ??= header
    }
  // Dates with the year in front are read in every format, so they do not decide for others.
  const isPlain = votes.dmy + votes.mdy + votes.ymd === 0 && open === null
  if (isPlain && hasYearFirst) return { format: 'ymd', open, isMixed: false, short }
  return { ...elected(votes, open), short }
}

function orderOf(parts: readonly [string, string, string], text: string): DateFormat | null {
  const [first, second, third] = parts
  if (first.length === 4) return 'ymd'
  if (third.length === 2 && first.length <= 2) return orderOfShort(parts, text)
  if (third.length !== 4) return null
  // Countries that write dates with points put the day first.
  if (Number(first) > 12 || text.includes('.')) return 'dmy'
  return Number(second) > 12 ? 'mdy' : null
}

/**
 * Returns the order of a date whose year has two digits, or null when the order is ambiguous. In
 * dates with points or slashes, the year is last if possible.
 */
function orderOfShort([first, second, third]: readonly [string, string, string], text: string): DateFormat | null {
  const isDay = (part: string): boolean => Number(part) >= 1 && Number(part) <= 31
  const isMonth = (part: string): boolean => Number(part) >= 1 && Number(part) <= 12
  const isYear = (part: string): boolean => part.length === 2
  const possible: DateFormat[] = []
  if (isDay(first) && isMonth(second) && isYear(third)) possible.push('dmy')
  if (isMonth(first) && isDay(second) && isYear(third)) possible.push('mdy')
  if (isYear(first) && isMonth(second) && isDay(third)) possible.push('ymd')
  if (text.includes('.') && possible[0] === 'dmy') return 'dmy'
  const usual = /[./]/.test(text) ? possible.filter((order) => order !== 'ymd') : []
  const [only, ...others] = usual.length > 0 ? usual : possible
  return others.length === 0 ? (only ?? null) : null
}

/**
 * Detects the decimal separator. In a number with points and commas, the last separator precedes
 * the decimals.
 */
export function detectDecimalSeparator(columns: readonly ColumnValues[]): Detected<DecimalSeparator> {
  const votes = { '.': 0, ',': 0 }
  let open: string | null = null
  let isFormatted = false
  for (const { header, values } of columns)
    for (const value of values) {
      const text = withoutCurrency(value)
      if (!/^\(?[-+]?\d[\d.,\s'’]*\)?$/.test(text)) continue
      const separator = decimalSeparatorOf(text.replaceAll(/[()]/g, ''))
      if (separator === 'open') open ??= header
      else if (separator) votes[separator]++
      isFormatted ||= text !== value.trim() || !/^-?\d+(\.\d+)?$/.test(text)
    }
  // A file with only plain numbers, such as 1234.5, needs no format.
  return isFormatted ? elected(votes, open) : { format: null, open: null, isMixed: false }
}

/**
 * Returns the decimal separator of a number, `open` for an ambiguous number such as `1,234`, and
 * null for a number without separators.
 */
function decimalSeparatorOf(text: string): DecimalSeparator | 'open' | null {
  const [point, comma] = [text.lastIndexOf('.'), text.lastIndexOf(',')]
  if (point < 0 && comma < 0) return null
  if (point >= 0 && comma >= 0) return point > comma ? '.' : ','
  const separator = point >= 0 ? '.' : ','
  const parts = text.split(separator)
  const other = separator === '.' ? ',' : '.'
  if (parts.length > 2) return other
  return parts[1]?.length === 3 && /^[-+]?[1-9]\d{0,2}$/.test(parts[0] ?? '') ? 'open' : separator
}

function elected<Format extends string>(votes: Record<Format, number>, open: string | null): Detected<Format> {
  const ranked = (Object.entries(votes) as [Format, number][]).sort(([, one], [, other]) => other - one)
  const [best, second] = ranked
  if (!best || best[1] === 0) return { format: null, open, isMixed: false }
  return { format: best[0], open: null, isMixed: (second?.[1] ?? 0) > 0 }
}
