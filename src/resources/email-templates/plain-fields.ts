// Finds the fields of a contract schema that have plain values, not records or lists.
import { componentOf, type OpenSchema } from '../../contract/input/open-schema.ts'

const known = new WeakMap<object, Map<string, readonly string[]>>()

/**
 * Returns the names of the schema's fields that contain a text, number or boolean. These fields may
 * also be null.
 */
export function plainFields(contract: object, schema: string): readonly string[] {
  const bySchema = known.get(contract) ?? new Map<string, readonly string[]>()
  known.set(contract, bySchema)
  const found = bySchema.get(schema) ?? read(contract, schema)
  bySchema.set(schema, found)
  return found
}

function read(contract: object, schema: string): string[] {
  const { properties = {} } = componentOf(contract, `#/components/schemas/${schema}`) as OpenSchema
  return Object.keys(properties).filter((name) => isPlain(contract, properties[name] as OpenSchema))
}

function isPlain(contract: object, schema: OpenSchema): boolean {
  const { $ref, type, anyOf } = schema
  if ($ref !== undefined) return isPlain(contract, componentOf(contract, $ref) as OpenSchema)
  if (Array.isArray(anyOf)) return (anyOf as OpenSchema[]).every((each) => isPlain(contract, each))
  return ![type].flat().some((each) => each === 'object' || each === 'array' || each === undefined)
}
