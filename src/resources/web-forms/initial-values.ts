// Initial values of form fields, as HTML elements take them.
import { DateTime } from 'luxon'

/** A text or number as typed; undefined for other values. */
export const inputText = (value: unknown): string | undefined =>
  typeof value === 'string' || typeof value === 'number' ? String(value) : undefined

/** One property of an address or contact point. */
export const partOf = (value: unknown, part: string): string | undefined =>
  typeof value === 'object' && value !== null ? inputText((value as Record<string, unknown>)[part]) : undefined

/** A timestamp in the installation's time zone, in which it is also read when it is submitted. */
export function localTime(value: unknown, zone: string): string | undefined {
  if (typeof value !== 'string') return undefined
  const time = DateTime.fromISO(value, { zone })
  return time.isValid ? time.toFormat("yyyy-MM-dd'T'HH:mm") : undefined
}
