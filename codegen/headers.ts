// Adds each header of components.x-headers to the responses that carry the header. The key
// `x-carried-by` of a header lists statuses, operationIds or words of `carriers`. Each header is
// defined once, because a copy in each response would fill a quarter of openapi.yaml.
import {
  type BodyOrResponse,
  type ContractDocument,
  isDeferred,
  isObject,
  type Operation,
  resolve,
  type SchemaObject,
  schemaOf,
} from './read.ts'

interface Reply {
  document: ContractDocument
  method: string
  path: string
  operation: Operation
  status: number
  reply: BodyOrResponse
}

/** Whether a response carries the header: always, or only for some media types or requests. */
type Carried = 'always' | 'sometimes' | false

const takes = (parameter: string, { document, operation }: Reply): boolean =>
  (operation.parameters ?? []).some((each) => resolve(document, each)?.name === parameter)

const types = ({ reply }: Reply): string[] => Object.keys(reply.content ?? {})
const propertiesOf = ({ document, reply }: Reply): Record<string, SchemaObject> =>
  resolve(document, schemaOf(reply))?.properties ?? {}
const isSuccess = ({ status }: Reply): boolean => status >= 200 && status < 300
const lists = (status: number, { operation }: Reply): boolean => operation.responses?.[String(status)] !== undefined

/**
 * Returns whether the media type is a file to download. JSON, YAML, HTML, Markdown, plain text,
 * scripts and event streams are not.
 */
const isFile = (type: string): boolean =>
  !/json$|^text\/(html|markdown|plain|javascript|event-stream)$|yaml$/.test(type)
const isFileOrLines = (type: string): boolean => isFile(type) || type === 'application/x-ndjson'

/**
 * The words allowed in `x-carried-by`, each with a test of whether a response carries the header.
 */
export const carriers: Record<string, (reply: Reply) => Carried> = {
  every: () => 'always',
  /**
   * Selects each response of an operation with a rate limit, that is, an operation that lists 429.
   */
  limited: (reply) => (lists(429, reply) ? 'always' : false),
  /**
   * Selects successful responses with an ETag: those of GET, and those with a record that has a
   * version. An event stream has no ETag.
   */
  tagged(reply) {
    if (!isSuccess(reply)) return false
    if (lists(304, reply)) return types(reply).includes('text/event-stream') ? 'sometimes' : 'always'
    const { data } = propertiesOf(reply)
    const isVersioned = resolve(reply.document, data)?.properties?.version !== undefined
    return data !== undefined && (reply.method === 'get' || isVersioned) ? 'always' : false
  },
  /** Selects successful responses of an operation that scripts of any page may call. */
  open: (reply) => (isSuccess(reply) && reply.operation['x-any-origin'] === true ? 'always' : false),
  /** Selects 201 responses for a new record that has its own GET operation. */
  located: ({ status, document, path }) => (status === 201 && isShown(document, path) ? 'always' : false),
  paged: (reply) => (isSuccess(reply) && propertiesOf(reply).links !== undefined ? 'always' : false),
  /** Selects pages of a feed, which continues after the id in `meta.next_after`. */
  followed(reply) {
    const meta = resolve(reply.document, propertiesOf(reply).meta)
    return isSuccess(reply) && meta?.properties?.next_after !== undefined ? 'sometimes' : false
  },
  keyed: (reply) => (isSuccess(reply) && takes('Idempotency-Key', reply) ? 'sometimes' : false),
  rehearsed: (reply) =>
    (reply.status === 200 || isDeferred(reply.document, reply.reply)) && takes('Accord-Dry-Run', reply)
      ? 'sometimes'
      : false,
  /** Selects responses to calls that can use a deprecated part (codegen/aliases.ts). */
  deprecated({ document, operation }) {
    const { deprecated, parameters, requestBody } = operation
    const sent = [parameters, requestBody].map((part) => [part, ...partsBelow(document, part)])
    return JSON.stringify([{ deprecated }, sent]).includes('"deprecated":true') ? 'sometimes' : false
  },
  ranged: (reply) => (isSuccess(reply) && lists(206, reply) ? 'always' : false),
  file(reply) {
    if (!isSuccess(reply) || !types(reply).some(isFileOrLines)) return false
    return types(reply).every(isFileOrLines) ? 'always' : 'sometimes'
  },
}

