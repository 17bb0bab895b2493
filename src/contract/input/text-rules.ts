// What no text of a request may hold, wherever it stands (DOMAIN 3.2). Found apart from the schemas, because it is the same
// for all of them, and reported together with what the schemas refuse.
import type { Finding } from './validation-errors.ts'
import { maxFields } from './validation-errors.ts'

// Tab and newline are text; every other control character is refused.
// biome-ignore lint/suspicious/noControlCharactersInRegex: this is the rule itself
const controlCharacters = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/
/** With the `u` flag a pair is one character, so this is half a pair. */
const loneSurrogate = /\p{Surrogate}/u
/** More than any script stacks on a letter. To compose and sort them takes time that grows with their square. */
const stackedMarks = /\p{M}{31}/u

/** Line ends in the one form that is stored. */
export const withNewlines = (text: string): string => (text.includes('\r') ? text.replaceAll(/\r\n?/g, '\n') : text)

/** NFC, except for texts that are refused. */
export const composed = (text: string): string => (stackedMarks.test(text) ? text : text.normalize('NFC'))

/** Why a text is refused, if it is. */
export function textFault(text: string): string | undefined {
  if (controlCharacters.test(text)) return 'Must not contain control characters.'
  if (loneSurrogate.test(text)) return 'Must be valid Unicode text.'
  if (stackedMarks.test(text)) return 'Must not have more than 30 combining marks in a row.'
  return undefined
}

/** The texts of a body that are refused, by field; no more of them than are reported. */
export function findTexts(value: unknown, found: Finding[], path: readonly string[] = []): void {
  if (found.length > maxFields) return
  if (typeof value === 'string') {
    const fault = textFault(value)
    if (fault !== undefined) found.push([path.join('.'), fault])
  } else if (typeof value === 'object' && value !== null) {
    for (const [key, each] of Object.entries(value)) findTexts(each, found, [...path, key])
  }
}
