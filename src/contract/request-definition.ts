// Reduces the contract to its requests for openapi-backend. output/reply-check.ts checks replies
// with the full contract.
import { linesType } from './input/lines.ts'
import { type Shape, typesOf } from './input/normalize.ts'
import type { Parameters } from './input/query.ts'
import { shortExample } from './input/validation-errors.ts'
import { type Lifetime, lifetimeOf } from './lifetime.ts'

export interface RequestDefinition {
  paths: Record<string, Record<string, unknown>>
  [key: string]: unknown
}

/** An operation as the router of openapi-backend returns it, with the parameters of its path. */
export interface RequestOperation extends Lifetime {
  parameters?: ({ name: string; in: string; schema: Shape } & Lifetime)[]
  requestBody?: { content: Record<string, { schema?: Shape }> }
}

/** The schemas of an operation's parameters and body. */
export interface RequestShapes {
  /** The names of the numeric path parameters. */
  ids: readonly string[]
  query: Parameters
  body: Shape | undefined
  lifetime: Lifetime
}

export function requestShapes({ parameters = [], requestBody, ...operation }: RequestOperation): RequestShapes {
  const shapesIn = (place: string): Parameters =>
    Object.fromEntries(
      parameters
        .filter((each) => each.in === place)
        .map(({ name, schema, ...part }) => [name, { ...schema, ...lifetimeOf(part) }]),
    )
  const [body] = Object.values(requestBody?.content ?? {})
  const ids = Object.entries(shapesIn('path')).filter(([, shape]) => !typesOf(shape).includes('string'))
  return {
    ids: ids.map(([name]) => name),
    query: shapesIn('query'),
    body: body?.schema,
    lifetime: lifetimeOf(operation),
  }
}

/**
 * Returns the contract without replies, webhooks and documentation, which openapi-backend would
 * otherwise dereference. Also removes `explode`, because input/query.ts splits lists.
 */
export function requestDefinition(contract: object): RequestDefinition {
  const { components, paths, security, webhooks: _webhooks, ...document } = contract as Contract
  const used: Record<string, unknown> = {}
  const copy = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(copy)
    if (typeof value !== 'object' || value === null) return value
    const made: Record<string, unknown> = {}
    for (const [key, each] of Object.entries(value)) if (!isProse(key, each)) made[key] = copy(each)
    // The slice checks the value by the one schema that a sibling property tells (`x-typed-by`).
    if ('x-typed-by' in made) {
      made.type = 'object'
      delete made.anyOf
    }
    // openapi-backend drops required files with the format `binary`. The format `file` avoids this.
    if (made.format === 'binary') made.format = 'file'
    const name = /^#\/components\/schemas\/(.+)$/.exec(String(made.$ref))?.[1]
    if (name !== undefined && !(name in used)) {
      used[name] = {}
      used[name] = copy(components.schemas[name])
    }
    return made
  }
  const operation = (value: object): unknown =>
    copy('responses' in value ? { ...withoutForms(withoutLines(value as Taking)), responses: {} } : value)
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
    // The security schemes are alternatives. The definition keeps only the first, because the
    // pipeline checks all of them in one step.
    security: security.slice(0, 1),
    paths: Object.fromEntries(Object.entries(paths).map(([url, methods]) => [url, path(methods)])),
    components: { ...others, parameters: sent, schemas: used },
  }
}

/**
 * Uses the schema of the multipart form for every media type, because openapi-backend checks only
 * one. The form has all fields of the JSON body and also files. input/form.ts refuses files in
 * JSON.
 */
function withoutForms(operation: Taking): object {
  const { requestBody } = operation
  const form = requestBody?.content['multipart/form-data']
  if (!form) return operation
  const content = Object.fromEntries(Object.keys(requestBody.content).map((type) => [type, form]))
  return { ...operation, requestBody: { ...requestBody, content } }
}

/** Removes a body of lines, because each line is checked alone. */
function withoutLines({ requestBody, ...operation }: Taking): Taking {
  return requestBody === undefined || linesType in requestBody.content ? operation : { ...operation, requestBody }
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
 * Returns whether the key contains documentation, which is half of the contract. Error sentences
 * show short examples of objects.
 */
const isProse = (key: string, value: unknown): boolean =>
  ((key === 'description' || key === 'summary') && typeof value === 'string') ||
  (key === 'examples' && Array.isArray(value) && shortExample(value) === undefined)

interface Parts {
  additionalProperties?: unknown
  patternProperties?: Record<string, unknown>
}

/**
 * Moves `additionalProperties` of a parameter to `patternProperties`, because openapi-backend would
 * apply `additionalProperties` to the whole query.
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
 * Allows any custom attribute as a sort name if the records of the list have custom attributes
 * (`x-entity`).
 */
function openSort(names: SortNames | undefined): void {
  if (names?.enum === undefined || names['x-entity'] === undefined) return
  names.if = { pattern: '^-?custom_attributes\\.[a-z][a-z0-9_]*$' }
  names.else = { enum: names.enum }
  delete names.enum
}
