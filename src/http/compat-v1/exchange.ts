// Handles a request of version 1: reads its fields, runs the canonical requests of its row
// (rows.ts) and converts the reply.
import type { Readable } from 'node:stream'
import { setTimeout as pause } from 'node:timers/promises'
import type { FastifyRequest } from 'fastify'
import type { Call } from '../../contract/call.ts'
import { type OperationFact, operations } from '../../contract/operations.gen.ts'
import { Problem } from '../../contract/output/problems.ts'
import type { Backend } from '../../contract/pipeline.ts'
import { type Answered, answerOf, isForm, queryOf } from '../../contract/routes.ts'
import type { OperationId } from '../../contract/types.ts'
import type { Services } from '../../kernel/context.ts'
import { reserve } from '../../kernel/files/body-memory-budget.ts'
import { emptyListQuery } from './lists.ts'
import { version1Body, withVersion1Names } from './replies.ts'
import { bodyFields, type CanonicalParts, canonicalParts, queryFields, textOfQuery } from './requests.ts'
import type { FollowUp, RewriteRow } from './rows.ts'
import { formFields } from './uploads.ts'
import { type CustomTypes, type JsonFields, textOfField, type Vocabulary } from './values.ts'

export interface CompatParts {
  backend: Backend
  services: Services
  /** Returns the current custom attributes. */
  customTypes(): Promise<CustomTypes>
}

/** The rows of one URL. */
export type RowsByMethod = ReadonlyMap<string, RewriteRow>

/** A request and the parts of the server that it needs. */
interface Exchange extends CompatParts {
  request: FastifyRequest
  /** Milliseconds since the request arrived. */
  ageMs: number
  path: string
  query: string
  vocabulary: Vocabulary
  /** The ids of the files that the request uploaded. */
  uploads: number[]
}

export const factOf = (operation: OperationId): OperationFact => operations[operation]

/** Returns the response to a request. Throws the errors of the canonical requests. */
export async function answerVersion1(
  parts: CompatParts & Pick<Vocabulary, 'schemas'>,
  byMethod: RowsByMethod,
  request: FastifyRequest,
  ageMs: number,
): Promise<Answered> {
  const { path, query } = queryOf(request.url)
  const vocabulary = { schemas: parts.schemas, customTypes: await parts.customTypes() }
  const exchange: Exchange = { ...parts, request, ageMs, path, query, vocabulary, uploads: [] }
  let isKept = false
  try {
    const answer = await answered(exchange, byMethod)
    isKept = answer.headers['accord-dry-run'] === undefined
    return answer
  } finally {
    if (!isKept) await removeUploads(exchange)
  }
}

/**
 * Removes the uploads of a refused request or a dry run. Ignores errors, because the daily cleanup
 * removes unused files.
 */
async function removeUploads(exchange: Exchange): Promise<void> {
  for (const id of exchange.uploads)
    await run(exchange, 'deleteFile', { params: { id: String(id) }, headers: withoutTerms }).catch(() => undefined)
}

/** Removes the headers that apply only to the main request of the row. */
const withoutTerms = {
  'idempotency-key': undefined,
  'accord-dry-run': undefined,
  'if-match': undefined,
  'if-none-match': undefined,
}

async function answered(exchange: Exchange, byMethod: RowsByMethod): Promise<Answered> {
  const { request, query, vocabulary } = exchange
  await admit(exchange, byMethod)
  const { fields, fault } = await sentFields(exchange)
  // Proxies log URLs, so a password is taken from the body only.
  const isPublic = [...byMethod.values()].some(({ operation }) => factOf(operation).public)
  const sent: JsonFields = { ...(!isPublic && queryFields(query)), ...fields, ...(request.params as JsonFields) }
  const row = byMethod.get(methodOf(request, sent))
  if (row === undefined) {
    const allow = [...byMethod.keys()].join(', ')
    throw new Problem('method_not_allowed', `This path knows ${allow}.`, { headers: { allow } })
  }
  if (fault) return refused(exchange, row, fault)
  const canonical = canonicalParts(row, factOf(row.operation), sent, vocabulary)
  try {
    const answer = await firstAnswer(exchange, row, canonical)
    return await rewritten(exchange, row, sent, answer)
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    const { schemas } = vocabulary
    throw withVersion1Names(error, row, schemas.names(schemas.branches(schemas.body(factOf(row.operation)) ?? {})))
  }
}

/**
 * Throws 401 or 403 before the body is read, which costs more. A POST may stand for a PUT or
 * DELETE, which only its body says, so the caller needs the rights for one of these operations.
 */
async function admit(exchange: Exchange, byMethod: RowsByMethod): Promise<void> {
  const { request, backend } = exchange
  if (request.body === undefined && !isForm(request)) return
  const rows = request.method === 'POST' ? [...byMethod.values()] : [byMethod.get(request.method)]
  let refusal: unknown
  for (const row of rows) {
    if (row === undefined || row.method === 'GET') continue
    try {
      return await backend.admit(callOf(exchange, row.operation))
    } catch (error) {
      refusal ??= error
      if (!(error instanceof Problem) || error.status !== 403) throw error
    }
  }
  if (refusal !== undefined) throw refusal
}

/**
 * Returns the fields of the body. Returns the problem of an unreadable body as `fault` instead of
 * throwing it, because 401 and 403 take precedence.
 */
