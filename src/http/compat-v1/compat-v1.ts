// Serves version 1 of the API for clients of another system (DOMAIN 27). Each request becomes a
// canonical request, which runs through the ordinary pipeline, and the reply is rewritten.

import type { Readable } from 'node:stream'
import { setTimeout as pause } from 'node:timers/promises'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { RouteFacts } from '../../contract/allowed-methods.ts'
import type { Backend, Call } from '../../contract/backend.ts'
import { type OperationFact, operations } from '../../contract/operations.gen.ts'
import { Problem } from '../../contract/output/problems.ts'
import { type Answered, answerOf, isForm, queryOf, sendAnswer } from '../../contract/routes.ts'
import type { OperationId } from '../../contract/types.ts'
import type { Services } from '../../kernel/context.ts'
import { reserve } from '../../kernel/files/body-memory-budget.ts'
import { createErrorHandler, problemText, refuseUnknownPath } from '../error-handler.ts'
import { emptyListQuery } from './lists.ts'
import { version1Body, version1Error, version1Status } from './replies.ts'
import { bodyFields, type CanonicalParts, canonicalParts, queryFields } from './requests.ts'
import { type FollowUp, type Row, rows } from './rows.ts'
import { contractSchemas } from './schemas.ts'
import { formFields } from './uploads.ts'
import { type CustomTypes, type Fields, textOfField, type Vocabulary } from './values.ts'

export const compatBase = '/api/v1'
const form = 'multipart/form-data'

export interface CompatParts {
  backend: Backend
  services: Services
  /** Returns the custom attributes as they are now. */
  customTypes(): Promise<CustomTypes>
}

/** One request, with the parts of the server that it needs. */
interface Exchange extends CompatParts {
  request: FastifyRequest
  /** Milliseconds since the request arrived. */
  ageMs: number
  path: string
  query: string
  vocabulary: Vocabulary
}

export async function registerCompatV1(http: FastifyInstance, parts: CompatParts): Promise<void> {
  const { services } = parts
  const schemas = contractSchemas(services.contract)
  await http.register(
    async (v1) => {
      v1.setNotFoundHandler(refuseUnknownPath)
      v1.setErrorHandler(
        createErrorHandler(services.config, services.clock, (problem, request) => ({
          status: version1Status(problem),
          type: 'application/json; charset=utf-8',
          body: JSON.stringify(version1Error(JSON.parse(problemText(services.config, problem, request)))),
        })),
      )
      for (const [url, byMethod] of routesOf(rows)) registerUrl(v1, url, byMethod, { ...parts, schemas })
    },
    { prefix: compatBase },
  )
}

type RowsByMethod = ReadonlyMap<string, Row>

/** Returns the rows of each URL in Fastify's syntax. A path with a last `{name?}` has two URLs. */
export function routesOf(table: readonly Row[]): ReadonlyMap<string, RowsByMethod> {
  const routes = new Map<string, Map<string, Row>>()
  for (const row of table)
    for (const path of new Set([row.path.replace(/\/\{\w+\?\}$/, ''), row.path.replace('?}', '}')])) {
      const url = path.replaceAll(/\{(\w+)\}/g, ':$1([^]+)')
      const byMethod = routes.get(url) ?? new Map<string, Row>()
      if (byMethod.has(row.method)) throw new Error(`The table has ${row.method} ${path} twice.`)
      routes.set(url, byMethod.set(row.method, row))
    }
  return routes
}

const everyMethod = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']

