// Derives the documents that the reference page loads from the contract: an outline of all
// operations, and an OpenAPI 3.0 document for each tag. Swagger UI would need seconds to load the
// whole contract.
import { type ProblemCode, problemCodes } from '../../contract/output/problem-codes.ts'
import { slug } from '../../kernel/values/format.ts'
import { downLevel, exampleOf } from './page-schema.ts'
import {
  operationsOf,
  resolveServed,
  type ServedBody,
  type ServedDocument,
  type ServedOperation,
  type ServedParameter,
  schemasUsedBy,
} from './served-document.ts'

export interface OutlineOperation {
  id: string
  method: string
  path: string
  summary: string
  isPublic: boolean
  parameters: string[]
  codes: ProblemCode[]
}
export interface OutlineTag {
  name: string
  slug: string
  description: string
  operations: OutlineOperation[]
}

/** An error reply: its status and its possible problem codes. */
interface Refusal {
  status: string
  codes: ProblemCode[]
  description: string
}

/** Headers that nearly every response has. The guides describe them. */
const commonHeaders = new Set(['X-Request-Id', 'RateLimit', 'RateLimit-Policy'])

const isSuccess = (status: string): boolean => status.startsWith('2')

/** The errors of the request as a whole, which mean the same in nearly every operation. */
const commonStatuses = new Set(['400', '401', '403', '413', '415', '429', '503'])

const parametersOf = ({ parameters = [] }: ServedOperation, contract: ServedDocument): ServedParameter[] =>
  parameters.map((each) => resolveServed(contract, each)).flatMap(withoutObject)

/**
 * Replaces an object parameter by one parameter for each of its properties. Swagger UI fills the
 * form of an object with invented values, and sends them.
 */
function withoutObject(parameter: ServedParameter): ServedParameter[] {
  const { name, in: place, schema, description } = parameter
  if (schema?.type !== 'object') return [parameter]
  return Object.entries(schema.properties ?? {}).map(([property, { description: own, ...shape }]) => ({
    name: `${name}[${property}]`,
    in: place,
    description: own ?? description ?? '',
    schema: shape,
  }))
}

function refusalsOf({ responses }: ServedOperation, contract: ServedDocument): Refusal[] {
  return Object.entries(responses)
    .filter(([status]) => Number(status) >= 400)
    .map(([status, response]) => {
      const { description = '' } = resolveServed(contract, response)
      const words = [...description.matchAll(/`([a-z_]+)`/g)].map(([, word]) => word as ProblemCode)
      return { status, description, codes: words.filter((word) => word in problemCodes) }
    })
}

const commonOf = new WeakMap<ServedDocument, Refusal[]>()

/** Returns the most frequent error of each common status. */
function commonErrors(contract: ServedDocument): Refusal[] {
  const known = commonOf.get(contract)
  if (known) return known
  const counts = new Map<string, { refusal: Refusal; count: number }>()
  for (const { operation } of operationsOf(contract))
    for (const refusal of refusalsOf(operation, contract)) {
      const key = `${refusal.status} ${refusal.description}`
      counts.set(key, { refusal, count: (counts.get(key)?.count ?? 0) + 1 })
    }
  const byCount = [...counts.values()].sort((a, b) => b.count - a.count).map(({ refusal }) => refusal)
  const made = [...commonStatuses].flatMap((status) => byCount.find((each) => each.status === status) ?? [])
  commonOf.set(contract, made)
  return made
}

/** Returns the operations by tag, with the data for the list and the search. */
export function outlineOf(contract: ServedDocument): OutlineTag[] {
  const byTag = new Map<string, OutlineOperation[]>()
  for (const { path, method, operation } of operationsOf(contract)) {
    const tag = operation.tags[0] ?? ''
    const entry: OutlineOperation = {
      id: operation.operationId,
      method,
      path,
      summary: operation.summary,
      isPublic: operation.security?.length === 0,
      parameters: parametersOf(operation, contract).map(({ name }) => name),
      codes: refusalsOf(operation, contract).flatMap(({ codes }) => codes),
    }
    byTag.set(tag, [...(byTag.get(tag) ?? []), entry])
  }
  return contract.tags.map(({ name, description = '' }) => ({
    name,
    slug: slug(name),
    description,
    operations: byTag.get(name) ?? [],
  }))
}

/**
 * Returns the operations of a tag as an OpenAPI 3.0 document with the schemas that they use. The
 * response `default` and the list `x-errors` replace the error responses. `x-common` has the
 * statuses of an operation that the list `x-common-errors` of the document describes. `x-related`
 * lists other operations on the same record or its collection. The page groups parameters with the
 * same `x-field`.
 */
