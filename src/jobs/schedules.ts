// Schedules (DOMAIN 25.1): a time of day in the installation's time zone, or an interval in
// minutes. Pure functions; the scheduler asks when a schedule was due last.
import { DateTime } from 'luxon'
import type { Services } from '../kernel/context.ts'
import type { JobKind } from './queue.ts'

export interface Schedule {
  /** The key of its stored last run. */
  name: string
  /** `HH:MM` for each day, or a number of minutes that divides an hour. */
  at: string | number
  job: JobKind<{ due: string }>
  /** The schedule is skipped while this is false. */
  isWanted?: (services: Services) => boolean
}

/**
 * The last due time at or before `now`. Every day has exactly one: a time that daylight saving
 * skips is due right after the gap, and a time that occurs twice is due the first time.
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
  // luxon moves a skipped time forward by the length of the gap.
  const found = DateTime.fromObject({ year, month, day: date, hour, minute }, { zone: day.zone })
  return DateTime.min(found, ...found.getPossibleOffsets())
}
