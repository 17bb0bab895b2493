// Formats values for display, and normalizes values for comparisons.
import { createHash } from 'node:crypto'
import { DateTime } from 'luxon'
import type { Config } from '../../config/config.ts'
import { canonicalAddress } from '../../contract/input/email-addresses.ts'

/**
 * Normalizes a name for comparing and sorting: NFC and lower case. The `…_key` columns contain the
 * result.
 */
export { caseFold as fold } from '../../../db/schema/case-folding.ts'

import { caseFold as fold } from '../../../db/schema/case-folding.ts'

/** Normalizes an e-mail address for comparisons. */
export const addressKey = (address: string): string => fold(canonicalAddress(address.trim()))

/** Returns a number with all its decimals, such as `1,234.5`. */
export const numberText = (value: number, { locale }: Pick<Config, 'locale'>): string =>
  new Intl.NumberFormat(locale, { maximumFractionDigits: 20 }).format(value)

export const currencyText = (value: number, { locale, currency }: Pick<Config, 'locale' | 'currency'>): string =>
  new Intl.NumberFormat(locale, { style: 'currency', currency }).format(value)

/** Returns today's date in the installation's time zone. */
export const today = (now: Date, zone: string): string => DateTime.fromJSDate(now, { zone }).toFormat('yyyy-MM-dd')

/**
 * Returns a time for the writer of calendar files. It writes whole days by their date in UTC, so a
 * whole day has the time of day of its zone in UTC.
 */
export const calendarDate = (time: string, { isAllDay, zone }: { isAllDay: boolean; zone: string }): Date =>
  isAllDay ? DateTime.fromISO(time, { zone }).setZone('utc', { keepLocalTime: true }).toJSDate() : new Date(time)

export const slug = (name: string): string =>
  fold(name)
    .normalize('NFKD')
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+|-+$/g, '')
    .slice(0, 50)

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/** Escapes text for HTML and XML, inside and outside of attribute values. */
export const escapeHtml = (text: string): string => text.replace(/[&<>"']/g, (char) => entities[char] ?? char)

/**
 * Returns the hash that a Content-Security-Policy lists to allow an inline script or style of this
 * server's pages.
 */
export const sourceHash = (source: string): string => `'sha256-${createHash('sha256').update(source).digest('base64')}'`

/**
 * Escapes every character that could start Markdown markup or a link, and puts the text on one
 * line.
 */
export const plainMarkdown = (text: string): string =>
  text.replace(/\s+/g, ' ').replace(/[\\`*<>[\]!|~]/g, (char) => `\\${char}`)

export const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)

/**
 * Replaces each run of white space by one space, for a mail header such as the subject. Returns
 * null and undefined unchanged.
 */
export const oneLine = <Text extends string | null | undefined>(text: Text): Text =>
  (typeof text === 'string' ? text.replace(/\s+/g, ' ') : text) as Text
