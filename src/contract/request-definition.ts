// Reduces the contract to the requests, which is all that openapi-backend needs. For replies,
// output/reply-check.ts uses the full contract.
import { type Shape, typesOf } from './input/normalize.ts'
import type { Parameters } from './input/query.ts'

export interface RequestDefinition {
  paths: Record<string, Record<string, unknown>>
  [key: string]: unknown
}

/**
 * An operation as the router of openapi-backend returns it. `parameters` includes the parameters of
 * the path.
 */
export interface RequestOperation {
  parameters?: { name: string; in: string; schema: Shape }[]
  requestBody?: { content: Record<string, { schema?: Shape }> }
}

/** The schemas of an operation's parameters and body. */
export interface RequestShapes {
  /** The names of the numeric path parameters. */
  ids: readonly string[]
  query: Parameters
  body: Shape | undefined
}

export function requestShapes({ parameters = [], requestBody }: RequestOperation): RequestShapes {
  const shapesIn = (place: string): Parameters =>
    Object.fromEntries(parameters.filter((each) => each.in === place).map(({ name, schema }) => [name, schema]))
  const [body] = Object.values(requestBody?.content ?? {})
  const ids = Object.entries(shapesIn('path')).filter(([, shape]) => !typesOf(shape).includes('string'))
  return { ids: ids.map(([name]) => name), query: shapesIn('query'), body: body?.schema }
}

/**
 * Returns the contract without its replies and webhooks. The replies are most of the contract, and
 * openapi-backend would dereference them. Also removes `explode`, because read-request.ts splits
 * lists in the query.
 */
export function requestDefinition(contract: object): RequestDefinition {
  const { components, paths, security, webhooks: _webhooks, ...document } = contract as Contract
  const used: Record<string, unknown> = {}
  const copy = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(copy)
    if (typeof value !== 'object' || value === null) return value
    const made: Record<string, unknown> = {}
    for (const [key, each] of Object.entries(value)) if (!isProse(key, each)) made[key] = copy(each)
    // openapi-backend would drop a required file whose format is `binary`. It does not know the
    // format `file`.
    if (made.format === 'binary') made.format = 'file'
    const name = /^#\/components\/schemas\/(.+)$/.exec(String(made.$ref))?.[1]
    if (name !== undefined && !(name in used)) {
      used[name] = {}
      used[name] = copy(components.schemas[name])
    }
    return made
  }
  const operation = (value: object): unknown =>
    copy('responses' in value ? { ...withoutForms(value as Taking), responses: {} } : value)
  const path = (methods: Record<string, object>): Record<string, unknown> =>
    Object.fromEntries(Object.entries(methods).map(([method, value]) => [method, operation(value)]))
  const { schemas: _schemas, responses: _responses, parameters, ...others } = components
  const sent = copy(parameters) as Contract['components']['parameters']
  for (const parameter of Object.values(sent)) {
    delete parameter.explode
    openSort(parameter.schema?.items)
    openParts(parameter.schema)
  }
  return {
    ...document,
    // The security schemes are alternatives. The pipeline checks all schemes in one step, so the
    // definition keeps only the first.
    security: security.slice(0, 1),
    paths: Object.fromEntries(Object.entries(paths).map(([url, methods]) => [url, path(methods)])),
    components: { ...others, parameters: sent, schemas: used },
  }
}

/**
 * Uses the schema of the multipart form for every media type, because openapi-backend checks only
 * one. The form has all fields of the JSON body and also files. form.ts refuses a text in place of
 * a file.
 */
function withoutForms(operation: Taking): object {
  const { requestBody } = operation
  const form = requestBody?.content['multipart/form-data']
  if (!form) return operation
  const content = Object.fromEntries(Object.keys(requestBody.content).map((type) => [type, form]))
  return { ...operation, requestBody: { ...requestBody, content } }
}

interface Taking {
  requestBody?: RequestOperation['requestBody']
}

interface Contract {
  webhooks?: object
  security: readonly Record<string, string[]>[]
  paths: Record<string, Record<string, object>>
  components: {
    parameters: Record<string, { explode?: boolean; schema?: Parts & { items?: SortNames } }>
    schemas: Record<string, unknown>
    responses: object
  }
}

/**
 * Returns whether the key holds documentation. Documentation is half of the contract, and the
 * validator does not need it.
 */
const isProse = (key: string, value: unknown): boolean =>
  ((key === 'description' || key === 'summary') && typeof value === 'string') ||
  (key === 'examples' && Array.isArray(value))

interface Parts {
  additionalProperties?: unknown
  patternProperties?: Record<string, unknown>
}

/**
 * Moves `additionalProperties` to `patternProperties`. openapi-backend would apply the
 * `additionalProperties` of one parameter to the whole query.
 */
function openParts(schema: Parts | undefined): void {
  if (typeof schema?.additionalProperties !== 'object') return
  schema.patternProperties = { '': schema.additionalProperties }
  delete schema.additionalProperties
}

interface SortNames {
  enum?: string[]
  [keyword: string]: unknown
}

/**
 * Allows the custom attributes of the installation as sort names. Does so for a list whose records
 * have custom attributes (`x-entity`).
 */
function openSort(names: SortNames | undefined): void {
  if (names?.enum === undefined || names['x-entity'] === undefined) return
  names.if = { pattern: '^-?custom_attributes\\.[a-z][a-z0-9_]*$' }
  names.else = { enum: names.enum }
  delete names.enum
}
