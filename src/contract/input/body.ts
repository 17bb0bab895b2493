// Parses the body of a request. Checks its media type, UTF-8 encoding, JSON or form
// syntax, and depth. The validator checks the fields later.
import type { Call } from '../call.ts'
import type { OperationFact } from '../operations.gen.ts'
import { Problem } from '../output/problems.ts'
import { readNested } from './form-fields.ts'
import type { ParsedBody } from './sent.ts'
import { findTexts } from './text-rules.ts'
import { lossesIn } from './unsafe-numbers.ts'
import { type Finding, maxFields } from './validation-errors.ts'
import { maxPublicValues, maxValues, refuseManyValues } from './value-count.ts'

/**
 * Returns the parsed JSON or form fields, or undefined for a request without a body.
 * Not for multipart forms, which are read as a stream.
 */
export function readBody(call: Call): ParsedBody | undefined {
  const { body, headers, fact } = call
  if (call.parsed) return call.parsed
  const type = mediaTypeOf(call)
  if (body === undefined || body.length === 0) {
    if (!fact.bodyRequired) return undefined
    if (type && !fact.consumes.includes(type)) throw new Problem('unsupported_media_type', mediaTypes(fact))
    if (type === 'application/json') throw new Problem('malformed_json', 'The body is empty; a JSON object is needed.')
    throw new Problem('unsupported_media_type', mediaTypes(fact))
  }
  const isKnown = type !== undefined && fact.consumes.includes(type)
  if (!isKnown && fact.consumes.includes('*/*')) return undefined
  if (fact.consumes.length === 0) throw new Problem('unsupported_media_type', 'This operation takes no body.')
  if (!type || !fact.consumes.includes(type)) throw new Problem('unsupported_media_type', mediaTypes(fact))
  if (type === 'application/x-www-form-urlencoded')
    return { ...readNested(body, String(headers['content-type'])), inexact: [] }
  const read = parseJson(decode(body), fact.public ? maxPublicValues : maxValues)
  if (Array.isArray(read.value)) throw new Problem('malformed_json')
  return read
}

/** Returns the media type of a request without its parameters. */
export const mediaTypeOf = ({ headers }: Pick<Call, 'headers'>): string | undefined =>
  String(headers['content-type'] ?? '')
    .split(';')[0]
    ?.trim()
    .toLowerCase()

/**
 * Returns the fault that `JSON.parse` found, with its line and column. Leaves out messages that
 * quote the body, because the body may contain a secret.
 */
function jsonFault(message: string, text: string): string {
  if (message.startsWith('Unexpected end')) return 'The body is not valid JSON: it ends too early.'
  const [, what = '', position = ''] = /^([A-Z][^\n]{1,60}?) (?:in|after) JSON at position (\d+)/.exec(message) ?? []
  if (what === '') return 'The body is not valid JSON.'
  const before = text.slice(0, Number(position)).split('\n')
  const fault = `${what.slice(0, 1).toLowerCase()}${what.slice(1)}`
  return `The body is not valid JSON at line ${before.length}, column ${(before.at(-1)?.length ?? 0) + 1}: ${fault}.`
}

/**
 * Parses a JSON object or list. Throws 400 for any other text, and for nesting deeper than
 * `maxDepth`; 413 for more values than `most`.
 */
export function parseJson(text: string, most: number): Required<ParsedBody> {
  refuseManyValues(text, most)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (cause) {
    throw new Problem('malformed_json', jsonFault(String((cause as Error).message), text), { cause })
  }
  if (typeof value !== 'object' || value === null) throw new Problem('malformed_json')
  if (depth(value) > maxDepth)
    throw new Problem('malformed_json', `The body is nested more than ${maxDepth} levels deep.`)
  const { inexact, repeated } = lossesIn(text, maxFields)
  return { value, inexact, found: repeated.map((path) => [path.join('.'), 'The key is sent twice.']) }
}

const maxDepth = 32
export const mediaTypes = (fact: OperationFact): string => `Send the body as ${fact.consumes.join(' or ')}.`

const utf8 = new TextDecoder('utf-8', { fatal: true })

export function decode(body: Buffer): string {
  try {
    return utf8.decode(body)
  } catch (cause) {
    throw new Problem('malformed_json', 'The body is not valid UTF-8.', { cause })
  }
}

/**
 * Returns the number of nested levels, at most `maxDepth + 1`. Uses no recursion, so that a deep
 * body cannot exhaust the stack.
 */
function depth(value: object): number {
  let level = 0
  let row: object[] = [value]
  while (row.length > 0 && level <= maxDepth) {
    level++
    row = row.flatMap((each) =>
      Object.values(each).filter((inner): inner is object => typeof inner === 'object' && inner !== null),
    )
  }
  return level
}

/** Returns the error of a number that `JSON.parse` has rounded. */
export const inexactNumber = (path: readonly string[]): Finding => [
  path.join('.'),
  'Must be a number with at most 15 significant digits.',
]

/**
 * Returns the errors of a body that do not depend on its schema. `value` is the normalized body, so
 * keys that the normalization dropped cause no errors.
 */
export function bodyFindings(value: unknown, inexact: readonly string[][]): Finding[] {
  const found: Finding[] = inexact.filter((path) => at(value, path) !== undefined).map(inexactNumber)
  findTexts(value, found)
  return found
}

function at(value: unknown, path: readonly string[]): unknown {
  let inner = value
  for (const key of path) {
    if (typeof inner !== 'object' || inner === null || !Object.hasOwn(inner, key)) return undefined
    inner = (inner as Record<string, unknown>)[key]
  }
  return inner
}