function registerUrl(
  v1: FastifyInstance,
  url: string,
  byMethod: RowsByMethod,
  parts: CompatParts & Pick<Vocabulary, 'schemas'>,
): void {
  // A POST may stand for any other method that changes something (`_method`).
  const methods = new Set(byMethod.keys())
  if (methods.has('PUT') || methods.has('DELETE')) methods.add('POST')
  const read = byMethod.get('GET')
  // A HEAD must change nothing, so a GET that stands for a change has none.
  const hasHead = read !== undefined && factOf(read.operation).method === 'get'
  for (const method of methods) {
    const row = byMethod.get(method) ?? [...byMethod.values()][0]
    if (row === undefined) continue
    const fact = factOf(row.operation)
    v1.route({
      method,
      url,
      exposeHeadRoute: method === 'GET' && hasHead,
      config: {
        operation: row.operation,
        isPublic: fact.public,
        forms: method === 'GET' ? [] : [form],
      } satisfies RouteFacts,
      handler: (request, reply) =>
        void answered(parts, byMethod, request, reply.elapsedTime)
          .then((answer) => sendAnswer(reply, answer))
          .catch((error) => reply.send(error instanceof Error ? error : new Error(String(error)))),
    })
  }
  if (hasHead) methods.add('HEAD')
  const allow = [...methods, 'OPTIONS'].join(', ')
  const others = everyMethod.filter((method) => !methods.has(method))
  const config: RouteFacts = { methods: allow }
  v1.route({ method: others, url, config, handler: (_request, reply) => reply.callNotFound() })
}

const factOf = (operation: OperationId): OperationFact => operations[operation]

async function answered(
  parts: CompatParts & Pick<Vocabulary, 'schemas'>,
  byMethod: RowsByMethod,
  request: FastifyRequest,
  ageMs: number,
): Promise<Answered> {
  const { path, query } = queryOf(request.url)
  const vocabulary = { schemas: parts.schemas, customTypes: await parts.customTypes() }
  const exchange: Exchange = { ...parts, request, ageMs, path, query, vocabulary }
  const { fields, fault } = await sentFields(exchange)
  const sent: Fields = { ...queryFields(query), ...fields, ...(request.params as Fields) }
  const row = byMethod.get(methodOf(request, sent))
  if (row === undefined) {
    const allow = [...byMethod.keys()].join(', ')
    throw new Problem('method_not_allowed', `This path knows ${allow}.`, { headers: { allow } })
  }
  if (fault) return refused(exchange, row, fault)
  const canonical = canonicalParts(row, factOf(row.operation), sent, vocabulary)
  const answer = await firstAnswer(exchange, row, canonical)
  return rewritten(exchange, row, sent, answer)
}

/** Returns the fields of the body. An unreadable body is a fault, which is told after 401 and 403. */
async function sentFields(exchange: Exchange): Promise<{ fields: Fields; fault?: Problem }> {
  const { request, services } = exchange
  const { 'content-type': type = '', 'content-length': length = '0' } = request.raw.headers
  if (isForm(request)) {
    const loan = reserve(services, request.address)
    try {
      const upload = async (stream: Readable, contentType: string): Promise<number> => {
        const { body } = await run(exchange, 'uploadFile', { stream, headers: { 'content-type': contentType } })
        return (JSON.parse(String(body)) as { data: { id: number } }).data.id
      }
      return { fields: await formFields(request.raw, { type, length: Number(length), loan }, upload) }
    } finally {
      loan.release()
    }
  }
  try {
    const mediaType = type.split(';')[0]?.trim().toLowerCase() ?? ''
    return { fields: bodyFields(request.body as Buffer | undefined, mediaType) }
  } catch (error) {
    if (error instanceof Problem) return { fields: {}, fault: error }
    throw error
  }
}

/** The method of the request; for a POST also the method that it asks for. */
function methodOf({ method, raw }: FastifyRequest, sent: Fields): string {
  if (method === 'HEAD') return 'GET'
  if (method !== 'POST') return method
  const asked = textOfField(sent._method) || String(raw.headers['x-http-method-override'] ?? '')
  return asked.toUpperCase() || method
}

/** Sends the unreadable body as it is: a caller without a right learns that first. */
async function refused(exchange: Exchange, row: Row, fault: Problem): Promise<Answered> {
  const { request } = exchange
  try {
    const headers = { 'content-type': request.raw.headers['content-type'] }
    return await run(exchange, row.operation, { params: {}, body: request.body as Buffer, headers })
  } catch (error) {
    if (error instanceof Problem && [401, 403, 429, 503].includes(error.status)) throw error
    throw fault
  }
}

