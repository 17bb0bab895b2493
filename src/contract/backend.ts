// openapi-backend, set up once: it routes to the operation, runs security and permission, validates, and calls the handler.
// The order is that of DOMAIN 4.3. What each step means is given by the caller as a Pipeline.
import type { Readable } from 'node:stream'
import { setTimeout as pause } from 'node:timers/promises'
import type { ErrorObject, Ajv as PlainAjv } from 'ajv'
import { type Context as BackendContext, OpenAPIBackend } from 'openapi-backend'
import { type Checked, coercedParams, shortcutOf, validate } from './direct.ts'
import { type Body, bodyFindings, readBody } from './input/body.ts'
import { filesAsText } from './input/form.ts'
import { intakeOf, normaliseBody, type Reading, type Shape } from './input/normalise.ts'
import { pruned } from './input/prune.ts'
import { readQuery } from './input/query.ts'
import { type Finding, fieldErrors } from './input/validation-errors.ts'
import { type OperationFact, type OperationId, operations } from './operations.gen.ts'
import { type FieldErrors, Problem } from './output/problems.ts'
import { initialise, type Matched, prepared } from './request-definition.ts'

/** Who asks, as the log may know it. */
export interface LoggedCaller {
  user_id: number | null
  token_id: number | null
  session_id: number | null
}

/** What is counted of a request; the server's own. */
export interface Passage {
  /** It is known whose it is. Throws 429 when they have called too often. */
  accepted(caller: string, isWrite: boolean): void
  /** What was to prove it proved nothing. */
  refused(): void
}

/** One request on its way through the pipeline. */
export interface Call {
  readonly operation: OperationId
  readonly fact: OperationFact
  readonly method: string
  readonly path: string
  readonly headers: Record<string, string | string[] | undefined>
  readonly query: string
  /** How long ago it came. */
  readonly ageMs: number
  readonly body: Buffer | undefined
  /** The body of a form with files, not read yet. */
  readonly stream: Readable | undefined
  /** The server's own request, for the caller's address. */
  readonly request: {
    address: string
    id: string
    protocol: string
    host: string
    caller: LoggedCaller | null
    passage: Passage | null
  }
  /** Filled by `authenticate`; the caller's own. */
  context?: unknown
  refused?: unknown
  /** What is wrong beyond the schemas, to be reported with what they refuse. */
  found?: { query: readonly Finding[]; body: readonly Finding[] }
}

export interface Input {
  params: Record<string, unknown>
  query: Record<string, unknown>
  body: unknown
}

export interface Refused {
  /** What the schema refuses, and the body therefore lacks. */
  fields: readonly string[]
  /** Whether the rest has all that the operation must have. */
  isComplete: boolean
}

export interface Pipeline {
  /** Who is calling. Throws a 401 problem, or 403 for a session that cannot be told from a forged call. */
  authenticate(call: Call): Promise<void>
  /** Prepares a call that needs no token. Throws for one that is not taken, whatever its body says. */
  authorizePublic(call: Call): Promise<void>
  /** What the same caller was answered to the same call, while that holds: nothing else is asked then. */
  cachedResponse(call: Call): unknown
  /** May they. Throws a 403 problem. */
  authorize(call: Call): void
  /** Reads a form with files; those are the pipeline's. */
  receive(call: Call, stream: Readable, schema: Shape): Promise<Body>
  /** Throws 404 or 412 for the record in the path: it is looked up before a refused body is reported. */
  assertRecordVisible(call: Call, params: Record<string, unknown>): Promise<void>
  /** What the rules have against what is left of a refused body. Writes nothing. */
  examine(call: Call, input: Input, refused: Refused): Promise<FieldErrors>
  handle(call: Call, input: Input): Promise<unknown>
  /** However a call ended. */
  finish(call: Call, hasFailed: boolean): Promise<void>
}

export interface Backend {
  handle(call: Call): Promise<unknown>
  /** The same by openapi-backend alone. */
  handleThrough(call: Call): Promise<unknown>
  leave(call: Call, hasFailed: boolean): Promise<void>
  /** Compiles every validator, so that no request has to wait for it. */
  warmUp(): Promise<void>
}

export interface InternalRequest {
  method: string
  path: string
  headers: Record<string, string | string[]>
  query: Record<string, unknown>
  body?: unknown
  operationId: OperationId
}

