// The occurrence that identifies a campaign run: the date of the campaign's event, or
// `once` without an event date. An address gets at most one e-mail per campaign and occurrence.
import { DateTime } from 'luxon'
import { lastDue } from '../../jobs/schedules.ts'
import type { Context } from '../../kernel/context.ts'
import { today } from '../../kernel/values/format.ts'

/** The time of day at which campaigns run, HH:MM in the installation's time zone. */
export const dailyAt = '00:05'

/** Returns the day (YYYY-MM-DD) of the next daily run. */
export function nextDailyRun({ time, services: { config } }: Context): string {
  const day = today(time, config.timezone)
  const isDone = today(lastDue({ at: dailyAt }, time, config.timezone), config.timezone) === day
  return isDone ? DateTime.fromISO(day).plus({ days: 1 }).toFormat('yyyy-MM-dd') : day
}

/**
 * The occurrence of a campaign without an event date. All runs of the campaign share this
 * occurrence, so each address gets the campaign only once.
 */
export const undatedOccurrence = 'once'

export const occurrenceOf = (date: string | null | undefined): string => date ?? undatedOccurrence
