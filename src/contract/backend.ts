// openapi-backend, set up once: it routes to the operation, runs security and permission, validates, and calls the handler.
// The order is that of DOMAIN 4.3. What each step means is given by the caller as a Pipeline.
import type { Ajv, ErrorObject, Ajv as PlainAjv } from 'ajv'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { type Context as BackendContext, OpenAPIBackend } from 'openapi-backend'
import { addFormats, controlCharacters } from './formats.ts'
import { normaliseBody, type Reading, readQuery, type Shape } from './normalise.ts'
import { type OperationFact, type OperationId, operations } from './operations.gen.ts'
import { fieldErrors, Problem } from './problems.ts'

/** One request on its way through the pipeline. */
export interface Call {
  readonly operation: OperationId
  readonly fact: OperationFact
  readonly method: string
  readonly path: string
  readonly headers: Record<string, string | string[] | undefined>
  readonly query: string
  readonly body: Buffer | undefined
  /** The server's own request, for the caller's address. */
  readonly request: { ip: string; id: string; protocol: string; host: string }
  /** Filled by `authenticate`; the caller's own. */
  context?: unknown
  refused?: unknown
}

export interface Input {
  params: Record<string, unknown>
  query: Record<string, unknown>
  body: unknown
}

export interface Pipeline {
  /** Who is calling. Throws a 401 problem. */
  authenticate(call: Call): Promise<void>
  /** Prepares a call that needs no token. */
  welcome(call: Call): void
  /** May they. Throws a 403 problem. */
  authorize(call: Call): void
  /** Throws 404 or 412 for the record in the path: it is looked up before a refused body is reported. */
  locate(call: Call, params: Record<string, unknown>): Promise<void>
  handle(call: Call, input: Input): Promise<unknown>
}

export interface Backend {
  handle(call: Call): Promise<unknown>
  /** Compiles every validator, so that no request has to wait for it. */
  warmUp(): Promise<void>
}

interface Definition {
  paths: Record<string, Record<string, unknown>>
  [key: string]: unknown
}

interface Matched {
  operationId: string
  path: string
  method: string
  requestBody?: { content: Record<string, { schema?: Shape }> }
}

interface InternalRequest {
  method: string
  path: string
  headers: Record<string, string | string[]>
  query: Record<string, unknown>
  body?: unknown
  operationId: OperationId
}

const ajvOptions = { strict: false, validateSchema: false, allErrors: true, useDefaults: true, verbose: true } as const

export async function createBackend(document: object, pipeline: Pipeline, reading: Reading): Promise<Backend> {
  const { definition, bodies, parameters, validators } = prepared(document)
  const api = new OpenAPIBackend({
    definition: definition as never,
    quick: true,
    strict: true,
    coerceTypes: true,
    // The types of openapi-backend know Ajv's draft-07 class only; both share one implementation.
    customizeAjv: ((_ajv: PlainAjv, _options: unknown, part: unknown) =>
      part === 'requestBodyValidator' ? bodies : parameters) as never,
  })
  await api.init()
  api.validator.requestValidators = validators
  const matched = rememberOperations(api)

  api.registerSecurityHandler('bearer', async (_context, call: Call) => {
    try {
      await pipeline.authenticate(call)
      return true
    } catch (error) {
      call.refused = error
      return false
    }
  })
  api.register({
    postSecurityHandler: (context: BackendContext, call: Call, request: InternalRequest) => {
      if (!call.fact.public && context.security?.authorized !== true) return
      if (call.fact.public) pipeline.welcome(call)
      pipeline.authorize(call)
      request.query = readQuery(call.query, call.fact, reading)
      const schema = bodySchema(matched.get(call.operation))
      const body = readBody(call)
      if (body !== undefined) request.body = schema ? normaliseBody(body, schema, call.fact.ignorable, reading) : body
    },
    unauthorizedHandler: (_context: BackendContext, call: Call) => {
      throw call.refused ?? new Problem('unauthenticated')
    },
    validationFail: (context: BackendContext, call: Call) => refuse(context, call, pipeline),
    notFound: () => {
      throw new Problem('not_found')
    },
  })
  for (const [id, fact] of Object.entries(operations)) {
    if ((fact as OperationFact).servedBy === 'docs') continue
    api.registerHandler(id, (context: BackendContext, call: Call) => {
      const stray = strayCharacters(context.request.requestBody, [])
      if (Object.keys(stray).length > 0) throw new Problem('validation_failed', undefined, { errors: stray })
      const { query, requestBody } = context.request
      return pipeline.handle(call, { params: coercedParams(context), query, body: requestBody ?? {} })
    })
  }

  return {
    handle(call) {
      const request: InternalRequest = {
        method: call.fact.method,
        path: call.path,
        headers: call.headers as Record<string, string | string[]>,
        query: {},
        operationId: call.operation,
      }
      return api.handleRequest(request as never, call, request)
    },
    async warmUp() {
      for (const id of matched.keys()) {
        api.validator.getRequestValidatorsForOperation(id)
        await new Promise((resolve) => setImmediate(resolve))
      }
    },
  }
}

interface Prepared {
  definition: Definition
  bodies: Ajv
  parameters: Ajv
  /** Compiled on first use, by operationId. */
  validators: OpenAPIBackend['validator']['requestValidators']
}

const preparations = new WeakMap<object, Prepared>()

/** What follows from the contract alone. Servers of one process that serve the same contract share it. */
function prepared(document: object): Prepared {
  const known = preparations.get(document)
  if (known) return known
  const made: Prepared = {
    definition: requestSide(document),
    bodies: addFormats(new Ajv2020({ ...ajvOptions }) as unknown as Ajv),
    parameters: addFormats(new Ajv2020({ ...ajvOptions, coerceTypes: true }) as unknown as Ajv),
    validators: {},
  }
  preparations.set(document, made)
  return made
}

