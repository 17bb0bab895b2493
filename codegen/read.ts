// Reads openapi.yaml: its text, hash, parsed document and the line of each object. Also exports
// helpers for the generators, such as following a $ref and listing the operations.
import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isAlias, isMap, isNode, isSeq, LineCounter, type Node, parseDocument } from 'yaml'
import { withCommonErrors } from './common-errors.ts'

export const contractFile = 'openapi.yaml'

export type Path = readonly (string | number)[]

export interface Reference {
  $ref?: string
}

export interface SchemaObject extends Reference {
  type?: string | string[]
  format?: string
  description?: string
  properties?: Record<string, SchemaObject>
  additionalProperties?: boolean | SchemaObject
  items?: SchemaObject
  oneOf?: SchemaObject[]
  anyOf?: SchemaObject[]
  allOf?: SchemaObject[]
  maximum?: number
  example?: unknown
  examples?: unknown[]
  default?: unknown
  [keyword: string]: unknown
}

export interface MediaType {
  schema?: SchemaObject
  example?: unknown
}

export interface Parameter extends Reference {
  name?: string
  in?: string
  required?: boolean
  schema?: SchemaObject
  example?: unknown
  examples?: unknown
}

export interface BodyOrResponse extends Reference {
  required?: boolean
  content?: Record<string, MediaType>
  headers?: Record<string, unknown>
  'x-deferred'?: boolean
}

export interface Operation {
  operationId?: string
  tags?: string[]
  summary?: string
  description?: string
  parameters?: Parameter[]
  requestBody?: BodyOrResponse
  responses?: Record<string, BodyOrResponse>
  security?: unknown[]
  'x-permission'?: string
  'x-any-user'?: string
  'x-ability'?: string
  'x-events'?: string[]
  'x-no-event'?: string
  'x-served-by'?: string
  [key: string]: unknown
}

export interface ContractDocument {
  openapi?: string
  tags?: { name: string; description?: string }[]
  security?: Record<string, unknown>[]
  paths?: Record<string, Record<string, unknown>>
  components?: Record<string, Record<string, unknown>>
  [key: string]: unknown
}

export interface Contract {
  text: string
  hash: string
  /**
   * The document that the server publishes. `default` is replaced with the exact statuses of
   * errors.
   */
  document: ContractDocument
  /** The document as written in openapi.yaml, with `default` responses. */
  source: ContractDocument
  /**
   * The first error of the YAML parser, with its place and source line. If there is one, the
   * document is empty. Further errors usually follow from the first.
   */
  problems: string[]
  /** The non-empty objects and lists that the YAML text writes with braces or brackets. */
  flowParts: WeakSet<object>
  lineOf: (path: Path) => number
}

/**
 * Returns the nearest folder from `from` upward that contains package.json and openapi.yaml. Works
 * from the sources and from dist.
 */
export function findRoot(from = dirname(fileURLToPath(import.meta.url))): string {
  for (let folder = from; ; folder = dirname(folder)) {
    if (existsSync(join(folder, 'package.json')) && existsSync(join(folder, contractFile))) return folder
    if (folder === dirname(folder)) throw new Error(`No folder above ${from} holds package.json and ${contractFile}.`)
  }
}

export function readContract(root: string): Contract {
  return parseContract(readFileSync(join(root, contractFile)))
}

export function parseContract(source: string | Buffer): Contract {
  const text = source.toString()
  const lines = new LineCounter()
  const parsed = parseDocument(text, { lineCounter: lines, prettyErrors: false })
  const value = parsed.errors.length === 0 ? parsed.toJS() : {}
  const written: ContractDocument = isObject(value) ? value : {}
  const flowParts = new WeakSet<object>()
  collectFlowParts(parsed.contents, written, flowParts)
  return {
    text,
    hash: createHash('sha256').update(source).digest('hex'),
    document: withCommonErrors(written),
    source: written,
    problems: parsed.errors.slice(0, 1).map((error) => syntaxFinding(text, error.message, lines.linePos(error.pos[0]))),
    flowParts,
    lineOf: (path) => {
      let offset = 0
      let node: unknown = parsed.contents
      for (const step of path) {
        if (isAlias(node)) node = node.resolve(parsed)
        let next: unknown
        if (isMap(node)) {
          const pair = node.items.find(({ key }) => String(isNode(key) ? key.toJSON() : key) === String(step))
          offset = start(pair?.key) ?? offset
          next = pair?.value
        } else if (isSeq(node)) {
          next = node.items[Number(step)]
          offset = start(next) ?? offset
        }
        if (next === undefined) break
        node = next
      }
      return lines.linePos(offset).line || 1
    },
  }
}

function syntaxFinding(text: string, message: string, { line, col }: { line: number; col: number }): string {
  const source = text.split('\n')[line - 1] ?? ''
  return `${contractFile}:${line}:${col} ${message}\n  ${source}\n  ${' '.repeat(Math.max(0, col - 1))}^`
}

function collectFlowParts(node: unknown, value: unknown, found: WeakSet<object>): void {
  if (isSeq(node) && Array.isArray(value)) {
    if (node.flow && value.length > 0) found.add(value)
    for (const [index, item] of node.items.entries()) collectFlowParts(item, value[index], found)
  } else if (isMap(node) && isObject(value)) {
    if (node.flow && node.items.length > 0) found.add(value)
    for (const { key, value: below } of node.items) collectFlowParts(below, value[String(key)], found)
  }
}

