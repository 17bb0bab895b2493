// Counts the values of a JSON text or a form before it is parsed. Small values cost far more to
// parse and check than their bytes: a megabyte of empty lists would block the event loop for 0.4 s.
import { Problem } from '../output/problems.ts'

/** The most values of a JSON body: fields, list entries, objects and lists. */
export const maxValues = 10_000
/** The same for an operation that needs no credential. */
export const maxPublicValues = 1_000
/** The most fields of a form. */
export const maxFormFields = 200

/** Throws 413 if a JSON text has more values than `most`. The text need not be valid. */
export function refuseManyValues(text: string, most: number): void {
  let count = 0
  for (let at = 0; at < text.length; at++) {
    const char = text.charCodeAt(at)
    if (char === quote) at = endOfString(text, at)
    else if ((char === comma || char === openBracket || char === openBrace) && ++count > most)
      throw new Problem('payload_too_large', `The body has more than ${most} values.`)
  }
}

const [quote, comma, openBracket, openBrace, backslash] = [34, 44, 91, 123, 92]

/** Returns the index of the quote that closes a string, or the end of the text. */
function endOfString(text: string, opening: number): number {
  for (let at = opening + 1; at < text.length; at++) {
    const char = text.charCodeAt(at)
    if (char === backslash) at++
    else if (char === quote) return at
  }
  return text.length
}

/** Throws 400 for a form with too many fields. */
export function refuseManyFields(text: string): void {
  let count = 1
  for (let at = text.indexOf('&'); at >= 0; at = text.indexOf('&', at + 1))
    if (++count > maxFormFields * 2) throw manyFields()
}

export const manyFields = (): Problem =>
  new Problem('malformed_request', `A form can have ${maxFormFields} fields at most.`)
