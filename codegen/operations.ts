// src/contract/operations.gen.ts: what the running server needs to know of each operation, as plain facts.
// Also computes which reply-only keys a client may send back (`ignorable`), so that a GET can be PUT back.
import { isShown } from './headers.ts'
import {
  type Body,
  type Contract,
  type Document,
  dataOf,
  type Listed,
  listOperations,
  type Operation,
  resolve,
  type Schema,
  schemaOf,
  successOf,
  widestOf,
} from './read.ts'
import { generatedLine } from './schema.ts'

export interface Ignorable {
  keys: string[]
  nested: Record<string, Ignorable>
  /** What to send instead, by key, where something else is to be sent. */
  hints?: Record<string, string>
}

const types = `
export interface Ignorable {
  readonly keys: readonly string[]
  readonly nested: { readonly [property: string]: Ignorable }
  /** What to send instead, by key, where something else is to be sent. */
  readonly hints?: { readonly [key: string]: string }
}

export interface OperationFact {
  readonly method: 'get' | 'post' | 'put' | 'delete'
  readonly path: string
  readonly tag: string
  readonly summary: string
  /** The status of success; statuses may hold 206 beside it, and 200 for a dry run. */
  readonly status: number
  readonly statuses: readonly number[]
  /** Media types of a successful reply, JSON first; none when it has no body. */
  readonly produces: readonly string[]
  readonly consumes: readonly string[]
  readonly bodyRequired: boolean
  /** Bytes of a form with files, all of it; null when it takes none. */
  readonly longestForm: number | null
  /** Whether the texts of a form are bytes, whatever they were written in (x-bytes). */
  readonly takesBytes: boolean
  /** Whether it can be tried; else the header Accord-Dry-Run is refused. */
  readonly dryRun: boolean
  readonly public: boolean
  readonly permission: string | null
  readonly ability: string | null
  /** Event base names, the operation's own first. */
  readonly events: readonly EventBase[]
  readonly servedBy: 'handler' | 'docs'
  /** Whether the reply names the new record in a Location header. */
  readonly location: boolean
  /** Whether scripts of any page may call it, without credentials (x-any-origin). */
  readonly isForAnyOrigin?: true
  /** Keys of the record that follow from other fields, other records or the clock (x-derived). */
  readonly derivedKeys?: readonly string[]
  readonly query: { readonly [name: string]: 'array' | 'string' | 'integer' | 'boolean' | 'number' | 'object' }
  /** Keys of the reply that the body lacks: refused in a POST, dropped from a PUT. Null when there are none. */
  readonly ignorable: Ignorable | null
}

export type OperationId = keyof typeof operations
`

/** As TypeScript for the sources, or as the JavaScript a compiled server reads. */
export function renderOperations(contract: Contract, language: 'ts' | 'js' = 'ts'): string {
  const { document } = contract
  const listed = listOperations(document)
  const facts = listed.map((each) => `  ${each.id}: ${JSON.stringify(factOf(document, each, listed))},\n`).join('')
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
    `export const operations = {\n${facts}}${isTs ? ' as const satisfies Record<string, OperationFact>' : ''}\n`,
  ]
    .filter(Boolean)
    .join('\n')
}

const listOf = (words: readonly string[]): string => `[\n${words.map((word) => `  '${word}',\n`).join('')}]`

export function slugOf(tag: string): string {
  return tag.trim().toLowerCase().replace(/\s+/g, '-')
}

