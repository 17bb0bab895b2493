// The period of a report: its default and limits, the period before it, and its
// division into days, weeks or months. Days begin and end in the time zone of the installation.
// Instants are UTC timestamps as stored in the database. The functions read no database.
import { DateTime } from 'luxon'
import { dayBoundary, hasBoundaries } from '../../contract/input/formats.ts'
import type { Schema } from '../../contract/types.ts'
import { invalid } from '../../kernel/errors.ts'

const defaultDays = 30
const maxYears = 3
const maxDailyDays = 31
const maxWeeklyDays = 26 * 7

export interface Period {
  range: Schema<'ReportRange'>
  days: number
  zone: string
  /** True when the query contains no period, so the report covers all records. */
  isAll?: boolean
}

export interface PeriodQuery {
  start?: string | undefined
  end?: string | undefined
}

const dayOf = (text: string): DateTime => DateTime.fromISO(text, { zone: 'utc' })
const textOf = (day: DateTime): string => day.toFormat('yyyy-MM-dd')
const daysBetween = (from: DateTime, to: DateTime): number => Math.round(to.diff(from, 'days').days)

/**
 * Returns the period of the query. The default end is today, and the default start is 29 days
 * before the end. Throws 422 for an invalid period.
 */
export function readPeriod(query: PeriodQuery, today: string, zone: string): Period {
  const end = query.end ?? today
  return checked(query, query.start ?? textOf(dayOf(end).minus({ days: defaultDays - 1 })), end, zone)
}

/**
 * Returns the period of the query. If the query has no `start` and no `end`, `isAll` is true and
 * the report covers all records.
 */
export const readOptionalPeriod = (query: PeriodQuery, today: string, zone: string): Period => ({
  ...readPeriod(query, today, zone),
  isAll: query.start === undefined && query.end === undefined,
})

/**
 * Returns the period of a forecast. The default start is 29 days before today, or 29 days before
 * the end if the end is in the past. The default end is one year after the start in the query, or
 * one year after today if the query has no start. Throws 422 for an invalid period.
 */
export function readForecastPeriod(query: PeriodQuery, today: string, zone: string): Period {
  const from = query.end !== undefined && query.end < today ? query.end : today
  const start = query.start ?? textOf(dayOf(from).minus({ days: defaultDays - 1 }))
  const end = query.end ?? yearAfter(query.start ?? today, zone)
  return checked(query, start, end, zone)
}

/**
 * Returns the same day of the next year, or the last day that can be stored in the time zone if the
 * next year is after 9999.
 */
function yearAfter(day: string, zone: string): string {
  const later = dayOf(day).plus({ years: 1 })
  const days = later.year <= 9999 ? [textOf(later)] : ['9999-12-31']
  return days.find((each) => hasBoundaries(each, zone)) ?? '9999-12-30'
}

type Unit = 'day' | 'week' | 'month' | 'quarter' | 'year'

/** Returns the first and last day of a calendar period such as `last_month`. */
export function namedDays(name: Schema<'ReportPeriodName'>, today: string): Schema<'ReportDays'> {
  const offsets = { last: -1, this: 0, next: 1 } as const
  const [which, of = 'day'] = name === 'today' || name === 'yesterday' ? [name] : name.split('_')
  const unit = of as Unit
  const offset = which === 'yesterday' ? -1 : (offsets[which as keyof typeof offsets] ?? 0)
  const first = dayOf(today)
    .startOf(unit)
    .plus({ [unit]: offset })
  return { from: textOf(first), to: textOf(first.plus({ [unit]: 1 }).minus({ days: 1 })) }
}

/**
 * Returns the period of two days. The period before whole months has as many months, and before
 * other days as many days. Throws 422 for an invalid period.
 */
export function calendarPeriod({ from, to }: Schema<'ReportDays'>, zone: string): Period {
  const period = checked({ start: from, end: to }, from, to, zone, 'to')
  const [first, next] = [dayOf(from), dayOf(to).plus({ days: 1 })]
  if (first.day !== 1 || next.day !== 1) return period
  const months = Math.round(next.diff(first, 'months').months)
  const previous_start = textOf(first.minus({ months }))
  if (!hasBoundaries(previous_start, zone)) throw invalid({ to: [beyondCalendar] })
  return { ...period, range: { ...period.range, previous_start } }
}

/** Returns the period before, as a period of its own. */
export const previousPeriod = ({ range, zone }: Period): Period => ({
  range: { ...range, start: range.previous_start, end: range.previous_end },
  days: daysBetween(dayOf(range.previous_start), dayOf(range.previous_end)) + 1,
  zone,
})

const beyondCalendar = 'The period and the one before it must lie within the years 1 to 9999.'

function checked(
  query: PeriodQuery,
  start: string,
  end: string,
  zone: string,
  field = query.end !== undefined ? 'query.end' : 'query.start',
): Period {
  const [first, last] = [dayOf(start), dayOf(end)]
  if (last < first) {
    const sentence = query.end !== undefined ? `Must be ${start} or later.` : `Must be ${end} or earlier.`
    throw invalid({ [field]: [sentence] })
  }
  if (last > first.plus({ years: maxYears })) throw invalid({ [field]: [`A report covers at most ${maxYears} years.`] })
  const days = daysBetween(first, last) + 1
  const range = {
    start,
    end,
    previous_start: textOf(first.minus({ days })),
    previous_end: textOf(first.minus({ days: 1 })),
  }
  if (!hasBoundaries(range.previous_start, zone) || !hasBoundaries(end, zone))
    throw invalid({ [field]: [beyondCalendar] })
  return { range, days, zone }
}

/** Returns the first and the last instant of the period, as stored timestamps. */
export const periodBounds = ({ range, zone }: Period): [string, string] => [
  dayBoundary(range.start, zone, false),
  dayBoundary(range.end, zone, true),
]

/** Returns the first instant of the preceding period, as a stored timestamp. */
export const previousStart = ({ range, zone }: Period): string => dayBoundary(range.previous_start, zone, false)

export type BucketUnit = 'day' | 'week' | 'month'

export const bucketUnit = ({ days }: Period): BucketUnit =>
  days <= maxDailyDays ? 'day' : days <= maxWeeklyDays ? 'week' : 'month'

const labels: Record<BucketUnit, string> = { day: 'yyyy-MM-dd', week: "kkkk-'W'WW", month: 'yyyy-MM' }

/** Returns the label of the day, week or month of a date. Labels sort as their times do. */
export const bucketLabel = (day: string, unit: BucketUnit): string => dayOf(day).toFormat(labels[unit])

/**
 * Returns the days, ISO weeks or months of the period in ascending order. `from` is the first
 * instant of a day, week or month. The first and the last week or month may be incomplete.
 */
export function splitPeriod({ range, zone }: Period, unit: BucketUnit): { label: string; from: string }[] {
  const last = dayOf(range.end)
  const buckets: { label: string; from: string }[] = []
  for (let day = dayOf(range.start); day <= last; day = day.startOf(unit).plus({ [unit]: 1 }))
    buckets.push({ label: day.toFormat(labels[unit]), from: dayBoundary(textOf(day), zone, false) })
  return buckets
}
