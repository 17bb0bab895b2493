// Reads facts from the contract for generated tests: the body, parameters and examples of an
// operation, and the properties that refer to other records.

import { operationFacts } from '../../codegen/operations.ts'
import {
  type ContractDocument,
  type Listed,
  listOperations,
  type Parameter,
  resolve,
  type SchemaObject,
  widestOf,
} from '../../codegen/read.ts'
import { type OperationFact, operations } from '../../src/contract/operations.gen.ts'
import { clientContract, contract } from './contract.ts'

export type { SchemaObject } from '../../codegen/read.ts'

export const document = clientContract as ContractDocument
const known = (clientContract === contract ? operations : operationFacts(document)) as Record<string, OperationFact>
export const facts = Object.entries(known)

export function fact(id: string): OperationFact {
  const found = known[id]
  if (!found) throw new Error(`The contract has no operation ${id}.`)
  return found
}

const listed = new Map<string, Listed>(listOperations(document).map((each) => [each.id, each]))

export function follow(schema: SchemaObject | undefined): SchemaObject {
  const found = resolve(document, schema) ?? {}
  const value = found['x-value']
  // `x-value` is more specific than the standard format or pattern beside it.
  if (typeof value !== 'string') return found
  const { pattern: _pattern, ...rest } = found
  return { ...rest, format: value }
}

/** Returns the schema of an operation's body, or undefined. */
export function bodySchema(id: string): SchemaObject | undefined {
  const body = widestOf(resolve(document, listed.get(id)?.operation.requestBody))
  return body && follow(body)
}

/** Returns whether the body consists of lines, which are answered one by one with status 200. */
export const takesLines = (id: string): boolean => fact(id).consumes.includes('application/x-ndjson')

/** Returns whether the operation reads by the `where` of its body, which may name any id. */
export const isQuestion = (id: string): boolean => bodySchema(id)?.properties?.where !== undefined

export function parametersOf(
  id: string,
  place: 'path' | 'query' | 'header',
): { name: string; schema: SchemaObject; required: boolean }[] {
  const found = (listed.get(id)?.parameters ?? [])
    .map(({ part }) => part)
    .filter((part: Parameter) => part.in === place)
  return found.map(({ name = '', schema, required = false }) => ({ name, schema: follow(schema), required }))
}

/** Returns whether the contract declares that a write fires no event (`x-no-event`). */
export const isSilent = (id: string): boolean => listed.get(id)?.operation['x-no-event'] !== undefined

export const takesHeader = (id: string, name: string): boolean =>
  parametersOf(id, 'header').some((each) => each.name === name)

export const typesOf = (schema: SchemaObject): string[] => [schema.type ?? []].flat()
export const requiredOf = (schema: SchemaObject): string[] => (schema.required as string[] | undefined) ?? []

/** Returns whether a property is a file or a list of files, which only a form can contain. */
export function isFile(shape: SchemaObject | undefined): boolean {
  const schema = follow(shape)
  return [schema, follow(schema.items)].some(({ format }) => format === 'binary')
}

/** Returns whether the body of an operation can only be a multipart form. */
export const takesFormOnly = (id: string): boolean => {
  const { consumes } = fact(id)
  return consumes.includes('multipart/form-data') && !consumes.includes('application/json')
}

/** Returns a valid value: the first example of the schema, or a generated value. */
export function sample(shape: SchemaObject | undefined): unknown {
  const schema = follow(shape)
  if (schema.examples !== undefined && schema.examples.length > 0) return structuredClone(schema.examples[0])
  const options = (schema.enum as unknown[] | undefined) ?? []
  if (options.length > 0) return options[0]
  const branch = (schema.anyOf ?? schema.oneOf ?? [])[0]
  if (branch) return sample(branch)
  const [type] = typesOf(schema)
  if (type === 'string') return sampleText(schema)
  if (type === 'integer' || type === 'number') return (schema.minimum as number | undefined) ?? 1
  if (type === 'boolean') return true
  if (type === 'array') return schema.items ? [sample(schema.items)] : []
  if (type !== 'object') return null
  return Object.fromEntries(requiredOf(schema).map((name) => [name, sample(schema.properties?.[name])]))
}

const textOf: Record<string, string> = {
  email: 'someone@example.com',
  phone: '+1 202 555 0100',
  date: '2026-03-31',
  'date-time': '2026-03-01T09:30:00.000Z',
  instant: '2026-03-01',
  country: 'GB',
}

function sampleText({ format, pattern, minLength }: SchemaObject): string {
  if (format !== undefined && textOf[format] !== undefined) return textOf[format]
  if (typeof pattern === 'string') return /#/.test(pattern) ? '#0E90D9' : 'demo'
  return 'demo'.padEnd((minLength as number | undefined) ?? 0, 'o')
}

/**
 * The operations that create a record and return its location, by the last segment of their path.
 */
export const creators: ReadonlyMap<string, string> = new Map(
  facts.filter(([, { location }]) => location).map(([id, { path }]) => [path.split('/').at(-1) ?? '', id]),
)

const singular = (entity: string): string => entity.replace(/ies$/, 'y').replace(/([^y])s$/, '$1')

const externalPath = '/external/{source}/{external_id}'

/** Returns the operation that creates the records of an upsert; undefined for other operations. */
export function creatorOfUpsert(id: string): string | undefined {
  const { path } = fact(id)
  if (!path.endsWith(externalPath)) return undefined
  const list = path.slice(0, -externalPath.length)
  return facts.find(([, each]) => each.method === 'post' && each.path === list)?.[0]
}

/**
 * Returns the entity that a property with ids refers to, such as `lead_source_id`, `tag_ids` and
 * lists like `participants.users`.
 */
export function entityOf(property: string): string | undefined {
  // The ids of attachments to send are file ids. Stored attachments have other ids.
  if (property === 'attachment_ids') return 'files'
  const named = `_${property}`
  return [...creators.keys(), 'stages'].find(
    (entity) => property === entity || ['id', 'ids'].some((end) => named.endsWith(`_${singular(entity)}_${end}`)),
  )
}

/** Returns whether a property contains an id or a list of ids of other records. */
export function isReference(property: string, shape: SchemaObject | undefined): boolean {
  const schema = follow(shape)
  const holder = typesOf(schema).includes('array') ? follow(schema.items) : schema
  // A file may also be given as a file object.
  const branches = (holder.anyOf ?? holder.oneOf ?? [holder]).map(follow)
  return branches.some((each) => typesOf(each).includes('integer')) && entityOf(property) !== undefined
}

/**
 * Returns the operation at a path. Fixed segments take precedence over parameters for every method.
 */
export function operationAt(method: string, path: string): (OperationFact & { id: string }) | undefined {
  const wanted = method === 'HEAD' ? 'get' : method.toLowerCase()
  const [, place] = patterns.find(([pattern]) => pattern.test(path)) ?? []
  const [id, found] = facts.find(([, each]) => each.path === place && each.method === wanted) ?? []
  return id === undefined || found === undefined ? undefined : { ...found, id }
}

const patterns = [...new Set(facts.map(([, { path }]) => path))]
  .sort((one, other) => Number(one.includes('{')) - Number(other.includes('{')))
  .map((path) => [new RegExp(`^${path.replaceAll('.', '\\.').replaceAll(/\{\w+\}/g, '[^/]+')}/?$`), path] as const)
