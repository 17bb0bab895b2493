// Renders src/contract/operations.gen.ts, the facts about each operation that the running server
// needs. One fact is `ignorable`: the read-only keys that the server ignores in a body, so that a
// client can PUT a record as the server returned it.
import { withAliases } from './aliases.ts'
import { isShown } from './headers.ts'
import {
  type BodyOrResponse,
  type Contract,
  type ContractDocument,
  dataOf,
  type Listed,
  listOperations,
  type Operation,
  resolve,
  type SchemaObject,
  schemaOf,
  successOf,
  widestOf,
} from './read.ts'
import { generatedLine } from './schema.ts'

export interface Ignorable {
  keys: string[]
  nested: Record<string, Ignorable>
  /** Advice for read-only keys, such as `send person_id` for the key `person`. */
  hints?: Record<string, string>
}

const types = `
export interface Ignorable {
  readonly keys: readonly string[]
  readonly nested: { readonly [property: string]: Ignorable }
  /** What to send instead of a key, if another key replaces it. */
  readonly hints?: { readonly [key: string]: string }
}

export interface OperationFact {
  readonly method: 'get' | 'post' | 'put' | 'delete'
  readonly path: string
  readonly tag: string
  readonly summary: string
  /** The status of success. Besides it, the statuses may have 206, and 200 for a dry run. */
  readonly status: number
  readonly statuses: readonly number[]
  /** Media types of a successful response, JSON first; empty without a body. */
  readonly produces: readonly string[]
  readonly consumes: readonly string[]
  readonly bodyRequired: boolean
  /** Maximum size of a multipart form in bytes; null if the operation takes no form. */
  readonly maxFormBytes: number | null
  /** Whether the texts of a form are bytes in any character set (x-bytes). */
  readonly takesBytes: boolean
  /** Whether the operation supports a dry run; otherwise the header Accord-Dry-Run is refused. */
  readonly dryRun: boolean
  readonly public: boolean
  readonly permission: string | null
  readonly ability: string | null
  /** Event base names, the main event first. */
  readonly events: readonly EventBase[]
  readonly servedBy: 'handler' | 'docs'
  /** Whether the response has a Location header with the new record. */
  readonly location: boolean
  /** Whether scripts of any page may call it, without credentials (x-any-origin). */
  readonly isForAnyOrigin?: true
  /** Whether the response may have meta.warnings. */
  readonly warns?: true
  /** Keys of the record that follow from other fields, other records or the clock (x-derived). */
  readonly derivedKeys?: readonly string[]
  readonly query: { readonly [name: string]: 'array' | 'string' | 'integer' | 'boolean' | 'number' | 'object' }
  /**
   * Keys that the schema of the response has and the schema of the body lacks. The server refuses
   * them in a POST and drops them from a PUT.
   */
  readonly ignorable: Ignorable | null
}

export type AnyOperationId = keyof typeof operations
`

/** Returns the source of operations.gen.ts, or the JavaScript that a compiled server reads. */
export function renderOperations(contract: Contract, language: 'ts' | 'js' = 'ts'): string {
  const document = withAliases(contract.document)
  const listed = listOperations(document)
  const facts = Object.entries(operationFacts(document)).map(([id, fact]) => `  ${id}: ${JSON.stringify(fact)},\n`)
  const bases = [...new Set(listed.flatMap(({ operation }) => operation['x-events'] ?? []))].sort()
  const tags = (document.tags ?? []).map(({ name, description = '' }) => ({ name, slug: slugOf(name), description }))
  const isTs = language === 'ts'
  const stringsType = isTs ? ': readonly string[]' : ''
  return [
    `${generatedLine}\n`,
    `export const contractHash = '${contract.hash}'\n`,
    `export const tags = [\n${tags.map((tag) => `  ${JSON.stringify(tag)},\n`).join('')}]${isTs ? ' as const' : ''}\n`,
    `export const permissionKeys${stringsType} = ${listOf(permissionKeysOf(document))}\n`,
    `export const abilityAreas${stringsType} = ${listOf(abilityAreasOf(document))}\n`,
    isTs ? `export type EventBase =${bases.map((base) => `\n  | '${base}'`).join('') || ' never'}\n${types}` : '',
    `export const operations = {\n${facts.join('')}}${isTs ? ' as const satisfies Record<string, OperationFact>' : ''}\n`,
  ]
    .filter(Boolean)
    .join('\n')
}

/** Returns the facts of each operation, of the type `OperationFact` in operations.gen.ts. */
export function operationFacts(document: ContractDocument): Record<string, object> {
  const listed = listOperations(document)
  return Object.fromEntries(listed.map((each) => [each.id, factOf(document, each, listed)]))
}

