// Converts initial values of form fields to the text that HTML inputs expect.
import { DateTime } from 'luxon'

/** Returns a string or number as text; undefined for other values. */
export const inputText = (value: unknown): string | undefined =>
  typeof value === 'string' || typeof value === 'number' ? String(value) : undefined

/** Returns a number as a visitor types it in this locale. The separator of groups is left out. */
export const typedNumber = (value: unknown, locale: string): string | undefined =>
  typeof value === 'number'
    ? new Intl.NumberFormat(locale, {
        maximumFractionDigits: 20,
        numberingSystem: 'latn',
        useGrouping: false,
      }).format(value)
    : inputText(value)

/** Returns one property of an address or contact point as text. */
export const partOf = (value: unknown, part: string): string | undefined =>
  typeof value === 'object' && value !== null ? inputText((value as Record<string, unknown>)[part]) : undefined

/**
 * Returns a timestamp as local time in `zone`; undefined for other values. Submitted local times
 * are read in the same time zone.
 */
export function localTime(value: unknown, zone: string): string | undefined {
  if (typeof value !== 'string') return undefined
  const time = DateTime.fromISO(value, { zone })
  return time.isValid ? time.toFormat("yyyy-MM-dd'T'HH:mm") : undefined
}
