// Reads and checks a value whose schema depends on the installation (`x-entity`), such as custom
// attributes, by the same rules as a request body.

import { compileInput } from '../ajv.ts'
import type { FieldErrors } from '../output/problems.ts'
import { normalizeBody, plainIntake, type Reading, type Shape } from './normalize.ts'
import { type Finding, fieldErrors } from './validation-errors.ts'

export interface OpenSchema extends Shape {
  $ref?: string
  [keyword: string]: unknown
}

/**
 * Returns the value in its stored form, and the errors by field name. Each field name begins with
 * the property name that was passed to `openReader`.
 */
export type OpenReader = (value: unknown, reading: Reading) => { value: unknown; errors: FieldErrors }

export function openReader(document: object, name: string, schema: OpenSchema): OpenReader {
  const shape = resolved(document, schema) as Shape
  // The validator keeps the references: without them, that of a `where` takes seconds to compile.
  const validate = compileInput({
    type: 'object',
    properties: { requestBody: { type: 'object', properties: { [name]: schema } } },
    components: { schemas: namedIn(document, schema) },
  })
  return (value, reading) => {
    const below: Finding[] = []
    const read = normalizeBody(value, shape, plainIntake, reading, below) ?? null
    const isValid = validate({ requestBody: { [name]: read } })
    const found = below.map(([field, sentence]): Finding => [`${name}.${field}`, sentence])
    return { value: read, errors: fieldErrors(isValid ? [] : (validate.errors ?? []), [], found) }
  }
}

/** Returns the schema with every `$ref` replaced by its target. All its places share a target. */
export function resolved(document: object, part: unknown, targets = new Map<string, unknown>()): unknown {
  if (Array.isArray(part)) return part.map((each) => resolved(document, each, targets))
  if (typeof part !== 'object' || part === null) return part
  if ('$ref' in part && typeof part.$ref === 'string') {
    const target = targets.get(part.$ref) ?? resolved(document, componentOf(document, part.$ref), targets)
    targets.set(part.$ref, target)
    return target
  }
  return Object.fromEntries(Object.entries(part).map(([key, each]) => [key, resolved(document, each, targets)]))
}

/** Returns the named schemas that a schema refers to, also through others. */
function namedIn(document: object, part: unknown, found: Record<string, unknown> = {}): Record<string, unknown> {
  if (typeof part !== 'object' || part === null) return found
  for (const each of Object.values(part)) namedIn(document, each, found)
  const name = '$ref' in part ? /^#\/components\/schemas\/(.+)$/.exec(String(part.$ref))?.[1] : undefined
  if (name === undefined || name in found) return found
  found[name] = componentOf(document, `#/components/schemas/${name}`)
  return namedIn(document, found[name], found)
}

/** Returns the part of the contract that a `$ref` points to. */
export const componentOf = (document: object, $ref: string): unknown =>
  $ref
    .split('/')
    .slice(1)
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))
    .reduce<unknown>((node, step) => (node as Record<string, unknown> | undefined)?.[step], document)