async function firstAnswer(exchange: Exchange, row: Row, canonical: CanonicalParts): Promise<Answered> {
  const { params, query, body, missing } = canonical
  const headers = { 'content-type': body && 'application/json' }
  try {
    return await run(exchange, row.operation, { params, query, body, headers })
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    if (error.status === 404 && missing.length > 0)
      throw new Problem('validation_failed', undefined, {
        errors: Object.fromEntries(missing.map((field) => [field, ['The field is required.']])),
      })
    if (!row.list || !isAboutQuery(error)) throw error
    const known = exchange.vocabulary.schemas.parameters(factOf(row.operation))
    const empty = emptyListQuery(new URLSearchParams(query), known)
    return run(exchange, row.operation, { params, query: empty.toString() })
  }
}

/** Returns whether only filters are refused. A value that is not valid matches no record. */
const isAboutQuery = ({ code, more }: Problem): boolean => {
  const fields = Object.keys(more.errors ?? {})
  return code === 'validation_failed' && fields.length > 0 && fields.every((field) => field.startsWith('query.'))
}

interface Sending {
  params?: Record<string, string>
  query?: string
  body?: Buffer | undefined
  stream?: Readable
  headers?: Record<string, string | undefined>
}

/** Runs a canonical request through the pipeline. */
function run(
  { backend, request, ageMs }: Exchange,
  operation: OperationId,
  { params = {}, query = '', body, stream, headers }: Sending,
): Promise<Answered> {
  const fact = factOf(operation)
  const call: Call = {
    operation,
    fact,
    method: request.method === 'HEAD' ? 'HEAD' : fact.method.toUpperCase(),
    path: canonicalPath(fact, params),
    headers: { ...request.raw.headers, 'content-type': undefined, ...headers },
    params,
    query,
    ageMs,
    body,
    stream,
    request,
  }
  return answerOf(backend, call)
}

const canonicalPath = ({ path }: OperationFact, params: Record<string, string>): string =>
  path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(params[name] ?? ''))

async function rewritten(exchange: Exchange, row: Row, sent: Fields, answer: Answered): Promise<Answered> {
  if (typeof answer.body !== 'string' || answer.mediaType !== 'application/json') return answer
  const first = JSON.parse(answer.body) as Fields
  // A dry run leaves nothing that a further request could read.
  const next = answer.headers['accord-dry-run'] === undefined ? row.next?.(sent, first) : undefined
  const last = next && (await followed(exchange, next))
  const { vocabulary, path, query } = exchange
  const fact = factOf(last && next ? next.operation : row.operation)
  const reply = last ? (JSON.parse(String(last.body)) as Fields) : first
  const body = version1Body(reply, { row, fact, sent, path, query, first }, vocabulary)
  // The links of the canonical reply lead to canonical paths.
  const { location: _location, link: _link, ...headers } = answer.headers
  return { ...answer, status: 200, headers, body: JSON.stringify(body) }
}

const pollMs = 200
const maxPolls = 50

/**
 * Runs a request that follows the first one, without the preconditions of the first one. Returns
 * undefined when an optional request is refused.
 */
async function followed(exchange: Exchange, next: FollowUp): Promise<Answered | undefined> {
  const { operation, params = {}, query = '', token, until, isOptional } = next
  const sending: Sending = {
    params: Object.fromEntries(Object.entries(params).map(([name, value]) => [name, String(value)])),
    query,
    headers: {
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      'if-match': undefined,
      'if-none-match': undefined,
    },
  }
  for (let polls = 0; ; polls++) {
    try {
      const answer = await run(exchange, operation, sending)
      if (!until || polls >= maxPolls || until(JSON.parse(String(answer.body)) as Fields)) return answer
    } catch (error) {
      if (isOptional && error instanceof Problem && error.status < 500) return undefined
      throw error
    }
    await pause(pollMs)
  }
}
