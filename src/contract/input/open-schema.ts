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
  const validate = compileInput({
    type: 'object',
    properties: { requestBody: { type: 'object', properties: { [name]: shape } } },
  })
  return (value, reading) => {
    const below: Finding[] = []
    const read = normalizeBody(value, shape, plainIntake, reading, below) ?? null
    const isValid = validate({ requestBody: { [name]: read } })
    const found = below.map(([field, sentence]): Finding => [`${name}.${field}`, sentence])
    return { value: read, errors: fieldErrors(isValid ? [] : (validate.errors ?? []), [], found) }
  }
}

/** Returns the schema with every `$ref` replaced by its target. */
export function resolved(document: object, part: unknown): unknown {
  if (Array.isArray(part)) return part.map((each) => resolved(document, each))
  if (typeof part !== 'object' || part === null) return part
  if ('$ref' in part && typeof part.$ref === 'string') return resolved(document, componentOf(document, part.$ref))
  return Object.fromEntries(Object.entries(part).map(([key, each]) => [key, resolved(document, each)]))
}

/** Returns the part of the contract that a `$ref` points to. */
export const componentOf = (document: object, $ref: string): unknown =>
  $ref
    .split('/')
    .slice(1)
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))
    .reduce<unknown>((node, step) => (node as Record<string, unknown> | undefined)?.[step], document)