const listOf = (words: readonly string[]): string => `[\n${words.map((word) => `  '${word}',\n`).join('')}]`

export function slugOf(tag: string): string {
  return tag.trim().toLowerCase().replace(/\s+/g, '-')
}

function factOf(
  document: ContractDocument,
  { id, method, path, operation, parameters, isPublic }: Listed,
  listed: readonly Listed[],
) {
  const creation = listed.find((each) => method === 'put' && each.method === 'post' && `${each.path}/{id}` === path)
  const success = successOf(document, operation)
  const body = resolve(document, operation.requestBody)
  const produced = Object.keys(success?.reply.content ?? {})
  const isJson = (type: string): boolean => type === 'application/json'
  return {
    method,
    path,
    tag: operation.tags?.[0] ?? '',
    summary: operation.summary ?? '',
    status: success?.status ?? 200,
    statuses: Object.keys(operation.responses ?? {})
      .map(Number)
      .filter((status) => status > 0),
    produces: [...produced.filter(isJson), ...produced.filter((type) => !isJson(type))],
    consumes: Object.keys(body?.content ?? {}),
    bodyRequired: body?.required === true,
    maxFormBytes: maxFormLength(document, body),
    takesBytes: resolve(document, schemaOf(body))?.['x-bytes'] === true,
    dryRun: parameters.some(({ part }) => part.name === 'Accord-Dry-Run'),
    public: isPublic,
    permission: operation['x-permission'] ?? null,
    ability: operation['x-ability'] ?? null,
    events: operation['x-events'] ?? [],
    servedBy: operation['x-served-by'] ?? 'handler',
    location: success?.status === 201 && isShown(document, path),
    ...(operation['x-any-origin'] === true && { isForAnyOrigin: true }),
    ...(warns(document, success?.reply) && { warns: true }),
    ...derivedKeysOf(document, success?.reply),
    query: Object.fromEntries(
      parameters
        .filter(({ part }) => part.in === 'query')
        .map(({ part }) => [part.name ?? '', queryType(document, part.schema)]),
    ),
    ignorable: returnsRecord.test(id)
      ? ignorableOf(
          document,
          widestOf(body),
          withCreated(document, shownBy(document, body, success?.reply), creation?.operation),
        )
      : null,
  }
}

const warns = (document: ContractDocument, reply: BodyOrResponse | undefined): boolean =>
  propertiesOf(document, propertiesOf(document, schemaOf(reply))?.meta)?.warnings !== undefined

function derivedKeysOf(document: ContractDocument, reply: BodyOrResponse | undefined): { derivedKeys?: string[] } {
  const properties = Object.entries(propertiesOf(document, dataOf(document, reply)) ?? {})
  const derivedKeys = properties.flatMap(([name, schema]) => (schema['x-derived'] === true ? [name] : []))
  return derivedKeys.length > 0 ? { derivedKeys } : {}
}

/**
 * Returns the permission keys that a role can hold, parents before children, from the schema
 * PermissionKey.
 */
export const permissionKeysOf = (document: ContractDocument): string[] =>
  ((document.components?.schemas?.PermissionKey as SchemaObject | undefined)?.enum ?? []) as string[]

/**
 * Returns the areas that the abilities of an API token can name, from `x-areas` in the schema of a
 * new token.
 */
export const abilityAreasOf = (document: ContractDocument): string[] => {
  const { properties } = (document.components?.schemas?.TokenCreate ?? {}) as SchemaObject
  return (properties?.abilities?.['x-areas'] ?? []) as string[]
}

const KiB = 1024
const MiB = 1024 * KiB

/**
 * Returns the maximum size of a multipart form in bytes, or null if the operation takes no form.
 * The size is the limit of the largest file, at least 25 MiB, plus 1 MiB for the other fields. All
 * files of a list together have the limit of one file. A form that has only enums gets 4 KiB.
 */
function maxFormLength(document: ContractDocument, body: BodyOrResponse | undefined): number | null {
  if (body?.content?.['multipart/form-data'] === undefined) return null
  const files = Object.values(propertiesOf(document, widestOf(body)) ?? {}).map((each) => resolve(document, each))
  if (files.every((each) => each?.type === 'string' && each.enum !== undefined)) return 4 * KiB
  const lengths = files.filter((each) => each?.format === 'binary').map((each) => Number(each?.maxLength ?? 0))
  return Math.max(25 * MiB, ...lengths) + MiB
}

function queryType(document: ContractDocument, schema: SchemaObject | undefined): string {
  const found = resolve(document, schema)
  const type = [found?.type ?? []].flat().find((each) => each !== 'null')
  if (type !== undefined) return type
  const branch = (found?.oneOf ?? found?.anyOf ?? [])[0]
  return branch ? queryType(document, branch) : 'string'
}

