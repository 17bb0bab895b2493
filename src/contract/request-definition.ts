// The contract as openapi-backend gets it: the request half, with compiled validators that servers of one process share and
// a router that already knows the operation.
import type { Ajv } from 'ajv'
import type { OpenAPIBackend } from 'openapi-backend'
import { newAjv } from './ajv.ts'
import type { Shape } from './input/normalise.ts'
import type { Parameters } from './input/query.ts'

export interface Definition {
  paths: Record<string, Record<string, unknown>>
  [key: string]: unknown
}

export interface Matched {
  operationId: string
  path: string
  method: string
  parameters?: { name: string; in: string; schema: Shape }[]
  requestBody?: { content: Record<string, { schema?: Shape }> }
}

const ofRequests = {
  useDefaults: true,
  verbose: true,
  // Sentences are our own (validation-errors.ts).
  messages: false,
} as const

interface Prepared {
  definition: Definition
  bodies: Ajv
  parameters: Ajv
  /** What the first server has read; others take it over. */
  known?: Promise<Known>
}

interface Known {
  definition: OpenAPIBackend['definition']
  router: OpenAPIBackend['router']
  /** Its validators are compiled on first use. */
  validator: OpenAPIBackend['validator']
  matched: ReadonlyMap<string, Matched>
  /** The query parameters of every operation, by operationId. */
  queries: ReadonlyMap<string, Parameters>
}

const preparations = new WeakMap<object, Prepared>()

/** What follows from the contract alone. Servers of one process that serve the same contract share it. */
export function prepared(document: object): Prepared {
  const known = preparations.get(document)
  if (known) return known
  const made: Prepared = {
    definition: requestSide(document as Contract),
    bodies: newAjv(ofRequests),
    parameters: newAjv({ ...ofRequests, coerceTypes: true }),
  }
  preparations.set(document, made)
  return made
}

/** Makes it ready to answer. */
export async function initialise(api: OpenAPIBackend, document: object): Promise<Known> {
  const made = prepared(document)
  const isFirst = made.known === undefined
  made.known ??= read(api)
  const known = await made.known
  if (isFirst) return known
  const { definition, router, validator } = known
  Object.assign(api, { definition, router, validator, initialized: true })
  return known
}

async function read(api: OpenAPIBackend): Promise<Known> {
  // The document is at hand; it would be searched for references to files.
  api.loadDocument = async () => api.inputDocument as typeof api.document
  await api.init()
  const { definition, router, validator } = api
  // It makes an Ajv of its own each time before it asks for ours.
  const { customizeAjv } = validator
  if (customizeAjv) validator.getAjv = (part, options) => customizeAjv(undefined as never, options ?? {}, part)
  const matched = rememberOperations(api)
  return { definition, router, validator, matched, queries: queryParameters(matched) }
}

/**
 * What openapi-backend needs: requests only. Replies are checked in replies.ts from the original document, which keeps
 * the reply schemas, most of the contract, out of its dereferencing. Lists in the query are split in normalise.ts, hence no `explode`.
 */
function requestSide({ components, paths, ...document }: Contract): Definition {
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
  requestBody?: Matched['requestBody']
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

/** openapi-backend lists all operations and builds a RegExp per path on every request; the route already knows. */
function rememberOperations(api: OpenAPIBackend): Map<string, Matched> {
  const all = api.router.getOperations()
  const byId = new Map(all.map((operation) => [operation.operationId ?? '', operation]))
  api.router.getOperations = () => all
  api.router.getOperation = (id: string) => byId.get(id)
  api.router.matchOperation = ((request: { operationId: string }) => byId.get(request.operationId)) as never
  return byId as unknown as Map<string, Matched>
}

const queryParameters = (matched: ReadonlyMap<string, Matched>): ReadonlyMap<string, Parameters> =>
  new Map(
    [...matched].map(([id, { parameters = [] }]) => [
      id,
      Object.fromEntries(parameters.filter((each) => each.in === 'query').map(({ name, schema }) => [name, schema])),
    ]),
  )
