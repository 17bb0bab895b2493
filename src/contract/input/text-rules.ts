// Rules for every text of a request (DOMAIN 3.2). They are the same for all schemas, so they are
// checked apart from them and reported together.
import type { Finding } from './validation-errors.ts'
import { maxFields } from './validation-errors.ts'

// Tab and newline are text; every other control character is refused.
// biome-ignore lint/suspicious/noControlCharactersInRegex: this is the rule itself
const controlCharacters = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/
/** With the `u` flag a surrogate pair is one character, so this matches half a pair. */
const loneSurrogate = /\p{Surrogate}/u
/**
 * More marks than any script stacks on a letter. Composing and sorting them takes quadratic time.
 */
const stackedMarks = /\p{M}{31}/u

/** Line breaks as `\n`, the form that is stored. */
export const withNewlines = (text: string): string => (text.includes('\r') ? text.replaceAll(/\r\n?/g, '\n') : text)

/** NFC, unless the text will be refused. */
export const composed = (text: string): string => (stackedMarks.test(text) ? text : text.normalize('NFC'))

/** Why a text is refused; undefined when it is valid. */
export function textFault(text: string): string | undefined {
  if (controlCharacters.test(text)) return 'Must not contain control characters.'
  if (loneSurrogate.test(text)) return 'Must be valid Unicode text.'
  if (stackedMarks.test(text)) return 'Must not have more than 30 combining marks in a row.'
  return undefined
}

/** Adds the refused texts of a body, by field, up to the number that is reported. */
export function findTexts(value: unknown, found: Finding[], path: readonly string[] = []): void {
  if (found.length > maxFields) return
  if (typeof value === 'string') {
    const fault = textFault(value)
    if (fault !== undefined) found.push([path.join('.'), fault])
  } else if (typeof value === 'object' && value !== null) {
    for (const [key, each] of Object.entries(value)) findTexts(each, found, [...path, key])
  }
}
