// Sets up openapi-backend, which runs the security handler, the validation and the handler of every
// request, in this order. The caller of `createBackend` supplies these steps as a `Pipeline`.
import type { Readable } from 'node:stream'
import { setTimeout as pause } from 'node:timers/promises'
import type { Context as BackendContext, OpenAPIBackend } from 'openapi-backend'
import type { ParsedBody } from './input/body.ts'
import type { NamedReference, Reading, Shape } from './input/normalize.ts'
import type { Finding } from './input/validation-errors.ts'
import { createOpenApi, type MatchedRequest } from './openapi.ts'
import { type AnyOperationId, type OperationFact, operations } from './operations.gen.ts'
import { type FieldErrors, Problem } from './output/problems.ts'
import { readRequest } from './read-request.ts'
import { refuse } from './refusal.ts'
import { type RequestOperation, type RequestShapes, requestShapes } from './request-definition.ts'

/** The ids that identify the caller in the log. */
export interface LoggedCaller {
  user_id: number | null
  token_id: number | null
  session_id: number | null
}

/** Counts a request toward the rate limits. */
export interface RateCounter {
  /** Called after successful authentication. Throws 429 when `caller` has made too many calls. */
  authenticated(caller: string, isWrite: boolean): void
  /** Called after failed authentication. */
  authenticationFailed(): void
  /**
   * Counts received bytes of the body toward the limit of the address, unless the credential was
   * accepted before. Throws 429 like a request.
   */
  received(bytes: number): void
}

/** A request in the pipeline. */
export interface Call {
  readonly operation: AnyOperationId
  readonly fact: OperationFact
  readonly method: string
  readonly path: string
  readonly headers: Record<string, string | string[] | undefined>
  readonly params: Readonly<Record<string, string>>
  readonly query: string
  /** Milliseconds since the request arrived. */
  readonly ageMs: number
  readonly body: Buffer | undefined
  /** The unread body of a multipart form. Undefined for any other request. */
  readonly stream: Readable | undefined
  /** Facts from Fastify, such as the IP address of the caller. */
  readonly request: {
    address: string
    id: string
    protocol: string
    host: string
    caller: LoggedCaller | null
    rateAccount: RateCounter | null
  }
  /** The body in which `findNamed` has not replaced names by ids yet. */
  namingBody?: unknown
  /** The version that the body of a PUT repeats from a reply. */
  bodyVersion?: number
  /**
   * The context of the handler, which `authenticate` or `authorizePublic` sets. Only the pipeline
   * reads it.
   */
  context?: unknown
}

export interface Input {
  params: Record<string, unknown>
  query: Record<string, unknown>
  body: unknown
}

export interface Refused {
  /** The names of the invalid fields. These fields were removed from the body. */
  fields: readonly string[]
  /** Whether the remaining body has all required fields. */
  isComplete: boolean
}

export interface Pipeline {
  /**
   * Identifies the caller. Throws 401 without a valid credential. Throws 403 for a session without
   * a valid CSRF token.
   */
  authenticate(call: Call): Promise<void>
  /**
   * Prepares a call of an operation that needs no credential. Throws when the operation refuses the
   * call before its body is read.
   */
  authorizePublic(call: Call): Promise<void>
  /**
   * Throws 403 when the user lacks the permission or the token lacks the ability that the operation
   * requires.
   */
  authorize(call: Call): void
  /**
   * Replaces references by name in the body by the ids of the records. Returns an error for each
   * name that is unknown or that several records have.
   */
  findNamed(call: Call, input: Omit<Input, 'query'>, named: readonly NamedReference[]): Promise<Finding[]>
  /** Reads a multipart form from the stream, stores its files, and returns the body. */
  receive(call: Call, stream: Readable, schema: Shape): Promise<ParsedBody>
  /**
   * Throws 404 or 412 for the record in the path. Called before the errors of an invalid body are
   * sent, so that 404 and 412 take precedence.
   */
  assertRecordVisible(call: Call, params: Record<string, unknown>): Promise<void>
  /**
   * Checks the operation's rules for the valid fields of an invalid body and returns the errors.
   * Changes no data.
   */
  examine(call: Call, input: Input, refused: Refused): Promise<FieldErrors>
  handle(call: Call, input: Input): Promise<unknown>
  /** Called once after every call. `hasFailed` tells whether the call threw. */
  finish(call: Call, hasFailed: boolean): Promise<void>
}

