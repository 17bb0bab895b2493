// Dates in conditions (DOMAIN 18.2): a date, a timestamp, or `{{today}}` plus or minus some days.
import { DateTime } from 'luxon'
import { canonicalDate, canonicalTime, isDateOnly } from '../../contract/input/formats.ts'
import { today } from '../../kernel/values/format.ts'

const relative = /^\{\{\s*today\s*(?:([+-])\s*(\d{1,4})\s*)?\}\}$/

/** A date, or a timestamp in UTC; undefined for any other text. `at` decides which day is today. */
export function readMoment(text: string, at: Date, zone: string): string | undefined {
  const match = relative.exec(text)
  if (!match) return isDateOnly(text) ? canonicalDate(text, zone) : canonicalTime(text, zone)
  const [, sign = '+', days = '0'] = match
  const day = DateTime.fromISO(today(at, zone), { zone: 'utc' })
  return day.plus({ days: Number(`${sign}${days}`) }).toFormat('yyyy-MM-dd')
}
