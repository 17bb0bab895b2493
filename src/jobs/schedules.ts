// Computes when a schedule was last due. A schedule has a time of day in the
// installation's time zone, or an interval in minutes.
import { DateTime } from 'luxon'
import type { Services } from '../kernel/context.ts'
import type { JobKind } from './queue.ts'

export interface Schedule {
  /** The key of the schedule's row, which stores the last due time. */
  name: string
  /** The time of day `HH:MM`, or an interval in minutes that divides an hour. */
  at: string | number
  /** `since` is the due time before this one; the due times between them were missed. */
  job: JobKind<{ due: string; since?: string }>
  /**
   * Returns whether the schedule is needed. While the result is false, the scheduler skips the
   * schedule.
   */
  isWanted?: (services: Services) => boolean
}

/**
 * Returns the last due time at or before `now`. A time of day is due exactly once a day. A time
 * that daylight saving skips is due right after the gap. A time that occurs twice is due the first
 * time.
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