export interface Backend {
  handle(call: Call): Promise<unknown>
  finish(call: Call, hasFailed: boolean): Promise<void>
  /**
   * Authenticates the caller and checks the rights for the operation, before the body is read and
   * without counting the call. Throws like `handle`.
   */
  admit(call: Call): Promise<void>
  /** Compiles every validator, so that the first request of an operation does not wait for it. */
  warmUp(): Promise<void>
}

/** The state of a request in openapi-backend, which passes this object to every handler. */
export interface Exchange {
  readonly call: Call
  readonly pipeline: Pipeline
  readonly reading: Reading
  readonly shapes: RequestShapes
  readonly request: MatchedRequest
  /**
   * Errors that JSON Schema cannot express. The reply lists them together with the schema errors.
   */
  readonly found: { readonly query: Finding[]; readonly body: Finding[] }
}

/** The objects that depend only on the contract. All servers in a process share them. */
interface Shared {
  api: OpenAPIBackend
  shapes: ReadonlyMap<string, RequestShapes>
}

const sharedByContract = new WeakMap<object, Promise<Shared>>()

const warmUpPauseMs = 20

export async function createBackend(document: object, pipeline: Pipeline, reading: Reading): Promise<Backend> {
  const shared = sharedByContract.get(document) ?? createShared(document)
  sharedByContract.set(document, shared)
  const { api, shapes } = await shared
  return {
    handle(call) {
      const { operation: operationId, fact, path, headers } = call
      const request = { operationId, method: fact.method, path, headers: { ...headers }, params: {}, query: {} }
      const found = { query: [], body: [] }
      const exchange: Exchange = {
        call,
        pipeline,
        reading,
        shapes: shapes.get(operationId) ?? noShapes,
        request,
        found,
      }
      return api.handleRequest(request as never, exchange)
    },
    finish: (call, hasFailed) => pipeline.finish(call, hasFailed),
    async admit(call) {
      if (call.fact.public) return
      const { rateAccount } = call.request
      const counter = rateAccount && {
        authenticated: () => undefined,
        authenticationFailed: () => rateAccount.authenticationFailed(),
        received: () => undefined,
      }
      const request = Object.create(call.request, { rateAccount: { value: counter } }) as Call['request']
      const admitted = { ...call, request }
      await pipeline.authenticate(admitted)
      call.request.caller = request.caller
      pipeline.authorize(admitted)
    },
    async warmUp() {
      for (const id of shapes.keys()) {
        api.validator.getRequestValidatorsForOperation(id)
        // Requests run during the pause, so a request waits for at most one compilation.
        await pause(warmUpPauseMs, undefined, { ref: false })
      }
    },
  }
}

const noShapes: RequestShapes = { ids: [], query: {}, body: undefined }

async function createShared(document: object): Promise<Shared> {
  const api = await createOpenApi(document)
  // request-definition.ts removes the other security schemes. This handler covers both tokens and
  // sessions.
  api.registerSecurityHandler('bearer', async (_context: BackendContext, { call, pipeline }: Exchange) => {
    await pipeline.authenticate(call)
    return true
  })
  api.register({
    async postSecurityHandler({ security }: BackendContext, exchange: Exchange) {
      const { call, pipeline } = exchange
      if (!call.fact.public && security?.authorized !== true) return
      if (call.fact.public) await pipeline.authorizePublic(call)
      pipeline.authorize(call)
      await readRequest(exchange)
    },
    unauthorizedHandler({ security }: BackendContext) {
      throw (security?.bearer as { error?: unknown } | undefined)?.error ?? new Problem('unauthenticated')
    },
    validationFail: ({ validation }: BackendContext, exchange: Exchange) =>
      refuse(api, exchange, validation?.errors ?? []),
    notFound() {
      throw new Problem('not_found')
    },
  })
  for (const [id, { servedBy }] of Object.entries(operations))
    if (servedBy === 'handler') api.registerHandler(id, handle)
  const shapes = api.router
    .getOperations()
    .map((each) => [each.operationId ?? '', requestShapes(each as RequestOperation)] as const)
  return { api, shapes: new Map(shapes) }
}

function handle({ api, request }: BackendContext, exchange: Exchange): Promise<unknown> {
  const { call, pipeline, found } = exchange
  if (found.query.length > 0 || found.body.length > 0) return refuse(api, exchange)
  const { params, query, requestBody: body } = request
  return pipeline.handle(call, { params, query, body: body ?? {} })
}
