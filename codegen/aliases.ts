// Completes the old names of keys. openapi.yaml keeps an old key as
// `amount: { deprecated: true, x-deprecated-on: …, x-sunset: …, x-alias: lead_value }`. The
// served contract gives it the schema of its new key, and gives old names to the filters and sort
// keys of the operations about this record.
import { withOldNames } from '../src/contract/old-names.ts'
import {
  type ContractDocument,
  dataOf,
  isObject,
  listOperations,
  type Operation,
  type Parameter,
  resolve,
  type SchemaObject,
  successOf,
} from './read.ts'

/** The keys of an old name by its new name. */
type OldNames = Map<string, { name: string; lifetime: Record<string, unknown> }>

/** Returns a copy of the document in which old names are complete. */
export function withAliases(document: ContractDocument): ContractDocument {
  const schemas = (document.components?.schemas ?? {}) as Record<string, SchemaObject>
  if (!Object.values(schemas).some((schema) => oldNamesIn(schema).size > 0)) return document
  const made = structuredClone(document)
  const replies = schemasBelow(
    made,
    listOperations(made).map(({ operation }) => operation.responses),
  )
  for (const [name, schema] of Object.entries((made.components?.schemas ?? {}) as Record<string, SchemaObject>)) {
    const { properties = {} } = schema
    for (const [key, { name: old, lifetime }] of oldNamesIn(schema)) {
      // The schema of the key is copied, because openapi-backend drops the keys beside a $ref.
      const { $ref: _ref, 'x-since': _since, ...own } = properties[key] ?? {}
      const { examples: _examples, ...shared } = resolve(made, properties[key]) ?? {}
      properties[old] = { ...shared, ...own, description: `Old name of \`${key}\`.`, ...lifetime }
      const required = schema.required as string[] | undefined
      if (replies.has(name) && required?.includes(key) && !required.includes(old)) required.push(old)
    }
  }
  for (const name of replies) {
    const schema = made.components?.schemas?.[name] as SchemaObject
    if (schema?.examples)
      schema.examples = schema.examples.map((each) => withOldNames(made, () => schema as never, each))
  }
  addOldParameters(made)
  return made
}

/** Returns the old names of a schema's keys, by the new names. */
function oldNamesIn({ properties = {} }: SchemaObject): OldNames {
  const found: OldNames = new Map()
  for (const [name, { 'x-alias': key, deprecated, ...schema }] of Object.entries(properties)) {
    if (typeof key !== 'string') continue
    const { 'x-deprecated-on': on, 'x-sunset': sunset } = schema
    const lifetime = { deprecated, 'x-deprecated-on': on, 'x-sunset': sunset, 'x-replaced-by': key, 'x-alias': key }
    found.set(key, { name, lifetime })
  }
  return found
}

/** Returns the names of the schemas below the parts of a document. */
function schemasBelow(document: ContractDocument, part: unknown, found = new Set<string>()): Set<string> {
  for (const [, kind = '', name = ''] of JSON.stringify(part ?? {}).matchAll(/#\/components\/(\w+)\/([\w-]+)/g)) {
    if (found.has(name)) continue
    if (kind === 'schemas') found.add(name)
    schemasBelow(document, document.components?.[kind]?.[name], found)
  }
  return found
}

/**
 * Adds the old names of filters and sort keys to the operations about a record and those of its
 * tag.
 */
function addOldParameters(document: ContractDocument): void {
  const listed = listOperations(document)
  const recordNames = (operation: Operation): OldNames => {
    const data = resolve(document, dataOf(document, successOf(document, operation)?.reply))
    return data ? oldNamesIn(data) : new Map()
  }
  const byTag = new Map<string, OldNames>()
  for (const { operation } of listed) {
    const [tag = ''] = operation.tags ?? []
    byTag.set(tag, new Map([...(byTag.get(tag) ?? []), ...recordNames(operation)]))
  }
  for (const { operation, parameters } of listed) {
    const names: OldNames = new Map([...(byTag.get(operation.tags?.[0] ?? '') ?? []), ...recordNames(operation)])
    for (const { part } of names.size === 0 ? [] : parameters.filter((each) => each.part.in === 'query')) {
      const [, key = '', suffix = ''] = /^(\w+)(\[\w+\])?$/.exec(part.name ?? '') ?? []
      const old = names.get(key)
      if (old) addParameter(operation, part, `${old.name}${suffix}`, old.lifetime)
      const items = part.name === 'sort' ? resolve(document, part.schema?.items) : undefined
      if (Array.isArray(items?.enum)) addSortKeys(items, names)
    }
  }
}

function addParameter(operation: Operation, part: Parameter, name: string, lifetime: Record<string, unknown>): void {
  const suffix = name.slice(name.search(/\[|$/))
  const alias = `${lifetime['x-alias']}${suffix}`
  const { 'x-since': _since, ...rest } = part as Record<string, unknown>
  if (operation.parameters?.some((each) => each.name === name)) return
  operation.parameters?.push({
    ...rest,
    name,
    description: `Old name of \`${alias}\`.`,
    ...lifetime,
    'x-replaced-by': alias,
    'x-alias': alias,
  } as Parameter)
}

function addSortKeys(items: SchemaObject, names: OldNames): void {
  const keys = items.enum as string[]
  const aliases: Record<string, unknown> = { ...(isObject(items['x-aliases']) ? items['x-aliases'] : {}) }
  for (const [key, { name, lifetime }] of names) {
    if (!keys.includes(key) || keys.includes(name)) continue
    keys.push(name, `-${name}`)
    aliases[name] = { ...lifetime, 'x-alias': key }
    aliases[`-${name}`] = { ...lifetime, 'x-alias': `-${key}` }
    Object.assign(items, { 'x-aliases': aliases })
  }
}
