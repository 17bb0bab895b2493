// Reads a request's body (DOMAIN 3.1): media type, UTF-8, JSON or form fields, depth. Its shape is the validator's business.
import type { Call } from './backend.ts'
import { controlCharacters } from './formats.ts'
import type { OperationFact } from './operations.gen.ts'
import { Problem } from './problems.ts'

/** The body as JSON or form fields (DOMAIN 3.1). Undefined when there is none. */
export function readBody({ body, headers, fact }: Call): unknown {
  const type = String(headers['content-type'] ?? '')
    .split(';')[0]
    ?.trim()
    .toLowerCase()
  if (body === undefined || body.length === 0) {
    if (!fact.bodyRequired) return undefined
    if (type && !fact.consumes.includes(type)) throw new Problem('unsupported_media_type', mediaTypes(fact))
    if (type === 'application/json') throw new Problem('malformed_json', 'The body is empty; a JSON object is needed.')
    throw new Problem('unsupported_media_type', mediaTypes(fact))
  }
  if (fact.consumes.length === 0) throw new Problem('unsupported_media_type', 'This operation takes no body.')
  if (!type || !fact.consumes.includes(type)) throw new Problem('unsupported_media_type', mediaTypes(fact))
  const text = decode(body)
  if (type === 'application/x-www-form-urlencoded') return Object.fromEntries(new URLSearchParams(text))
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (cause) {
    throw new Problem('malformed_json', 'The body is not valid JSON.', { cause })
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new Problem('malformed_json')
  if (depth(value) > maxDepth)
    throw new Problem('malformed_json', `The body is nested more than ${maxDepth} levels deep.`)
  return value
}

const maxDepth = 32
const mediaTypes = (fact: OperationFact): string => `Send the body as ${fact.consumes.join(' or ')}.`

function decode(body: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(body)
  } catch (cause) {
    throw new Problem('malformed_json', 'The body is not valid UTF-8.', { cause })
  }
}

/** Levels of nesting, counted without recursion so that a deep body cannot exhaust the stack. */
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

/** Control characters in any text of a body, by field (DOMAIN 3.2). */
export function strayCharacters(value: unknown, path: string[]): Record<string, string[]> {
  if (typeof value === 'string') {
    return controlCharacters.test(value) ? { [path.join('.')]: ['Must not contain control characters.'] } : {}
  }
  if (typeof value !== 'object' || value === null) return {}
  let found: Record<string, string[]> = {}
  for (const [key, each] of Object.entries(value)) found = { ...found, ...strayCharacters(each, [...path, key]) }
  return found
}
