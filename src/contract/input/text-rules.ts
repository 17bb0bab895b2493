// Rules for every text of a request (DOMAIN 3.2). They do not depend on the schema, so this file
// checks them; their errors are reported with those of the schema.
import type { Finding } from './validation-errors.ts'
import { maxFields } from './validation-errors.ts'

// Tab and newline are text; every other control character is refused.
// biome-ignore lint/suspicious/noControlCharactersInRegex: this is the rule itself
const controlCharacters = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/
/** With the `u` flag a surrogate pair is one character, so this matches half a pair. */
const loneSurrogate = /\p{Surrogate}/u
/**
 * Matches more combining marks than any script puts on one letter. Normalizing a longer run takes
 * quadratic time.
 */
const stackedMarks = /\p{M}{31}/u

/** Returns the text with `\n` as its only line break, the stored form. */
export const withNewlines = (text: string): string => (text.includes('\r') ? text.replaceAll(/\r\n?/g, '\n') : text)

/**
 * Returns the text in Unicode form NFC. A text with too many marks stays unchanged, because it is
 * refused later.
 */
export const composed = (text: string): string => (stackedMarks.test(text) ? text : text.normalize('NFC'))

/** Returns the reason for refusing a text, or undefined when it is valid. */
export function textFault(text: string): string | undefined {
  if (controlCharacters.test(text)) return 'Must not contain control characters.'
  if (loneSurrogate.test(text)) return 'Must be valid Unicode text.'
  if (stackedMarks.test(text)) return 'Must not have more than 30 combining marks in a row.'
  return undefined
}

/** Adds an error for each invalid text of a body, up to the number of fields that a reply names. */
export function findTexts(value: unknown, found: Finding[], path: readonly string[] = []): void {
  if (found.length > maxFields) return
  if (typeof value === 'string') {
    const fault = textFault(value)
    if (fault !== undefined) found.push([path.join('.'), fault])
  } else if (typeof value === 'object' && value !== null) {
    for (const [key, each] of Object.entries(value)) findTexts(each, found, [...path, key])
  }
}
