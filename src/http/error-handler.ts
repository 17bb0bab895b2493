// The error handler, which converts errors to problem documents.
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import { storageFaultOf } from '../../db/storage-errors.ts'
import type { Config } from '../config/config.ts'
import { Problem, problemDocument } from '../contract/output/problems.ts'
import { pathHint } from '../contract/path-hints.ts'
import type { Clock } from '../kernel/runtime/clock.ts'
import { toUnavailableProblem } from '../kernel/runtime/unavailable.ts'
import { loginPage } from '../resources/authentication/login-page.ts'
import { discoveryLinks } from './docs/send-document.ts'
import { isValidHost } from './host-header.ts'

export type AnswerError = (error: FastifyError | Problem, request: FastifyRequest, reply: FastifyReply) => void

export interface ErrorReply {
  status: number
  headers?: Record<string, string>
  type: string
  body: string
}

/** Chooses the response to a problem. */
export type PresentProblem = (problem: Problem, request: FastifyRequest) => ErrorReply

/** Returns a handler that sends the problem to the caller and logs its cause. */
export function createErrorHandler(
  config: Config,
  clock: Clock,
  present: PresentProblem = (problem, request) => problemReply(config, problem, request),
): AnswerError {
  const isSaid = loggedRecently(clock)
  return (error, request, reply) => {
    const problem = toProblem(error)
    request.refusal = problem.code
    if (!isSaid(problem)) logCause(problem, request)
    sendProblem(present(problem, request), problem, request, reply)
  }
}

/**
 * Throws the 404 for an unknown path, with a similar path and with links to the contract and the
 * documentation.
 */
export function refuseUnknownPath({ method, url }: Pick<FastifyRequest, 'method' | 'url'>): never {
  const sentence = `There is nothing at this path.${pathHint(method, url)}`
  throw new Problem('not_found', sentence, { headers: { link: discoveryLinks } })
}

function sendProblem(
  { status, headers = {}, type, body }: ErrorReply,
  { more }: Problem,
  request: FastifyRequest,
  reply: FastifyReply,
): void {
  // If a download fails before its first byte, its headers are already set and must be removed.
  for (const name of downloadHeaders) {
    reply.removeHeader(name)
    if (!reply.raw.headersSent) reply.raw.removeHeader(name)
  }
  reply
    .code(status)
    .headers({ 'x-request-id': request.id, 'cache-control': 'no-store', ...more.headers, ...headers })
    .type(type)
    .send(body)
}

function problemReply(config: Config, problem: Problem, request: FastifyRequest): ErrorReply {
  const { status } = problem
  if (!wantsLoginPage(problem, request))
    return { status, type: problemType, body: problemText(config, problem, request) }
  const { headers, html } = loginPage(config)
  return { status, headers, type: 'text/html; charset=utf-8', body: html }
}

export const problemType = 'application/problem+json; charset=utf-8'

/** Returns the body of a problem response. */
export function problemText(config: Config, problem: Problem, request: FastifyRequest): string {
  const { url, id } = request
  const about = { base: baseUrlOf(config, request), path: url.split('?')[0] ?? '/', requestId: id }
  return JSON.stringify(problemDocument(problem, about))
}

/** Returns the base URL under which the caller reaches this server. */
export function baseUrlOf(config: Config, { host: sent, protocol }: FastifyRequest): string {
  const host = isValidHost(sent) ? sent : `${config.host}:${config.port}`
  return config.appUrl ?? `${protocol}://${host}`
}

const sayAgainMs = 60_000

/**
 * Returns a function that returns whether the same kind of storage fault was logged in the last
 * minute. A storage fault affects every request, so each kind is logged only once a minute.
 */
function loggedRecently(clock: Clock): (problem: Problem) => boolean {
  const saidAt = new Map<string, number>()
  return ({ code, more: { cause } }) => {
    if (code !== 'unavailable' || cause === undefined) return false
    const kind = storageFaultOf(cause) ?? 'other'
    const now = clock.now().getTime()
    const since = now - (saidAt.get(kind) ?? Number.NEGATIVE_INFINITY)
    if (since >= 0 && since < sayAgainMs) return true
    saidAt.set(kind, now)
    return false
  }
}

/**
 * Logs the cause of a server error. The cause of a client error is logged at debug level, because
 * the access log has its code.
 */
function logCause({ status, code, more: { cause } }: Problem, { log }: FastifyRequest): void {
  // `unavailable` without a cause is a deliberate refusal, which is frequent under overload.
  if (cause === undefined && code === 'unavailable') return
  const isOurs = status >= 500
  if (isOurs) log.error({ err: cause, code }, 'A request failed.')
  else if (cause !== undefined) log.debug({ err: cause, code }, 'A request was refused.')
}

const downloadHeaders = [
  'content-disposition',
  'content-length',
  'content-range',
  'accept-ranges',
  'etag',
  'cache-control',
  'idempotency-replayed',
]

function toProblem(error: FastifyError | Problem): Problem {
  if (error instanceof Problem) return error
  // The client closed the connection before the end of the body.
  if (error.code === 'ECONNRESET' && error.message === 'aborted')
    return new Problem('malformed_request', 'The connection was closed before the body was complete.', { cause: error })
  if (error.statusCode === 413) return new Problem('payload_too_large', undefined, { cause: error })
  if (error.statusCode === 415) return new Problem('unsupported_media_type', undefined, { cause: error })
  if (error.statusCode !== undefined && error.statusCode < 500)
    return new Problem('malformed_request', undefined, { cause: error })
  return toUnavailableProblem(error) ?? new Problem('internal_error', undefined, { cause: error })
}

/**
 * Returns whether the response is the login page: for a 401 with WWW-Authenticate, if
 * the request does not accept JSON.
 */
function wantsLoginPage(problem: Problem, { headers }: FastifyRequest): boolean {
  if (problem.status !== 401 || problem.more.headers?.['www-authenticate'] === undefined) return false
  if (String(headers['x-requested-with'] ?? '').toLowerCase() === 'xmlhttprequest') return false
  return !/application\/json|\+json/i.test(headers.accept ?? '')
}
