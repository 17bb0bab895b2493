// Sets up openapi-backend, which runs the security handler, the validation and the handler of every
// request, in this order. The caller of `createBackend` supplies these steps as a `Pipeline`.
import { setTimeout as pause } from 'node:timers/promises'
import type { Context as BackendContext, OpenAPIBackend } from 'openapi-backend'
import type { Call, LineCall } from './call.ts'
import { takesLines } from './input/lines.ts'
import type { Reading } from './input/normalize.ts'
import { createOpenApi } from './openapi.ts'
import { type OperationFact, operations } from './operations.gen.ts'
import { Problem } from './output/problems.ts'
import type { Backend, Exchange, Pipeline } from './pipeline.ts'
import { readRequest } from './read-request.ts'
import { refuse } from './refusal.ts'
import { type RequestOperation, type RequestShapes, requestShapes } from './request-definition.ts'

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
  const run = (call: Call, pipeline: Pipeline): Promise<unknown> => {
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
  }
  return {
    handle(call) {
      if (takesLines(call.fact))
        call.carryOut = (line, context) => run(callOfLine(call, line), pipeline.within(context))
      return run(call, pipeline)
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
    successorOf: (operation) => {
      const name = shapes.get(operation)?.lifetime['x-replaced-by']
      return name === undefined ? undefined : (operations as Record<string, { path: string }>)[name]?.path
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

/** Returns the call of the operation of a line, as if it were a request of its own. */
function callOfLine({ request, ageMs }: Call, { operation, params, body }: LineCall): Call {
  const fact: OperationFact = operations[operation]
  const path = fact.path.replaceAll(/\{(\w+)\}/g, (_whole, name: string) => encodeURIComponent(params[name] ?? ''))
  const headers = body === undefined ? {} : { 'content-type': 'application/json' }
  return {
    ...{ operation, fact, method: fact.method.toUpperCase(), path, headers, params, query: '', ageMs },
    ...{ body: undefined, stream: undefined, uses: [], oldNames: new Map(), request },
    ...(body !== undefined && { parsed: body }),
  }
}

const noShapes: RequestShapes = { ids: [], query: {}, body: undefined, lifetime: {} }

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