async function sentFields(exchange: Exchange): Promise<{ fields: JsonFields; fault?: Problem }> {
  const { request, services } = exchange
  const { 'content-type': type = '', 'content-length': length = '0' } = request.raw.headers
  if (isForm(request)) {
    const loan = reserve(services, request.address)
    try {
      const upload = async (stream: Readable, contentType: string): Promise<number> => {
        const headers = { ...withoutTerms, 'content-type': contentType }
        const { body } = await run(exchange, 'uploadFile', { stream, headers })
        const { id } = (JSON.parse(String(body)) as { data: { id: number } }).data
        exchange.uploads.push(id)
        return id
      }
      return { fields: await formFields(request.raw, { type, length: Number(length), loan }, upload) }
    } finally {
      loan.release()
    }
  }
  try {
    const mediaType = type.split(';')[0]?.trim().toLowerCase() ?? ''
    return { fields: bodyFields(request.body as Buffer | undefined, mediaType, type) }
  } catch (error) {
    if (error instanceof Problem) return { fields: {}, fault: error }
    throw error
  }
}

/**
 * Returns the method of the request, or the method that a POST names in `_method` or
 * X-HTTP-Method-Override.
 */
function methodOf({ method, raw }: FastifyRequest, sent: JsonFields): string {
  if (method === 'HEAD') return 'GET'
  if (method !== 'POST') return method
  const asked = textOfField(sent._method) || String(raw.headers['x-http-method-override'] ?? '')
  return asked.toUpperCase() || method
}

/**
 * Sends the unreadable body unchanged to the canonical operation, so that a caller without
 * permission gets 401 or 403. Throws `fault` in place of any other error.
 */
async function refused(exchange: Exchange, row: RewriteRow, fault: Problem): Promise<Answered> {
  const { request } = exchange
  try {
    const headers = { 'content-type': request.raw.headers['content-type'] }
    return await run(exchange, row.operation, { params: {}, body: request.body as Buffer, headers })
  } catch (error) {
    if (error instanceof Problem && [401, 403, 429, 503].includes(error.status)) throw error
    throw fault
  }
}

async function firstAnswer(exchange: Exchange, row: RewriteRow, canonical: CanonicalParts): Promise<Answered> {
  const { params, query, body, missing } = canonical
  const headers = { 'content-type': body && 'application/json' }
  try {
    return await run(exchange, row.operation, { params, query, body, headers })
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    // Clients of version 1 know no redirect, and the new address is not one of version 1.
    if (error.code === 'merged') throw new Problem('not_found', error.message)
    if (error.status === 404 && missing.length > 0)
      throw new Problem('validation_failed', undefined, {
        errors: Object.fromEntries(missing.map((field) => [field, ['The field is required.']])),
      })
    if (!row.list || !isAboutQuery(error)) throw error
    const known = exchange.vocabulary.schemas.parameters(factOf(row.operation))
    const empty = emptyListQuery(new URLSearchParams(query), known)
    return run(exchange, row.operation, { params, query: textOfQuery(empty) })
  }
}

/**
 * Returns whether the problem has only errors in query parameters. The reply is then an empty list,
 * because in version 1 an invalid filter value matches no record.
 */
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
function run(exchange: Exchange, operation: OperationId, sending: Sending): Promise<Answered> {
  return answerOf(exchange.backend, callOf(exchange, operation, sending))
}

function callOf(
  { request, ageMs }: Exchange,
  operation: OperationId,
  { params = {}, query = '', body, stream, headers }: Sending = {},
): Call {
  const fact = factOf(operation)
  return {
    operation,
    fact,
    uses: [],
    oldNames: new Map(),
    method: request.method === 'HEAD' ? 'HEAD' : fact.method.toUpperCase(),
    path: canonicalPath(fact, params),
    headers: {
      ...request.raw.headers,
      'content-type': undefined,
      // Rewritten replies have no ETag.
      ...(fact.produces.includes('application/json') && { 'if-none-match': undefined }),
      ...headers,
    },
    params,
    query,
    ageMs,
    body,
    stream,
    request,
  }
}

const canonicalPath = ({ path }: OperationFact, params: Record<string, string>): string =>
  path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(params[name] ?? ''))

async function rewritten(exchange: Exchange, row: RewriteRow, sent: JsonFields, answer: Answered): Promise<Answered> {
  if (typeof answer.body !== 'string' || answer.mediaType !== 'application/json') return answer
  const first = JSON.parse(answer.body) as JsonFields
  // After a dry run, a further request would not find the record.
  const next = answer.headers['accord-dry-run'] === undefined ? row.next?.(sent, first) : undefined
  const last = next && (await followed(exchange, next))
  const { vocabulary, path, query } = exchange
  const fact = factOf(last && next ? next.operation : row.operation)
  const reply = last ? (JSON.parse(String(last.body)) as JsonFields) : first
  const body = version1Body(reply, { row, fact, sent, path, query, first }, vocabulary)
  // These headers have canonical paths, and the ETag identifies the canonical bytes.
  const { location: _location, link: _link, etag: _etag, ...headers } = answer.headers
  return { ...answer, status: 200, headers, body: JSON.stringify(body) }
}

const pollMs = 200
const maxPolls = 50

/**
 * Runs the follow-up request, without the preconditions of the first request. Returns undefined
 * when an optional request is refused.
 */
async function followed(exchange: Exchange, next: FollowUp): Promise<Answered | undefined> {
  const { operation, params = {}, query = '', token, until, isOptional } = next
  const sending: Sending = {
    params: Object.fromEntries(Object.entries(params).map(([name, value]) => [name, String(value)])),
    query,
    headers: { ...withoutTerms, ...(token !== undefined && { authorization: `Bearer ${token}` }) },
  }
  for (let polls = 0; ; polls++) {
    try {
      const answer = await run(exchange, operation, sending)
      if (!until || polls >= maxPolls || until(JSON.parse(String(answer.body)) as JsonFields)) return answer
    } catch (error) {
      if (isOptional && error instanceof Problem && error.status < 500) return undefined
      throw error
    }
    await pause(pollMs)
  }
}
