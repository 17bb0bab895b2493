// When something runs by itself (DOMAIN 25.1): at a time of day in the installation's time zone, or every so many minutes. Pure: the
// scheduler asks when it was due last.
import { DateTime } from 'luxon'
import type { Services } from '../kernel/context.ts'
import type { JobKind } from './queue.ts'

export interface Schedule {
  /** How its last run is stored. */
  name: string
  /** `HH:MM`, each day; or a number of minutes that divides an hour. */
  at: string | number
  job: JobKind<{ due: string }>
  /** Left out while this is false. */
  isWanted?: (services: Services) => boolean
}

/**
 * The last moment at or before `now` at which it was due. A time of day that a day skips for daylight saving is due when the
 * clocks have gone forward, one that comes twice only the first time: every day has exactly one.
 */
export function lastDue({ at }: Pick<Schedule, 'at'>, now: Date, zone: string): Date {
  if (typeof at === 'number') {
    const ms = at * 60_000
    return new Date(Math.floor(now.getTime() / ms) * ms)
  }
  const today = DateTime.fromJSDate(now, { zone }).startOf('day')
  const due = moment(today, at)
  return (due.toMillis() <= now.getTime() ? due : moment(today.minus({ days: 1 }), at)).toJSDate()
}

function moment(day: DateTime, at: string): DateTime {
  const [hour = 0, minute = 0] = at.split(':').map(Number)
  const { year, month, day: date } = day
  // luxon moves a time that is skipped forward by the length of the gap.
  const found = DateTime.fromObject({ year, month, day: date, hour, minute }, { zone: day.zone })
  return DateTime.min(found, ...found.getPossibleOffsets())
}
