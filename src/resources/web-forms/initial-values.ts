// What a field of a form holds at first, as an element of HTML takes it.
import { DateTime } from 'luxon'

/** A text or number as it is typed; undefined for what is neither. */
export const inputText = (value: unknown): string | undefined =>
  typeof value === 'string' || typeof value === 'number' ? String(value) : undefined

/** A part of an address, or the value of a contact point. */
export const partOf = (value: unknown, part: string): string | undefined =>
  typeof value === 'object' && value !== null ? inputText((value as Record<string, unknown>)[part]) : undefined

/** A timestamp as clocks show it in the installation's zone, which is how it is read when it comes back. */
export function localTime(value: unknown, zone: string): string | undefined {
  if (typeof value !== 'string') return undefined
  const time = DateTime.fromISO(value, { zone })
  return time.isValid ? time.toFormat("yyyy-MM-dd'T'HH:mm") : undefined
}
