// Reads the dates in workflow conditions: a date, a timestamp, or `{{today}}` plus or
// minus a number of days.
import { DateTime } from 'luxon'
import { canonicalDate, canonicalTime, isDateOnly } from '../../contract/input/formats.ts'
import { today } from '../../kernel/values/format.ts'

const relative = /^\{\{\s*today\s*(?:([+-])\s*(\d{1,4})\s*)?\}\}$/

/**
 * Returns a date, or a timestamp in UTC; undefined for any other text. {{today}} becomes the day of
 * `at` in `zone`.
 */
export function resolveMoment(text: string, at: Date, zone: string): string | undefined {
  const match = relative.exec(text)
  if (!match) return isDateOnly(text) ? canonicalDate(text, zone) : canonicalTime(text, zone)
  const [, sign = '+', days = '0'] = match
  const day = DateTime.fromISO(today(at, zone), { zone: 'utc' })
  return day.plus({ days: Number(`${sign}${days}`) }).toFormat('yyyy-MM-dd')
}
