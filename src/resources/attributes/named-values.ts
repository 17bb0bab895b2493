// Values of custom attributes by name: a body may contain an object that names an option, or a
// record of a lookup. This module replaces the object by the id before the values are validated.
import { isJsonObject, type Json } from '../../contract/input/normalize.ts'
import type { OpenSchema } from '../../contract/input/open-schema.ts'
import type { Context } from '../../kernel/context.ts'
import { findOneNamed, maxHinted, maxHints, maxNamed, notOne } from '../../kernel/resource/named-references.ts'
import { namedLike } from '../../kernel/values/names.ts'
import type { Attribute } from './attribute-set.ts'
import { entityOfLookup, type LookupType } from './lookups.ts'
import { valueTypeOf } from './types.ts'

/** The schemas of the objects that name a record, by lookup type. Other types have no names. */
const schemasOf: Partial<Record<LookupType, readonly string[]>> = {
  users: ['ByExternalId', 'ByEmail', 'ByName'],
  persons: ['ByExternalId', 'ByEmail', 'ByName'],
  products: ['ByExternalId', 'BySku', 'ByName'],
  organizations: ['ByExternalId', 'ByName'],
  leads: ['ByExternalId'],
  quotes: ['ByExternalId'],
  lead_sources: ['ByExternalId', 'ByName'],
  lead_types: ['ByExternalId', 'ByName'],
  lead_pipelines: ['ByExternalId', 'ByName'],
  warehouses: ['ByExternalId', 'ByName'],
}

/** Returns the schema of a value in a body, with the objects that may stand for an id. */
export function withNamesIn(attribute: Attribute, schema: OpenSchema): OpenSchema {
  if (valueTypeOf(attribute)?.takes !== 'ids') return schema
  const { lookup, options } = attribute
  const names = lookup === null ? (options.length > 0 ? ['ByName'] : []) : (schemasOf[lookup] ?? [])
  if (names.length === 0) return schema
  const objects = names.map((name): OpenSchema => ({ $ref: `#/components/schemas/${name}` }))
  const { items } = schema
  return items ? { ...schema, items: { anyOf: [items, ...objects] } } : { anyOf: [schema, ...objects] }
}

interface Named {
  /** The values as sent, with ids in the place of names. */
  values: unknown
  /** Why a name has no id, by the path of the value. */
  refused: ReadonlyMap<string, string>
}

/** Replaces the names in the custom attributes of a body by ids. */
export async function idsOfNames(ctx: Context, attributes: readonly Attribute[], sent: unknown): Promise<Named> {
  const refused = new Map<string, string>()
  if (!isJsonObject(sent)) return { values: sent, refused }
  let count = 0
  const idOf = async (attribute: Attribute, path: string, value: unknown): Promise<unknown> => {
    if (!isJsonObject(value)) return value
    const found =
      ++count > maxNamed ? `Only ${maxNamed} names are read; send an id.` : await find(ctx, attribute, value, count - 1)
    if (typeof found === 'string') refused.set(path, found)
    return typeof found === 'number' ? found : value
  }
  const values: Json = Object.assign(Object.create(null), sent)
  for (const attribute of attributes) {
    const { code } = attribute
    if (!Object.hasOwn(sent, code) || valueTypeOf(attribute)?.takes !== 'ids') continue
    const value = sent[code]
    const path = `custom_attributes.${code}`
    if (!Array.isArray(value)) values[code] = await idOf(attribute, path, value)
    else if (value.some(isJsonObject)) {
      const ids: unknown[] = []
      for (const [index, each] of value.entries()) ids.push(await idOf(attribute, `${path}.${index}`, each))
      values[code] = ids
    }
  }
  return { values, refused }
}

/** Returns the id, a sentence that says why there is none, or null for an object without a name. */
async function find(ctx: Context, { lookup, options, name: noun }: Attribute, value: Json, earlier: number) {
  if (lookup !== null) return findOneNamed(ctx, entityOfLookup(lookup), value, earlier)
  const { name, ...others } = value
  if (typeof name !== 'string' || Object.keys(others).length > 0) return null
  const found = namedLike(options, name)
  const [option] = found
  if (option && found.length === 1) return option.id
  const ids = found.map(({ id }) => id)
  const isHinted = earlier < maxHints && name.length <= maxHinted
  const known = isHinted ? options.map((each) => each.name) : []
  return notOne(`option of ${noun}`, 'name', name.slice(0, 100), ids, known)
}
