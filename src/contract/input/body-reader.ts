// Reads and checks data from outside a request, such as a row of an import, by the same rules as
// the JSON body of an operation.

import { compileInput } from '../ajv.ts'
import { type OperationFact, operations } from '../operations.gen.ts'
import type { FieldErrors } from '../output/problems.ts'
import type { OperationId } from '../types.ts'
import { bodyFindings } from './body.ts'
import { idsOnly } from './ids-only.ts'
import { intakeOf, normalizeBody, type Reading, type Shape } from './normalize.ts'
import { componentOf, type OpenSchema, resolved } from './open-schema.ts'
import { type ValidPart, validPartOf } from './prune.ts'
import { type Finding, fieldErrors } from './validation-errors.ts'

export interface ReadBody {
  /** The body in the form that a handler gets. */
  value: object
  /** The errors by field name. */
  errors: FieldErrors
  /**
   * Returns the body without its invalid fields and without the fields in `refused`, so that the
   * operation's rules can check the rest. Returns null when the rest cannot be checked.
   */
  validPart(refused: readonly string[]): ValidPart | null
}

export type BodyReader = (value: object, reading: Reading) => ReadBody

const readers = new WeakMap<object, Map<OperationId, BodyReader>>()

/** Returns the cached reader for the JSON body of an operation. */
export function bodyReader(document: object, operation: OperationId): BodyReader {
  const known = readers.get(document) ?? new Map<OperationId, BodyReader>()
  readers.set(document, known)
  const reader = known.get(operation) ?? readerOf(document, operation)
  known.set(operation, reader)
  return reader
}

/** Returns the keys that the JSON body of an operation may have. */
export const bodyKeys = (document: object, operation: OperationId): ReadonlySet<string> =>
  new Set(Object.keys((bodySchema(document, operation) as Shape).properties ?? {}))

const bodySchema = (document: object, operation: OperationId): unknown =>
  resolved(document, sentSchema(document, operation))

/** Returns the schema of a property of the JSON body of an operation, with its references. */
export function propertySchema(document: object, operation: OperationId, name: string): OpenSchema {
  const sent = sentSchema(document, operation)
  const { properties } = (sent.$ref === undefined ? sent : componentOf(document, sent.$ref)) as Shape
  return properties?.[name] as OpenSchema
}

function sentSchema(document: object, operation: OperationId): OpenSchema {
  const { path, method } = operations[operation]
  const at = ['paths', path, method, 'requestBody', 'content', 'application/json', 'schema']
  const pointer = at.map((step) => step.replaceAll('~', '~0').replaceAll('/', '~1')).join('/')
  return componentOf(document, `#/${pointer}`) as OpenSchema
}

function readerOf(document: object, operation: OperationId): BodyReader {
  const fact: OperationFact = operations[operation]
  const named = bodySchema(document, operation)
  const shape = JSON.parse(JSON.stringify(named, idsOnly)) as Shape
  const validate = compileInput({ type: 'object', properties: { requestBody: shape } })
  return (value, reading) => {
    const found: Finding[] = []
    const read = normalizeBody(value, shape, intakeOf(fact), reading, found) as object
    const errorsOf = (requestBody: object) => (validate({ requestBody }) ? [] : (validate.errors ?? []))
    const invalid = errorsOf(read)
    found.push(...bodyFindings(read, []))
    const errors = fieldErrors(invalid, [], found)
    const validPart = (refused: readonly string[]): ValidPart | null =>
      errors.body ? null : validPartOf(read, shape, [...Object.keys(errors), ...refused], errorsOf)
    return { value: read, errors, validPart }
  }
}