function start(node: unknown): number | undefined {
  return isNode(node) ? (node as Node).range?.[0] : undefined
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/**
 * Returns the path that a local $ref points to: `['components', 'schemas', 'Lead']` for
 * `#/components/schemas/Lead`.
 */
export function refPath($ref: string): string[] {
  return $ref
    .replace(/^#\//, '')
    .split('/')
    .map((step) => decodeURIComponent(step).replaceAll('~1', '/').replaceAll('~0', '~'))
}

/**
 * Returns `part`, or the target of its $ref. Returns undefined if the $ref is dangling or circular.
 */
export function resolve<T extends Reference>(document: ContractDocument, part: T | undefined): T | undefined {
  return locate(document, part, [])?.part
}

/**
 * Resolves a $ref as `resolve` does, and also returns the path of the target. A finding can then
 * point to the target.
 */
export function locate<T extends Reference>(
  document: ContractDocument,
  part: T | undefined,
  at: Path,
): { part: T; at: Path } | undefined {
  let found: unknown = part
  let path = at
  for (let hops = 0; hops < 20; hops++) {
    if (!isObject(found)) return undefined
    if (typeof found.$ref !== 'string') return { part: found as T, at: path }
    path = refPath(found.$ref)
    found = path.reduce<unknown>((node, step) => (isObject(node) ? node[step] : undefined), document)
  }
  return undefined
}

export const methods = ['get', 'post', 'put', 'delete', 'patch', 'options', 'head', 'trace'] as const

export interface Listed {
  id: string
  method: string
  path: string
  operation: Operation
  at: Path
  /**
   * Each parameter with its $ref followed (`part`), the path of its definition (`at`) and the path
   * of its use (`usedAt`).
   */
  parameters: { part: Parameter; at: Path; usedAt: Path }[]
  isPublic: boolean
}

/** Returns all operations in the order of the contract. */
export function listOperations(document: ContractDocument): Listed[] {
  const listed: Listed[] = []
  for (const [path, item] of Object.entries(document.paths ?? {})) {
    if (!isObject(item)) continue
    for (const method of Object.keys(item).filter((key) => methods.some((known) => known === key))) {
      const operation = item[method] as Operation
      if (!isObject(operation)) continue
      const at = ['paths', path, method]
      listed.push({
        id: typeof operation.operationId === 'string' ? operation.operationId : `${method.toUpperCase()} ${path}`,
        method,
        path,
        operation,
        at,
        parameters: parametersOf(document, operation.parameters, at),
        isPublic: Array.isArray(operation.security) && operation.security.length === 0,
      })
    }
  }
  return listed
}

function parametersOf(document: ContractDocument, parameters: unknown, at: Path): Listed['parameters'] {
  if (!Array.isArray(parameters)) return []
  return parameters.flatMap((parameter: Parameter, index) => {
    const usedAt = [...at, 'parameters', index]
    const found = locate(document, parameter, usedAt)
    return found ? [{ ...found, usedAt }] : []
  })
}

/**
 * Returns whether the response is an alternative to the successful one: work that is too long for
 * one request continues after the response.
 */
export const isDeferred = (document: ContractDocument, reply: BodyOrResponse | undefined): boolean =>
  resolve(document, reply)?.['x-deferred'] === true

/**
 * Returns the successful response of an operation with its $ref followed. If the operation lists
 * 201 or 202 besides 200, then 200 is the response to a dry run and is skipped. A deferred response
 * does not count.
 */
export function successOf(
  document: ContractDocument,
  operation: Operation,
): { status: number; reply: BodyOrResponse } | undefined {
  const codes = Object.entries(operation.responses ?? {}).flatMap(([code, reply]) =>
    /^2\d\d$/.test(code) && !isDeferred(document, reply) ? [code] : [],
  )
  const status = codes.find((code) => code === '201' || code === '202') ?? codes[0]
  const reply = status === undefined ? undefined : resolve(document, operation.responses?.[status])
  return reply && { status: Number(status), reply }
}

/** Returns the schema of the JSON body, or of the first media type if there is no JSON. */
export function schemaOf(body: BodyOrResponse | undefined): SchemaObject | undefined {
  const content = body?.content ?? {}
  return (content['application/json'] ?? Object.values(content)[0])?.schema
}

/**
 * Returns the schema of the multipart form, or of the JSON body if there is no form. The form has
 * all properties of the JSON body and the files.
 */
export function widestOf(body: BodyOrResponse | undefined): SchemaObject | undefined {
  return body?.content?.['multipart/form-data']?.schema ?? schemaOf(body)
}

/** Returns the schema of `data` in a response, or of its items if `data` is a list. */
export function dataOf(document: ContractDocument, reply: BodyOrResponse | undefined): SchemaObject | undefined {
  const data = resolve(document, schemaOf(reply))?.properties?.data
  return resolve(document, data)?.items ?? data
}

/**
 * Returns the name of a place in the contract for a finding: the operationId, else the component,
 * else the path itself.
 */
export function namePlace(document: ContractDocument, at: Path): string {
  const [top, section, name] = at.map(String)
  if (top === 'components' && name !== undefined) return at.length > 3 ? `${name} ${at.slice(3).join('.')}` : name
  if (top === 'paths' && section !== undefined && name !== undefined) {
    const operation = document.paths?.[section]?.[name]
    return isObject(operation) && typeof operation.operationId === 'string'
      ? operation.operationId
      : `${section} ${name}`
  }
  return at.join('.')
}