function factOf(
  document: Document,
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
    longestForm: maxFormLength(document, body),
    takesBytes: resolve(document, schemaOf(body))?.['x-bytes'] === true,
    dryRun: parameters.some(({ part }) => part.name === 'Accord-Dry-Run'),
    public: isPublic,
    permission: operation['x-permission'] ?? null,
    ability: operation['x-ability'] ?? null,
    events: operation['x-events'] ?? [],
    servedBy: operation['x-served-by'] ?? 'handler',
    location: success?.status === 201 && isShown(document, path),
    ...(operation['x-any-origin'] === true && { isForAnyOrigin: true }),
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

function derivedKeysOf(document: Document, reply: Body | undefined): { derivedKeys?: string[] } {
  const properties = Object.entries(dataOf(document, reply)?.properties ?? {})
  const derivedKeys = properties.flatMap(([name, schema]) => (schema['x-derived'] === true ? [name] : []))
  return derivedKeys.length > 0 ? { derivedKeys } : {}
}

/** The keys a role can hold, parents before children: the schema PermissionKey. */
export const permissionKeysOf = (document: Document): string[] =>
  ((document.components?.schemas?.PermissionKey as Schema | undefined)?.enum ?? []) as string[]

/** The areas of a token's abilities: `x-areas` of the abilities of a new token. */
export const abilityAreasOf = (document: Document): string[] => {
  const { properties } = (document.components?.schemas?.TokenCreate ?? {}) as Schema
  return (properties?.abilities?.['x-areas'] ?? []) as string[]
}

const KiB = 1024
const MiB = 1024 * KiB

/**
 * As long as its longest file, and a little more for the rest; a list of files shares what one may have. A form of nothing but short
 * texts has no more than a few KiB.
 */
function maxFormLength(document: Document, body: Body | undefined): number | null {
  if (body?.content?.['multipart/form-data'] === undefined) return null
  const files = Object.values(propertiesOf(document, widestOf(body)) ?? {}).map((each) => resolve(document, each))
  if (files.every((each) => each?.type === 'string' && each.enum !== undefined)) return 4 * KiB
  const lengths = files.filter((each) => each?.format === 'binary').map((each) => Number(each?.maxLength ?? 0))
  return Math.max(25 * MiB, ...lengths) + MiB
}

function queryType(document: Document, schema: Schema | undefined): string {
  const found = resolve(document, schema)
  const type = [found?.type ?? []].flat().find((each) => each !== 'null')
  if (type !== undefined) return type
  const branch = (found?.oneOf ?? found?.anyOf ?? [])[0]
  return branch ? queryType(document, branch) : 'string'
}

/** What the reply has of the body: the record, or a list of what the body has as its one list. */
function shownBy(document: Document, body: Body | undefined, reply: Body | undefined): Schema | undefined {
  const data = resolve(document, resolve(document, schemaOf(reply))?.properties?.data)
  if (data?.items === undefined) return dataOf(document, reply)
  const lists = Object.entries(propertiesOf(document, schemaOf(body)) ?? {}).filter(([, each]) => each.items)
  return lists[0] === undefined ? undefined : { properties: { [lists[0][0]]: data } }
}

/** With what only the reply to its creation shows, such as a secret: that can be sent back too. */
function withCreated(document: Document, shown: Schema | undefined, creation: Operation | undefined) {
  const [known, created] = [shown, creation && dataOf(document, successOf(document, creation)?.reply)].map((each) =>
    propertiesOf(document, each),
  )
  const isMore = known && Object.keys(created ?? {}).some((name) => known[name] === undefined)
  return isMore ? { properties: { ...created, ...known } } : shown
}

/** Only these take back what they reply; elsewhere (moveLead, login) a key of the reply in the body is a mistake. */
const returnsRecord = /^(create|update)[A-Z]/

/** What the reply has and the body lacks, at every depth where both are objects or lists of objects. */
export function ignorableOf(
  document: Document,
  body: Schema | undefined,
  reply: Schema | undefined,
  open: readonly Schema[] = [],
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
    const hint = hintFor(key, shown[key], writable)
    return hint === undefined ? [] : [[key, hint] as const]
  })
  return { keys, nested: Object.fromEntries(nested), ...(hints.length > 0 && { hints: Object.fromEntries(hints) }) }
}

/** What a reply-only key follows from: `x-hint`, else the key of the body that holds its id or ids. */
function hintFor(key: string, shown: Schema | undefined, writable: Record<string, Schema>): string | undefined {
  const hint = shown?.['x-hint']
  if (typeof hint === 'string') return hint
  const ids = [`${key}_id`, `${key}_file_id`, `${key.replace(/s$/, '')}_ids`]
  const name = Object.keys(writable).find((each) => ids.includes(each) || each.endsWith(`_${key}_id`))
  return name === undefined ? undefined : `send ${name}`
}

/** Properties of an object, of the elements of a list, or of all object branches of a choice together. */
function propertiesOf(document: Document, schema: Schema | undefined): Record<string, Schema> | undefined {
  const found = resolve(document, schema)
  if (!found) return undefined
  if (found.properties) return found.properties
  if (found.items) return propertiesOf(document, found.items)
  const branches = (found.oneOf ?? found.anyOf ?? []).flatMap((branch) => propertiesOf(document, branch) ?? [])
  return branches.length > 0 ? Object.assign({}, ...branches) : undefined
}
