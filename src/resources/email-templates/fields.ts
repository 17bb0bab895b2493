// Which fields of a record are plain values rather than other records or lists, as the contract has it.
import { componentOf, type OpenSchema } from '../../contract/input/open-schema.ts'

const known = new WeakMap<object, Map<string, readonly string[]>>()

/** Names of the fields of a schema that hold a text, a number or a flag, with a value or without. */
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
