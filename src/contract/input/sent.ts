// The forms in which the body of a request is handed on before its schema is checked.
import type { Finding } from './validation-errors.ts'

export interface ParsedBody {
  value: unknown
  /** The paths of the numbers that `JSON.parse` has rounded. */
  inexact: readonly string[][]
  /** Errors found while the body was read. */
  found?: readonly Finding[]
}

/** One line of a body. */
export interface SentLine {
  /** The position from 1. Blank lines are counted, but they are not lines of their own. */
  readonly number: number
  /** The bytes as they were sent, without the line break; those of a line too long are dropped. */
  readonly bytes: Buffer
  /** Parses the line. Throws a `Problem` for a line that has no JSON object. */
  read(): Required<ParsedBody>
}

/** The lines in the order of the body, as many at a time as have arrived. */
export type SentLines = AsyncIterable<readonly SentLine[]>
