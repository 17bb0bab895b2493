// Writes days and times as people read them, in a locale and a time zone. Every text with a time of
// day names the zone, except the short form for the subject of an e-mail.
import { DateTime } from 'luxon'

export interface ZoneAndLocale {
  /** The IANA name of the time zone. */
  zone: string
  /** The BCP 47 tag of the language and region. */
  locale: string
}

type Format = Intl.DateTimeFormatOptions

const day: Format = { weekday: 'long', year: 'numeric', month: 'long', day: 'numeric' }
const clock: Format = { hour: 'numeric', minute: '2-digit' }
const named: Format = { ...day, ...clock, timeZoneName: 'short' }

const at = (time: string, { zone, locale }: ZoneAndLocale): DateTime => DateTime.fromISO(time, { zone, locale })

/**
 * Returns an ISO timestamp such as `27 November 2026 at 09:46 CET`, or a date such as `27 November
 * 2026`. Returns a text that is neither unchanged.
 */
export function momentText(text: string, place: ZoneAndLocale): string {
  const time = at(text, place)
  if (!time.isValid) return text
  return time.toLocaleString(text.includes('T') ? DateTime.DATETIME_FULL : DateTime.DATE_FULL)
}

/**
 * Returns the time from one ISO timestamp to another, such as `Friday, 27 November 2026,
 * 09:46–10:46 CET`. Equal ends are one time.
 */
export function periodText(from: string, to: string, place: ZoneAndLocale): string {
  const [first, last] = [at(from, place), at(to, place)]
  // A range names the zone once, so ends on both sides of a change of the clock stand apart.
  if (first.offset === last.offset) return rangeText(first, last, named, place)
  return [first, last].map((each) => each.toLocaleString(named)).join(' – ')
}

/** Returns the days from one ISO date to another, such as `Friday, 27 November 2026`. */
export const daysText = (from: string, to: string, place: ZoneAndLocale): string =>
  rangeText(at(from, place), at(to, place), day, place)

const rangeText = (first: DateTime, last: DateTime, format: Format, { zone, locale }: ZoneAndLocale): string =>
  new Intl.DateTimeFormat(locale, { ...format, timeZone: zone }).formatRange(first.toMillis(), last.toMillis())

/**
 * Returns an ISO timestamp as the subject of an e-mail has it, such as `27 November, 9:46`; without
 * a time of day for a date. It has the year when that is not the year of `now`. Returns a text that
 * is neither unchanged.
 */
export function shortText(text: string, now: Date, place: ZoneAndLocale): string {
  const time = at(text, place)
  if (!time.isValid) return text
  const isThisYear = time.year === DateTime.fromJSDate(now, { zone: place.zone }).year
  const date = time.toLocaleString({ month: 'long', day: 'numeric', ...(!isThisYear && { year: 'numeric' }) })
  return text.includes('T') ? `${date}, ${time.toLocaleString(clock)}` : date
}
