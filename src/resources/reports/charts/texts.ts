// Formats the numbers and dates in charts for the locale and currency of the installation. Also
// estimates text widths, because a server has no canvas to measure text.
import type { Config } from '../../../config/config.ts'
import type { BucketUnit } from '../period.ts'

export type ChartLocale = Pick<Config, 'locale' | 'currency'>

/** Writes a number with the minus sign (U+2212), where most locales have a hyphen. */
const written = (value: number, locale: string, options: Intl.NumberFormatOptions): string =>
  new Intl.NumberFormat(locale, options)
    .formatToParts(value)
    .map((part) => (part.type === 'minusSign' ? part.value.replace('-', '\u2212') : part.value))
    .join('')

/** Returns an amount as shown beside a bar. Only fractional amounts below 10,000 have decimals. */
export const moneyText = (value: number, { locale, currency }: ChartLocale): string =>
  written(value, locale, {
    style: 'currency',
    currency,
    ...((Number.isInteger(value) || Math.abs(value) >= 10_000) && { maximumFractionDigits: 0 }),
  })

/** Returns an amount as shown on an axis, in a short form such as `$1.2M`. */
export const shortMoney = (value: number, { locale, currency }: ChartLocale): string =>
  written(value, locale, { style: 'currency', currency, notation: 'compact', maximumSignificantDigits: 4 })

export const countText = (value: number, { locale }: Pick<ChartLocale, 'locale'>): string =>
  written(value, locale, { maximumFractionDigits: 2 })

export const shortCount = (value: number, { locale }: Pick<ChartLocale, 'locale'>): string =>
  written(value, locale, { notation: 'compact', maximumSignificantDigits: 4 })

/** Returns a share such as `12.5%`. */
export const percentText = (percent: number, { locale }: Pick<ChartLocale, 'locale'>): string =>
  written(percent / 100, locale, { style: 'percent', maximumFractionDigits: 2 })

/**
 * Returns a change in percent such as `+25%`. Returns a dash for null, which means that the
 * previous value is zero.
 */
export const changeText = (percent: number | null, { locale }: Pick<ChartLocale, 'locale'>): string =>
  percent === null
    ? '–'
    : written(percent / 100, locale, { style: 'percent', maximumFractionDigits: 1, signDisplay: 'exceptZero' })

const utc = { timeZone: 'UTC' } as const

export function rangeText(
  { start, end }: { start: string; end: string },
  { locale }: Pick<ChartLocale, 'locale'>,
): string {
  const format = new Intl.DateTimeFormat(locale, { dateStyle: 'medium', ...utc })
  return format.formatRange(new Date(start), new Date(end))
}

/** Returns the axis label of a day, week or month. */
export function bucketText(label: string, unit: BucketUnit, { locale }: Pick<ChartLocale, 'locale'>): string {
  if (unit === 'week') return label
  const parts =
    unit === 'day' ? ({ day: 'numeric', month: 'short' } as const) : ({ month: 'short', year: 'numeric' } as const)
  return new Intl.DateTimeFormat(locale, { ...parts, ...utc }).format(new Date(label))
}

/**
 * Character widths in hundredths of the font size. The widths come from the wider common sans-serif
 * fonts, so that an estimate is rarely too small.
 */
const widths: [RegExp, number][] = [
  [/[iljI.,:;'|!]/, 32],
  [/[ftr()[\]{}\s/\\-]/, 39],
  [/[mwMW@%]/, 95],
  [/[A-Z&]/, 72],
  [/[\u2e80-\uffff]|\p{Extended_Pictographic}/u, 100],
]

const known = new Map<string, number>()

function widthOf(character: string): number {
  const before = known.get(character)
  if (before !== undefined) return before
  const width = widths.find(([pattern]) => pattern.test(character))?.[1] ?? 62
  if (known.size < 10_000) known.set(character, width)
  return width
}

/** Returns the estimated width of a text in pixels. */
export function textWidth(text: string, fontSize: number, isBold: boolean): number {
  const hundredths = [...text].reduce((sum, character) => sum + widthOf(character), 0)
  return (hundredths / 100) * fontSize * (isBold ? 1.08 : 1)
}