/**
 * Returns whether a record created at the path has its own GET operation. A link between records
 * has no GET operation.
 */
export const isShown = (document: ContractDocument, path: string): boolean =>
  Object.entries(document.paths ?? {}).some(
    ([each, item]) => each !== path && each.replace(/\/\{\w+\}$/, '') === path && item.get !== undefined,
  )

/** Returns the components to which a part refers, directly or through others. */
function partsBelow(document: ContractDocument, part: unknown, found = new Map<string, unknown>()): unknown[] {
  for (const [, $ref = ''] of JSON.stringify(part ?? {}).matchAll(/"\$ref":"([^"]+)"/g)) {
    if (found.has($ref)) continue
    const target = resolve(document, { $ref })
    found.set($ref, target)
    partsBelow(document, target, found)
  }
  return [...found.values()]
}

interface Header {
  required?: boolean
  'x-carried-by'?: string[]
  [key: string]: unknown
}

/** Returns a copy of the document in which each response declares the headers that it carries. */
export function withHeaders(document: ContractDocument): ContractDocument {
  const made = structuredClone(document)
  const { 'x-headers': carried = {}, headers: others = {}, ...components } = made.components ?? {}
  const headers = { ...others, ...carried } as Record<string, Header>
  if (Object.keys(headers).length > 0) made.components = { headers, ...components }
  const declare = (reply: BodyOrResponse, name: string, carried: Carried): void => {
    const header = headers[name]
    if (!carried || !header) return
    const declared = (reply.headers ?? {}) as Record<string, unknown>
    const { required, 'x-carried-by': _rule, ...optional } = header
    declared[name] ??= carried === 'always' || !required ? { $ref: `#/components/headers/${name}` } : optional
    reply.headers = declared
  }
  const rules = Object.entries(headers).map(([name, { 'x-carried-by': words = [] }]) => [name, words] as const)
  for (const [path, item] of Object.entries(made.paths ?? {})) {
    for (const [method, operation] of Object.entries(item) as [string, Operation][]) {
      if (!isObject(operation.responses)) continue
      for (const [code, reply] of Object.entries(operation.responses as Record<string, BodyOrResponse>)) {
        if (reply.$ref !== undefined) continue
        const about = { document, method, path, operation, status: Number(code), reply }
        for (const [name, words] of rules) {
          const isNamed = (word: string): boolean =>
            word === code || (word === operation.operationId && isSuccess(about))
          const found = words.map((word) => (isNamed(word) ? 'always' : carriers[word]?.(about)))
          declare(reply, name, found.find((each) => each === 'always') ?? found.find(Boolean) ?? false)
        }
      }
    }
  }
  const hasDeprecated = JSON.stringify([document.paths, document.components]).includes('"deprecated":true')
  // Shared responses are errors. Each shared response carries the headers of its status and the
  // headers with the words `every`, `limited`, `open` and `deprecated`.
  for (const [component, reply] of Object.entries(
    (made.components?.responses ?? {}) as Record<string, BodyOrResponse>,
  )) {
    const status = statusOf(document, component)
    for (const [name, words] of rules) {
      const isAlways = words.some((word) => word === status || word === 'every' || word === 'limited')
      // A script of another origin that may read the success may read the error.
      const isSometimes = words.includes('open') || (hasDeprecated && words.includes('deprecated'))
      declare(reply, name, isAlways ? 'always' : isSometimes && 'sometimes')
    }
  }
  // A contract without a deprecated part has no response with these headers.
  for (const [name, words] of rules) if (!hasDeprecated && words.join() === 'deprecated') delete headers[name]
  for (const header of Object.values(headers)) delete header['x-carried-by']
  return made
}

/**
 * Returns the status of a shared response, taken from the first operation that uses the response.
 */
export function statusOf(document: ContractDocument, component: string): string | undefined {
  const $ref = `#/components/responses/${component}`
  for (const item of Object.values(document.paths ?? {}))
    for (const operation of Object.values(item) as Operation[])
      for (const [status, reply] of Object.entries(operation.responses ?? {})) if (reply.$ref === $ref) return status
  return undefined
}