type Sent = Pick<InternalRequest, 'query' | 'body'>

/** Between two validators that nobody has asked for yet. */
const warmUpPauseMs = 20

export async function createBackend(document: object, pipeline: Pipeline, reading: Reading): Promise<Backend> {
  const { definition, bodies, parameters } = prepared(document)
  const api = new OpenAPIBackend({
    definition: definition as never,
    quick: true,
    strict: true,
    coerceTypes: true,
    // The types of openapi-backend know Ajv's draft-07 class only; both share one implementation.
    customizeAjv: ((_ajv: PlainAjv, _options: unknown, part: unknown) =>
      part === 'requestBodyValidator' ? bodies : parameters) as never,
  })
  const { matched, queries } = await initialise(api, document)

  // The schemes are alternatives, and every one of them is asked: one look decides for all.
  const admitted = new WeakMap<Call, Promise<boolean>>()
  const admit = (_context: unknown, call: Call): Promise<boolean> => {
    const known = admitted.get(call) ?? isAdmitted(call, pipeline)
    admitted.set(call, known)
    return known
  }
  for (const scheme of ['bearer', 'session']) api.registerSecurityHandler(scheme, admit)

  const exactly = { ...reading, exact: true }
  /** JSON has numbers and flags, and they are to be sent as such; a form has texts. */
  const readingOf = ({ headers }: Call): Reading =>
    /^application\/json\b/i.test(String(headers['content-type'])) ? exactly : reading

  /** What is between knowing who calls and knowing whether it is as the schemas want it. */
  async function read(call: Call, request: InternalRequest): Promise<void> {
    if (call.fact.public) await pipeline.authorizePublic(call)
    pipeline.authorize(call)
    const query: Finding[] = []
    if (isTriedInVain(call))
      query.push(['header.Accord-Dry-Run', 'This operation cannot be tried: send the request without it.'])
    request.query = readQuery(call.query, queries.get(call.operation) ?? {}, reading, query)
    call.found = { query, body: [] }
    const schema = bodySchema(matched.get(call.operation))
    const body = call.stream ? await pipeline.receive(call, call.stream, schema ?? {}) : readBody(call)
    if (body === undefined) return
    if (call.fact.takesBytes) {
      request.body = body.value
      call.found = { query, body: body.found ?? [] }
      return
    }
    const found = [...(body.found ?? [])]
    request.body = schema ? normaliseBody(body.value, schema, intakeOf(call.fact), readingOf(call), found) : body.value
    if (!call.stream) found.push(...filesAsText(request.body, schema))
    found.push(...bodyFindings(request.body, body.inexact))
    call.found = { query, body: found }
  }

  /** Refuses a request for all that is wrong with it, unless its path says more: then the record is looked up first. */
  async function refuse(context: Checked, call: Call, sent: Sent): Promise<never> {
    const findings = context.validation?.errors ?? []
    const { query, body } = call.found ?? { query: [], body: [] }
    // An id that is no positive integer names nothing (DOMAIN 3.1).
    if (findings.some(({ instancePath }) => instancePath.startsWith('/path'))) throw new Problem('not_found')
    const isBodyAlone =
      query.length === 0 &&
      findings.every(
        ({ instancePath, params }) =>
          instancePath.startsWith('/requestBody') || params.missingProperty === 'requestBody',
      )
    if (isBodyAlone) await pipeline.assertRecordVisible(call, coercedParams(context))
    const errors = fieldErrors(findings, headerNames, [...query, ...body])
    if (isBodyAlone) Object.assign(errors, await ruled(context, call, sent, errors))
    throw new Problem('validation_failed', undefined, { errors })
  }

  /** What else is wrong with a refused body, by rules that the schemas do not know: references, values that are taken. */
  async function ruled(context: Checked, call: Call, sent: Sent, errors: FieldErrors): Promise<FieldErrors> {
    const schema = bodySchema(matched.get(call.operation))
    // Where the body as a whole is wrong, or more is wrong than is listed, nothing of it can be relied on.
    if (typeof sent.body !== 'object' || sent.body === null || !schema || errors.body) return {}
    const fields = Object.keys(errors)
    const { body, isNews } = pruned(sent.body, schema, fields)
    const request = { ...requestOf(call), query: { ...sent.query }, body }
    const validators = api.validator.getRequestValidatorsForOperation(call.operation) ?? []
    const params = context.request.params as Record<string, string>
    const left = validate(validators, { params, request }).errors
    const isMissing = ({ keyword, instancePath }: ErrorObject): boolean =>
      keyword === 'required' && instancePath === '/requestBody'
    if (!left.every(isMissing)) return {}
    const input = { params: coercedParams(context), query: request.query, body }
    const found = await pipeline.examine(call, input, { fields, isComplete: left.length === 0 })
    return Object.fromEntries(Object.entries(found).filter(([field]) => isNews(field)))
  }

  /** What both ways end with. */
  function finish(checked: Checked, call: Call, { query, body }: Sent): Promise<unknown> {
    const { validation } = checked
    const findings = [validation?.errors, call.found?.query, call.found?.body]
    if (findings.some((each) => each && each.length > 0)) return refuse(checked, call, { query, body })
    return pipeline.handle(call, { params: coercedParams(checked), query, body: body ?? {} })
  }

  const unauthorized = (call: Call): never => {
    throw call.refused ?? new Problem('unauthenticated')
  }
  api.register({
    postSecurityHandler: async (context: BackendContext, call: Call, request: InternalRequest) => {
      if (call.fact.public || context.security?.authorized === true) await read(call, request)
    },
    unauthorizedHandler: (_context: BackendContext, call: Call) => unauthorized(call),
    validationFail: (context: BackendContext, call: Call, request: InternalRequest) => refuse(context, call, request),
    notFound: () => {
      throw new Problem('not_found')
    },
  })
  for (const [id, fact] of Object.entries(operations)) {
    if ((fact as OperationFact).servedBy === 'docs') continue
    api.registerHandler(id, (context: BackendContext, call: Call) => {
      const { query, requestBody } = context.request
      return finish(context, call, { query, body: requestBody })
    })
  }

  const requestOf = (call: Call): InternalRequest => ({
    method: call.fact.method,
    path: call.path,
    headers: call.headers as Record<string, string | string[]>,
    query: {},
    operationId: call.operation,
  })
  const shortcuts = new Map([...matched].map(([id, operation]) => [id, shortcutOf(operation)]))

  function handleThrough(call: Call, request = requestOf(call)): Promise<unknown> {
    return api.handleRequest(request as never, call, request)
  }

  return {
    handleThrough,
    // The same steps by the same validators, without parsing three times what the route has parsed, unless the answer is known.
    // What is unusual goes the long way; a test holds both to the same answers.
    async handle(call) {
      const params = shortcuts.get(call.operation)?.(call)
      if (params === undefined) return handleThrough(call)
      if (!call.fact.public && !(await isAdmitted(call, pipeline))) return unauthorized(call)
      const known = pipeline.cachedResponse(call)
      if (known !== undefined) return known
      const request = requestOf(call)
      await read(call, request)
      const validators = api.validator.getRequestValidatorsForOperation(call.operation) ?? []
      const checked = { validation: validate(validators, { params, request }), request: { params } }
      return finish(checked, call, request)
    },
    leave: (call, hasFailed) => pipeline.finish(call, hasFailed),
    async warmUp() {
      for (const id of matched.keys()) {
        api.validator.getRequestValidatorsForOperation(id)
        // Whoever asks meanwhile waits for one of them at most, and what compiling leaves behind is collected as it comes.
        await pause(warmUpPauseMs, undefined, { ref: false })
      }
    },
  }
}

async function isAdmitted(call: Call, pipeline: Pipeline): Promise<boolean> {
  try {
    await pipeline.authenticate(call)
    return true
  } catch (error) {
    call.refused = error
    return false
  }
}

/** A dry run of what knows none: it would be done in earnest. */
const isTriedInVain = ({ fact, headers }: Call): boolean =>
  !fact.dryRun && fact.method !== 'get' && (headers['accord-dry-run'] ?? 'false') !== 'false'

const bodySchema = (operation: Matched | undefined): Shape | undefined =>
  Object.values(operation?.requestBody?.content ?? {})[0]?.schema

const headerNames = ['If-Match', 'If-None-Match', 'Idempotency-Key', 'Accord-Dry-Run']
