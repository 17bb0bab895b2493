// The rules for every text of a request, whatever its schema.
import type { Finding } from './validation-errors.ts'
import { maxFields } from './validation-errors.ts'

// Matches every control character except tab and newline, which are valid in a text.
// biome-ignore lint/suspicious/noControlCharactersInRegex: this is the rule itself
const controlCharacters = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/
/**
 * Matches an unpaired surrogate. With the `u` flag, a surrogate pair is one character and does not
 * match.
 */
const loneSurrogate = /\p{Surrogate}/u
/**
 * Matches 31 combining marks in a row, which is more than any script needs. The time to normalize a
 * run of marks grows with the square of its length.
 */
const stackedMarks = /\p{M}{31}/u

/** Returns the text in its stored form, with `\n` as the only line break. */
export const withNewlines = (text: string): string => (text.includes('\r') ? text.replaceAll(/\r\n?/g, '\n') : text)

/**
 * Returns the text in Unicode form NFC. A text with too many combining marks stays unchanged,
 * because `textFault` refuses it later.
 */
export const composed = (text: string): string => (stackedMarks.test(text) ? text : text.normalize('NFC'))

/** Matches controls that change the direction of the texts around them, so that names deceive. */
const directionControls = /[\u202a-\u202e\u2066-\u2069]/g

/** Returns a name in one line. Tabs and line breaks become blanks. */
export const inOneLine = (text: string): string =>
  text
    .replaceAll(directionControls, '')
    .replaceAll(/[\t\n\u2028\u2029]+/g, ' ')
    .trim()

/**
 * Returns a text with the digits 0 to 9 instead of those of other scripts, and full-width signs in
 * their usual form, as keyboards of Arabic, Persian, Indic and Japanese write them.
 */
export const asciiDigits = (text: string): string => (isAscii.test(text) ? text : withAsciiDigits(text))

// biome-ignore lint/suspicious/noControlCharactersInRegex: all ASCII characters
const isAscii = /^[\u0000-\u007f]*$/

const withAsciiDigits = (text: string): string =>
  text
    .replaceAll(/[\uff01-\uff5e\u{1d7ce}-\u{1d7ff}]/gu, (sign) => sign.normalize('NFKC'))
    .replaceAll(/(?![0-9])\p{Nd}/gu, (digit) => {
      // The zero of a script has a code that ends with 0 or 6 in hexadecimal notation.
      const code = digit.codePointAt(0) ?? 0
      const first = code - (code % 16)
      const value = /\p{Nd}/u.test(String.fromCodePoint(first)) ? code - first : code - first - 6
      return value >= 0 && value <= 9 ? String(value) : digit
    })

/** Returns the error sentence for a text, or undefined when the text is valid. */
export function textFault(text: string): string | undefined {
  if (controlCharacters.test(text)) return 'Must not contain control characters.'
  if (loneSurrogate.test(text)) return 'Must be valid Unicode text.'
  if (stackedMarks.test(text)) return 'Must not have more than 30 combining marks in a row.'
  return undefined
}

/**
 * Adds an error to `found` for each invalid text of a body. Stops at `maxFields` errors, because
 * the reply does not list more.
 */
export function findTexts(value: unknown, found: Finding[], path: readonly string[] = []): void {
  if (found.length > maxFields) return
  if (typeof value === 'string') {
    const fault = textFault(value)
    if (fault !== undefined) found.push([path.join('.'), fault])
  } else if (typeof value === 'object' && value !== null) {
    for (const [key, each] of Object.entries(value)) findTexts(each, found, [...path, key])
  }
}