/**
 * What openapi-backend needs: requests only. Replies are checked in replies.ts from the original document, which keeps
 * the recursive reply schemas out of its dereferencing. Lists in the query are split in normalise.ts, hence no `explode`.
 */
function requestSide(document: object): Definition {
  const copy = structuredClone(document) as Definition & {
    components: { parameters: Record<string, { explode?: boolean }>; schemas: object }
  }
  for (const path of Object.values(copy.paths)) {
    for (const operation of Object.values(path)) {
      if (typeof operation === 'object' && operation !== null && 'responses' in operation) {
        operation.responses = {}
      }
    }
  }
  for (const parameter of Object.values(copy.components.parameters)) delete parameter.explode
  const used = new Set<string>()
  const follow = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return
    for (const [key, each] of Object.entries(value)) {
      if (key === '$ref' && typeof each === 'string' && each.startsWith('#/components/schemas/')) {
        const name = each.slice('#/components/schemas/'.length)
        if (!used.has(name)) {
          used.add(name)
          follow((copy.components.schemas as Record<string, unknown>)[name])
        }
      } else follow(each)
    }
  }
  follow(copy.paths)
  follow(copy.components.parameters)
  const schemas = copy.components.schemas as Record<string, unknown>
  for (const name of Object.keys(schemas)) if (!used.has(name)) delete schemas[name]
  delete (copy.components as Record<string, unknown>).responses
  return copy
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

const bodySchema = (operation: Matched | undefined): Shape | undefined =>
  Object.values(operation?.requestBody?.content ?? {})[0]?.schema

/** The body as JSON or form fields (DOMAIN 3.1). Undefined when there is none. */
function readBody({ body, headers, fact }: Call): unknown {
  const type = String(headers['content-type'] ?? '')
    .split(';')[0]
    ?.trim()
    .toLowerCase()
  if (body === undefined || body.length === 0) {
    if (!fact.bodyRequired) return undefined
    if (type && !fact.consumes.includes(type)) throw new Problem('unsupported_media_type', mediaTypes(fact))
    if (type === 'application/json') throw new Problem('malformed_json', 'The body is empty; a JSON object is needed.')
    throw new Problem('unsupported_media_type', mediaTypes(fact))
  }
  if (fact.consumes.length === 0) throw new Problem('unsupported_media_type', 'This operation takes no body.')
  if (!type || !fact.consumes.includes(type)) throw new Problem('unsupported_media_type', mediaTypes(fact))
  const text = decode(body)
  if (type === 'application/x-www-form-urlencoded') return Object.fromEntries(new URLSearchParams(text))
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (cause) {
    throw new Problem('malformed_json', 'The body is not valid JSON.', { cause })
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new Problem('malformed_json')
  if (depth(value) > maxDepth)
    throw new Problem('malformed_json', `The body is nested more than ${maxDepth} levels deep.`)
  return value
}

const maxDepth = 32
const mediaTypes = (fact: OperationFact): string => `Send the body as ${fact.consumes.join(' or ')}.`

function decode(body: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(body)
  } catch (cause) {
    throw new Problem('malformed_json', 'The body is not valid UTF-8.', { cause })
  }
}

/** Levels of nesting, counted without recursion so that a deep body cannot exhaust the stack. */
function depth(value: object): number {
  let level = 0
  let row: object[] = [value]
  while (row.length > 0 && level <= maxDepth) {
    level++
    row = row.flatMap((each) =>
      Object.values(each).filter((inner): inner is object => typeof inner === 'object' && inner !== null),
    )
  }
  return level
}

/**
 * openapi-backend reads the path a second time after it has coerced its parameters, which makes ids texts again. An id is
 * written in plain digits: what only coercion makes a number (`0x1`, `1e3`) names nothing (DOMAIN 3.1).
 */
function coercedParams({ validation, request }: BackendContext): Record<string, unknown> {
  const { params = request.params } = (validation?.coerced ?? {}) as { params?: Record<string, unknown> }
  for (const [name, value] of Object.entries(params))
    if (typeof value === 'number' && String(value) !== request.params[name]) throw new Problem('not_found')
  return params
}

async function refuse(context: BackendContext, call: Call, pipeline: Pipeline): Promise<never> {
  const findings = (context.validation?.errors ?? []) as ErrorObject[]
  // An id that is no positive integer names nothing (DOMAIN 3.1).
  if (findings.some(({ instancePath }) => instancePath.startsWith('/path'))) throw new Problem('not_found')
  if (
    findings.every(
      ({ instancePath, params }) => instancePath.startsWith('/requestBody') || params.missingProperty === 'requestBody',
    )
  ) {
    await pipeline.locate(call, coercedParams(context))
  }
  const errors = { ...fieldErrors(findings, headerNames), ...strayCharacters(context.request.requestBody, []) }
  throw new Problem('validation_failed', undefined, { errors })
}

const headerNames = ['If-Match', 'If-None-Match', 'Idempotency-Key', 'Accord-Dry-Run']

function strayCharacters(value: unknown, path: string[]): Record<string, string[]> {
  if (typeof value === 'string') {
    return controlCharacters.test(value) ? { [path.join('.')]: ['Must not contain control characters.'] } : {}
  }
  if (typeof value !== 'object' || value === null) return {}
  let found: Record<string, string[]> = {}
  for (const [key, each] of Object.entries(value)) found = { ...found, ...strayCharacters(each, [...path, key]) }
  return found
}
