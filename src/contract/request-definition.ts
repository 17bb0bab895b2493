// The half of the contract that openapi-backend needs: requests. output/reply-check.ts checks replies
// against the original document.
import type { Shape } from './input/normalise.ts'
import type { Parameters } from './input/query.ts'

export interface Definition {
  paths: Record<string, Record<string, unknown>>
  [key: string]: unknown
}

/** An operation as openapi-backend's router has it: the parameters of its path are among its own. */
export interface RequestOperation {
  parameters?: { name: string; in: string; schema: Shape }[]
  requestBody?: { content: Record<string, { schema?: Shape }> }
}

/** The schemas of what an operation is sent. */
export interface RequestShapes {
  params: Parameters
  query: Parameters
  body: Shape | undefined
}

export function requestShapes({ parameters = [], requestBody }: RequestOperation): RequestShapes {
  const shapesIn = (place: string): Parameters =>
    Object.fromEntries(parameters.filter((each) => each.in === place).map(({ name, schema }) => [name, schema]))
  const [body] = Object.values(requestBody?.content ?? {})
  return { params: shapesIn('path'), query: shapesIn('query'), body: body?.schema }
}

/**
 * What openapi-backend needs: requests only. Replies are checked in replies.ts from the original document, which keeps
 * the reply schemas, most of the contract, out of its dereferencing. Lists in the query are split in normalise.ts, hence no `explode`.
 */
export function requestDefinition(contract: object): Definition {
  const { components, paths, ...document } = contract as Contract
  const used: Record<string, unknown> = {}
  const copy = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(copy)
    if (typeof value !== 'object' || value === null) return value
    const made: Record<string, unknown> = {}
    for (const [key, each] of Object.entries(value)) if (!isProse(key, each)) made[key] = copy(each)
    // openapi-backend would not miss a file that is required; what it does not know it leaves alone.
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
    paths: Object.fromEntries(Object.entries(paths).map(([url, methods]) => [url, path(methods)])),
    components: { ...others, parameters: sent, schemas: used },
  }
}

/** Only one schema of a body is checked: that of a form has what JSON has, and files, which are told apart in form.ts. */
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
  paths: Record<string, Record<string, object>>
  components: {
    parameters: Record<string, { explode?: boolean; schema?: Parts & { items?: SortNames } }>
    schemas: Record<string, unknown>
    responses: object
  }
}

/** What is said to people: half of the contract, and of no use to a validator. */
const isProse = (key: string, value: unknown): boolean =>
  ((key === 'description' || key === 'summary') && typeof value === 'string') ||
  (key === 'examples' && Array.isArray(value))

interface Parts {
  additionalProperties?: unknown
  patternProperties?: Record<string, unknown>
}

/** What one parameter says of further keys, openapi-backend takes for a word about all of the query. */
function openParts(schema: Parts | undefined): void {
  if (typeof schema?.additionalProperties !== 'object') return
  schema.patternProperties = { '': schema.additionalProperties }
  delete schema.additionalProperties
}

interface SortNames {
  enum?: string[]
  [keyword: string]: unknown
}

/** The sort names of a list whose records have custom attributes (`x-entity`) are those of the contract and theirs. */
function openSort(names: SortNames | undefined): void {
  if (names?.enum === undefined || names['x-entity'] === undefined) return
  names.if = { pattern: '^-?custom_attributes\\.[a-z][a-z0-9_]*$' }
  names.else = { enum: names.enum }
  delete names.enum
}