/**
 * Returns the schema of the response part that corresponds to the request body. Usually this is the
 * record. If `data` is a list, it corresponds to the first list in the body.
 */
export function shownBy(
  document: ContractDocument,
  body: BodyOrResponse | undefined,
  reply: BodyOrResponse | undefined,
): SchemaObject | undefined {
  const data = resolve(document, resolve(document, schemaOf(reply))?.properties?.data)
  if (data?.items === undefined) return dataOf(document, reply)
  const lists = Object.entries(propertiesOf(document, schemaOf(body)) ?? {}).filter(([, each]) => each.items)
  return lists[0] === undefined ? undefined : { properties: { [lists[0][0]]: data } }
}

/**
 * Returns `shown` with the keys that only the response to the creation contains, such as a secret.
 * A client may send these keys back in a PUT.
 */
function withCreated(document: ContractDocument, shown: SchemaObject | undefined, creation: Operation | undefined) {
  const [known, created] = [shown, creation && dataOf(document, successOf(document, creation)?.reply)].map((each) =>
    propertiesOf(document, each),
  )
  const isMore = known && Object.keys(created ?? {}).some((name) => known[name] === undefined)
  return isMore ? { properties: { ...created, ...known } } : shown
}

/**
 * Matches the operationIds of operations that accept read-only keys. In any other operation, such
 * as moveLead or login, a read-only key is a mistake of the client.
 */
export const returnsRecord = /^(create|update|upsert|convert)[A-Z]/

/**
 * Returns the keys that the response has and the body lacks, or null if there is no such key.
 * Nested objects and lists are compared, too.
 */
export function ignorableOf(
  document: ContractDocument,
  body: SchemaObject | undefined,
  reply: SchemaObject | undefined,
  open: readonly SchemaObject[] = [],
): Ignorable | null {
  const writable = propertiesOf(document, body)
  const shown = propertiesOf(document, reply)
  if (!writable || !shown || open.includes(shown)) return null
  const names = Object.keys(shown)
  const nested = names.flatMap((name) => {
    const below = ignorableOf(document, writable[name], shown[name], [...open, shown])
    return below ? [[name, below] as const] : []
  })
  const keys = names.filter((name) => writable[name] === undefined)
  if (keys.length + nested.length === 0) return null
  const hints = keys.flatMap((key) => {
    const hint = hintFor(document, key, shown[key], writable)
    return hint === undefined ? [] : [[key, hint] as const]
  })
  return { keys, nested: Object.fromEntries(nested), ...(hints.length > 0 && { hints: Object.fromEntries(hints) }) }
}

/**
 * Returns advice for a client that sends a read-only key: the text of `x-hint`, the name of the
 * body key that takes the id or ids of the shown record, or the reference that takes a record by
 * this key, such as `sku`.
 */
function hintFor(
  document: ContractDocument,
  key: string,
  shown: SchemaObject | undefined,
  writable: Record<string, SchemaObject>,
): string | undefined {
  const hint = shown?.['x-hint']
  if (typeof hint === 'string') return hint
  const ids = [`${key}_id`, `${key}_file_id`, `${key.replace(/s$/, '')}_ids`]
  const name = Object.keys(writable).find((each) => ids.includes(each) || each.endsWith(`_${key}_id`))
  const references = Object.entries(writable).map(
    ([name, each]) => [name, resolve(document, each) as SchemaObject] as const,
  )
  const example = references.find(([each]) => each === name)?.[1].examples?.find((each) => typeof each === 'object')
  if (name !== undefined) return `send ${name}${example ? `, such as ${JSON.stringify(example)}` : ''}`
  const takers = references.filter(
    ([, { 'x-reference': entity, oneOf = [] }]) =>
      entity !== undefined &&
      oneOf.some((branch) =>
        ((resolve(document, branch) as SchemaObject).required as string[] | undefined)?.includes(key),
      ),
  )
  return takers.length === 1 ? `send ${takers[0]?.[0]}, such as {"${key}": …}` : undefined
}

/**
 * Returns the properties of an object schema, of the items of a list, or of all object branches of
 * a oneOf or anyOf.
 */
export function propertiesOf(
  document: ContractDocument,
  schema: SchemaObject | undefined,
): Record<string, SchemaObject> | undefined {
  const found = resolve(document, schema)
  if (!found) return undefined
  if (found.properties) return found.properties
  if (found.items) return propertiesOf(document, found.items)
  const branches = (found.oneOf ?? found.anyOf ?? []).flatMap((branch) => propertiesOf(document, branch) ?? [])
  return branches.length > 0 ? Object.assign({}, ...branches) : undefined
}
