// Old names of keys, which the contract keeps beside the new names until their sunset (`x-alias`).
// Handlers know only the new names: bodies and queries are renamed before validation, and replies,
// snapshots, exports and placeholders get the old keys here.
import { componentOf } from './input/open-schema.ts'
import type { Lifetime } from './lifetime.ts'

export interface KeySchema extends Lifetime {
  $ref?: string
  properties?: Record<string, KeySchema>
  items?: KeySchema
  anyOf?: KeySchema[]
  oneOf?: KeySchema[]
  allOf?: KeySchema[]
}

type Json = Record<string, unknown>
type Carry = (schema: KeySchema | undefined, value: unknown) => unknown

/** The function of each contract; null for a contract without an old name. */
const carriers = new WeakMap<object, Carry | null>()

/**
 * Returns the value with each old key beside its new key, and the other way round. `schemaOf` is
 * called only if the contract has old names.
 */
export function withOldNames(document: object, schemaOf: () => KeySchema | undefined, value: unknown): unknown {
  const carry = carrierOf(document)
  return carry ? carry(schemaOf(), value) : value
}

function carrierOf(document: object): Carry | null {
  const known = carriers.get(document)
  if (known !== undefined) return known
  const made = createCarry(document)
  carriers.set(document, made)
  return made
}

/** Does the same for a record, by the schema that its GET operation answers. */
export const recordWithOldNames = <Value>(document: object, operation: Operation | undefined, record: Value): Value =>
  operation ? (withOldNames(document, () => recordSchemaOf(document, operation), record) as Value) : record

function createCarry(document: object): Carry | null {
  const affected = schemasWithOldNames(document)
  if (affected.size === 0) return null
  const carry: Carry = (schema, value) => {
    if (schema === undefined || typeof value !== 'object' || value === null) return value
    if (schema.$ref !== undefined)
      return affected.has(schema.$ref) ? carry(schemaAt(document, schema.$ref), value) : value
    if (Array.isArray(value)) return schema.items ? value.map((each) => carry(schema.items, each)) : value
    let made = value as Json
    const set = (key: string, each: unknown): void => {
      if (made[key] !== each) made = { ...made, [key]: each }
    }
    for (const branch of [...(schema.anyOf ?? []), ...(schema.oneOf ?? []), ...(schema.allOf ?? [])])
      made = carry(branch, made) as Json
    for (const [key, property] of Object.entries(schema.properties ?? {})) {
      const name = property['x-alias']
      if (name !== undefined && Object.hasOwn(made, name)) set(key, made[name])
      // An event that was stored under the old name.
      else if (name !== undefined && Object.hasOwn(made, key)) set(name, made[key])
      else if (Object.hasOwn(made, key)) set(key, carry(property, made[key]))
    }
    return made
  }
  return carry
}

/** Returns the $refs of the schemas that have an old name, directly or in another schema. */
function schemasWithOldNames(document: object): Set<string> {
  const { components } = document as { components: Record<string, Record<string, unknown>> }
  const texts = Object.entries(components.schemas ?? {}).map(
    ([name, schema]) => [`#/components/schemas/${name}`, JSON.stringify(schema)] as const,
  )
  const found = new Set(texts.filter(([, text]) => text.includes('"x-alias"')).map(([$ref]) => $ref))
  for (let before = 0; before !== found.size; ) {
    before = found.size
    for (const [$ref, text] of texts) if ([...found].some((each) => text.includes(`"${each}"`))) found.add($ref)
  }
  return found
}

/** Returns the old names of the record's keys, by their new names. */
export function oldNamesOf(document: object, operation: Operation): Map<string, string> {
  if (carrierOf(document) === null) return new Map()
  const schema = recordSchemaOf(document, operation)
  return new Map(
    Object.entries(schema?.properties ?? {}).flatMap(([key, { 'x-alias': name }]: [string, Lifetime]) =>
      name === undefined ? [] : [[name, key] as const],
    ),
  )
}

const schemaAt = (document: object, $ref: string): KeySchema => componentOf(document, $ref) as KeySchema

const follow = (document: object, schema: KeySchema | undefined): KeySchema | undefined =>
  schema?.$ref === undefined ? schema : follow(document, schemaAt(document, schema.$ref))

interface Operation {
  path: string
  method: string
  status: number
}

/** Returns the schema of the JSON reply of an operation. */
export function replySchemaOf(document: object, { path, method, status }: Operation): KeySchema | undefined {
  const { paths } = document as Record<'paths', Record<string, Record<string, { responses?: Record<string, Reply> }>>>
  const reply = paths[path]?.[method]?.responses?.[status]
  const found = reply?.$ref === undefined ? reply : (schemaAt(document, reply.$ref) as Reply)
  return found?.content?.['application/json']?.schema
}

interface Reply {
  $ref?: string
  content?: Record<string, { schema?: KeySchema }>
}

/** Returns the schema of the record that an operation answers, or of the records in its list. */
export function recordSchemaOf(document: object, operation: Operation): KeySchema | undefined {
  const data = follow(document, follow(document, replySchemaOf(document, operation))?.properties?.data)
  return follow(document, data?.items) ?? data
}
