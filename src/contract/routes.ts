// Registers a Fastify route for each operation of the contract. The route passes the request to
// openapi-backend and sends the reply. Also handles HEAD, OPTIONS and 405.
import type { Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { type RouteFacts, routeFactsOf, routeOf, shadowedMethods } from './allowed-methods.ts'
import type { Call } from './call.ts'
import { linesType, takesLines } from './input/lines.ts'
import { deprecationHeaders } from './lifetime.ts'
import { type AnyOperationId, type OperationFact, operations } from './operations.gen.ts'
import { Problem } from './output/problems.ts'
import { pathHint } from './path-hints.ts'
import type { Backend } from './pipeline.ts'

/** The HTTP response to a call. */
export interface Answered {
  status: number
  headers: Record<string, string>
  cookies?: readonly string[]
  /**
   * Undefined for a response without a body. A stream is read as fast as the client receives it.
   */
  body: string | Buffer | Readable | undefined
  mediaType: string
}

const maxQueryLength = 8 * 1024

/** Registers every operation that http/docs/docs.ts does not serve. */
export function registerRoutes(app: FastifyInstance, backend: Backend): void {
  // This parser reads nothing. Without it, Fastify would refuse forms before authentication. A
  // multipart form is read only after authentication.
  app.addContentTypeParser(form, (_request, _payload, done) => done(null))
  app.addHook('onRequest', (request, reply, done) => {
    const { methods: allow } = routeFactsOf(request)
    // The reply is sent before the body is read.
    if (allow !== undefined) return void refuseMethod(allow, request, reply, done)
    if (request.is404 || request.headers['content-type'] !== undefined)
      request.headers = { 'content-type': isForm(request) ? form : 'application/octet-stream' }
    done()
  })
  for (const [id, fact] of Object.entries(operations) as [AnyOperationId, OperationFact][]) {
    if (fact.servedBy === 'docs') continue
    app.route({
      method: fact.method.toUpperCase(),
      url: routeOf(fact),
      // Fastify reads forms that are not multipart, so it needs their limit.
      bodyLimit: bodyLimitOf(fact),
      config: {
        operation: id,
        isPublic: fact.public,
        isForAnyOrigin: fact.isForAnyOrigin === true,
        hasLines: takesLines(fact),
        forms: streamedTypes(fact),
      } satisfies RouteFacts,
      // The handler does not return a promise, because Fastify would then watch the connection.
      handler: (request, reply) =>
        void answered(backend, id, fact, request, reply.elapsedTime)
          .then((answer) => sendAnswer(reply, answer))
          .then(() => takesLines(fact) && closeAfterAnswer(request, reply))
          .catch((error) => reply.send(error instanceof Error ? error : new Error(String(error)))),
    })
  }
  const handler = (_request: FastifyRequest, reply: FastifyReply): void => reply.callNotFound()
  for (const { url, methods: method, facts: config } of shadowedMethods())
    app.route({ method: [...method], url, config, exposeHeadRoute: false, handler })
}

/** The limits in bytes for a body that is not a form. `maxBodyLength` is also in app.ts. */
const maxBodyLength = 1024 * 1024
const maxPublicBodyLength = 128 * 1024

/**
 * An operation that needs no credential takes small bodies, unless the contract allows larger
 * forms.
 */
export const bodyLimitOf = ({ public: isPublic, maxFormBytes }: OperationFact): number =>
  Math.min(maxFormBytes ?? (isPublic ? maxPublicBodyLength : maxBodyLength), maxBodyLength)

/** Returns the media types of bodies that are read as streams, after authentication. */
const streamedTypes = (fact: OperationFact): string[] => [
  ...(fact.maxFormBytes === null ? [] : [form, ...(fact.takesBytes ? [plainForm] : [])]),
  ...(takesLines(fact) ? [linesType] : []),
]

/** How long a client may go on sending after an answer that ended before its body. */
const lingerMs = 2_000

/**
 * Closes the connection after an answer that ended before the body. The rest of the body is read
 * for a moment, because the client would lose the answer if the connection were reset.
 */
function closeAfterAnswer({ raw }: FastifyRequest, { raw: response }: FastifyReply): void {
  response.once('finish', () => {
    if (raw.complete !== false) return
    raw.resume()
    setTimeout(() => !raw.complete && raw.socket.destroy(), lingerMs).unref()
  })
}

const form = 'multipart/form-data'
const plainForm = 'application/x-www-form-urlencoded'

/** Returns whether the body is a form, or lines, that are read after authentication. */
export function isForm(request: FastifyRequest): boolean {
  const { forms = [] } = routeFactsOf(request)
  const [type = ''] = (request.raw.headers['content-type'] ?? '').split(';')
  return forms.includes(type.trim().toLowerCase())
}

/**
 * Returns the detail of a 405. It lists the methods of the path, and suggests PUT instead of PATCH,
 * or another path.
 */
function knownMethods({ method, url }: FastifyRequest, allow: string): string {
  const methods = allow.split(', ').filter((each) => each !== 'HEAD' && each !== 'OPTIONS')
  const hint =
    method === 'PATCH' && methods.includes('PUT')
      ? ' Did you mean PUT? It changes what is sent and leaves the rest.'
      : pathHint(method, url)
  return `This path does not know ${method}. It knows ${methods.join(', ')}.${hint}`
}

function refuseMethod(allow: string, request: FastifyRequest, reply: FastifyReply, done: (error: Error) => void): void {
  if (request.method === 'OPTIONS') reply.code(204).headers({ allow }).send()
  else done(new Problem('method_not_allowed', knownMethods(request, allow), { headers: { allow } }))
}

async function answered(
  backend: Backend,
  id: AnyOperationId,
  fact: OperationFact,
  request: FastifyRequest,
  ageMs: number,
): Promise<Answered> {
  const { path, query } = queryOf(request.url)
  const call: Call = {
    operation: id,
    fact,
    method: request.method,
    path,
    headers: request.raw.headers,
    params: request.params as Record<string, string>,
    query,
    ageMs,
    body: request.body as Buffer | undefined,
    stream: isForm(request) ? request.raw : undefined,
    uses: [],
    oldNames: new Map(),
    request,
  }
  if (call.stream && !takesLines(fact) && Number(request.raw.headers['content-length'] ?? 0) > (fact.maxFormBytes ?? 0))
    throw new Problem('payload_too_large')
  return answerOf(backend, call)
}

/** Handles a call and always calls `backend.finish`. */
export async function answerOf(backend: Backend, call: Call): Promise<Answered> {
  let answer: Answered | undefined
  try {
    answer = (await backend.handle(call)) as Answered
    if (call.uses.length > 0) answer = { ...answer, headers: withDeprecation(backend, call, answer.headers) }
    return answer
  } catch (error) {
    throw error instanceof Problem && call.uses.length > 0 ? asAsked(backend, call, error) : error
  } finally {
    await backend.finish(call, answer === undefined)
  }
}

const withDeprecation = (
  backend: Backend,
  { uses, operation }: Call,
  headers: Readonly<Record<string, string>> = {},
): Record<string, string> => {
  const added = deprecationHeaders(uses, backend.successorOf(operation))
  const link = [headers.link, added.link].filter((each) => each !== undefined).join(', ')
  return { ...headers, ...added, link }
}

/** Returns the problem with the old names of fields where the request has old names. */
function asAsked(backend: Backend, call: Call, { code, message, more }: Problem): Problem {
  const nameOf = (field: string): string => {
    const known = [...call.oldNames].find(([name]) => field === name || field.startsWith(`${name}.`))
    return known ? `${known[1]}${field.slice(known[0].length)}` : field
  }
  const errors = Object.entries(more.errors ?? {}).map(([field, sentences]) => [nameOf(field), sentences])
  return new Problem(code, message, {
    ...more,
    ...(more.errors && { errors: Object.fromEntries(errors) }),
    headers: withDeprecation(backend, call, more.headers),
  })
}

export function sendAnswer(reply: FastifyReply, answer: Answered): void {
  reply.code(answer.status).headers(answer.headers)
  if (answer.cookies) reply.header('set-cookie', answer.cookies)
  if (answer.body === undefined) reply.send()
  else reply.type(answer.mediaType).send(answer.body)
}

/**
 * Splits a URL into its path, without a trailing slash, and its query. Throws 400 for a query that
 * is too long.
 */
export function queryOf(url: string): { path: string; query: string } {
  const at = url.indexOf('?')
  const [path, query] = at < 0 ? [url, ''] : [url.slice(0, at), url.slice(at + 1)]
  if (query.length > maxQueryLength) throw new Problem('malformed_request', 'The query string is longer than 8 KiB.')
  return { path: path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path, query }
}
