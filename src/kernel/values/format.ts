// Formats values for display, and normalizes them for comparisons.
import { createHash } from 'node:crypto'
import { DateTime } from 'luxon'
import type { Config } from '../../config/config.ts'

/** The form in which names are compared and sorted: NFC, lower case (the `…_key` columns). */
export { caseFold as fold } from '../../../db/schema/case-folding.ts'

import { caseFold as fold } from '../../../db/schema/case-folding.ts'

export const currencyText = (value: number, { locale, currency }: Pick<Config, 'locale' | 'currency'>): string =>
  new Intl.NumberFormat(locale, { style: 'currency', currency }).format(value)

/** Returns today's date in the installation's time zone. */
export const today = (now: Date, zone: string): string => DateTime.fromJSDate(now, { zone }).toFormat('yyyy-MM-dd')

export const slug = (name: string): string =>
  fold(name)
    .normalize('NFKD')
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+|-+$/g, '')
    .slice(0, 50)

/** The form in which phone numbers are compared. */
export { digitsOf as phoneKey } from '../../../db/schema/case-folding.ts'

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/** Escapes text for HTML and XML, attributes included. */
export const escapeHtml = (text: string): string => text.replace(/[&<>"']/g, (char) => entities[char] ?? char)

/**
 * Returns the hash by which a content security policy allows a script or style of this server's own
 * pages.
 */
export const sourceHash = (source: string): string => `'sha256-${createHash('sha256').update(source).digest('base64')}'`

/**
 * Returns text for one line of Markdown, with every character escaped that could start markup or a
 * link.
 */
export const plainMarkdown = (text: string): string =>
  text.replace(/\s+/g, ' ').replace(/[\\`*<>[\]!|~]/g, (char) => `\\${char}`)

export const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)

/**
 * Returns a text for a mail header, such as the subject, with each run of white space as one space.
 * Null and undefined stay.
 */
export const oneLine = <Text extends string | null | undefined>(text: Text): Text =>
  (typeof text === 'string' ? text.replace(/\s+/g, ' ') : text) as Text