export function tagDocument(contract: ServedDocument, tag: OutlineTag): object {
  const paths: Record<string, Record<string, object>> = {}
  const common = commonErrors(contract)
  for (const { path, method, operation } of operationsOf(contract))
    if (operation.tags[0] === tag.name) {
      paths[path] ??= {}
      paths[path][method] = pageOperation(contract, path, operation, common)
    }
  const schemas = Object.fromEntries(
    Object.entries(schemasUsedBy(paths, contract.components)).map(([name, schema]) => [name, downLevel(schema)]),
  )
  const { title, version } = contract.info
  return {
    openapi: '3.0.3',
    info: { title, version },
    servers: [{ url: '/' }],
    tags: [{ name: tag.name, description: tag.description }],
    paths,
    components: { schemas, securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } } },
    'x-common-errors': common,
  }
}

function pageOperation(
  contract: ServedDocument,
  path: string,
  operation: ServedOperation,
  common: readonly Refusal[],
): object {
  const { operationId, tags, summary, description, requestBody, security } = operation
  const errors = refusalsOf(operation, contract)
  const isCommon = ({ status, description }: Refusal): boolean =>
    common.some((each) => each.status === status && each.description === description)
  const kept = Object.entries(operation).filter(([key]) => key.startsWith('x-'))
  return {
    operationId,
    tags,
    summary,
    ...(description !== undefined && { description }),
    security: security?.length === 0 ? [] : [{ bearer: [] }],
    ...Object.fromEntries(kept),
    'x-errors': errors.filter((each) => !isCommon(each)),
    'x-common': errors.filter(isCommon).map(({ status }) => status),
    'x-related': relatedTo(contract, path, operationId),
    parameters: parametersOf(operation, contract).map((each) => pageParameter(each, contract)),
    ...(requestBody && { requestBody: pageBody(requestBody, contract) }),
    responses: pageResponses(operation, contract),
  }
}

/**
 * Removes defaults and examples, because Swagger UI would put them into the form and send them.
 * Otherwise one click could delete record 7, because 7 is the example of an id.
 */
function pageParameter(
  { schema = {}, description = '', ...parameter }: ServedParameter,
  contract: ServedDocument,
): object {
  const { default: preset, example: _example, ...shape } = downLevel(resolveServed(contract, schema))
  const sentence = preset === undefined ? '' : ` Default: \`${String(preset)}\`.`
  const field = /^([^[]+)(\[\w+\])?$/.exec(parameter.name)?.[1] ?? parameter.name
  return {
    ...parameter,
    description: `${description}${sentence}`,
    schema: shape,
    'x-field': parameter.in === 'header' ? 'Request headers' : field,
  }
}

/** Returns a body with the last example of its schema, which has the most fields. */
function pageBody(body: ServedBody, contract: ServedDocument): object {
  const content = Object.entries(body.content ?? {}).map(([type, media]) => {
    const { examples = [] } = resolveServed(contract, media.schema ?? {})
    return [type, { example: examples.at(-1), ...media }] as const
  })
  return { ...body, content: pageContent(Object.fromEntries(content), contract) }
}

function pageContent(content: NonNullable<ServedBody['content']>, { components }: ServedDocument): object {
  // JSON first, because Swagger UI requests the first media type.
  const entries = Object.entries(content).sort(([a], [b]) => Number(b.endsWith('json')) - Number(a.endsWith('json')))
  return Object.fromEntries(
    entries.map(([type, { schema = {}, example }]) => {
      const isText = !/json|form/.test(type)
      return [
        type,
        { schema: downLevel(schema), ...(!isText && { example: example ?? exampleOf(schema, components) }) },
      ]
    }),
  )
}

function pageResponses({ responses }: ServedOperation, contract: ServedDocument): object {
  const successes = Object.entries(responses).filter(([status]) => isSuccess(status))
  const made = successes.map(([status, response]) => {
    const { description = '', content, headers = {} } = resolveServed(contract, response)
    const names = Object.keys(headers).filter((name) => !commonHeaders.has(name))
    const sentence = names.length > 0 ? ` Headers: ${names.map((name) => `\`${name}\``).join(', ')}.` : ''
    // For a creation, 200 is the reply to a dry run. Its schema is the same as that of 201.
    const isRepeated = status === '200' && responses['201'] !== undefined
    return [
      status,
      {
        description: description + sentence,
        ...(content && !isRepeated && { content: pageContent(content, contract) }),
      },
    ]
  })
  return Object.fromEntries([
    ...made,
    [
      'default',
      {
        description: 'A problem document.',
        content: { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } },
      },
    ],
  ])
}

/** The maximum number of related operations. */
const maxRelated = 8

/** Returns the other operations on the same record and on its collection. */
function relatedTo(contract: ServedDocument, path: string, operationId: string): object[] {
  const collection = path.replace(/\/\{[^/]*\}.*$/, '')
  const item = Object.keys(contract.paths).find(
    (each) => each.startsWith(`${collection}/{`) && /^[^/]*$/.test(each.slice(collection.length + 1)),
  )
  const near = [...new Set([path, item, collection])].flatMap((each) =>
    Object.values((each === undefined ? undefined : contract.paths[each]) ?? {}),
  )
  return near
    .filter((each) => each.operationId !== undefined && each.operationId !== operationId)
    .slice(0, maxRelated)
    .map((each) => ({ id: each.operationId, tag: each.tags[0], summary: each.summary }))
}
