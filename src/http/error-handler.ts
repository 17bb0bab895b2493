// The error handler. It is the only code that converts an error into a problem document.
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import { storageFaultOf } from '../../db/storage-errors.ts'
import type { Config } from '../config/config.ts'
import { Problem, problemDocument } from '../contract/output/problems.ts'
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

/** Sends the detail of the problem to the caller, and logs its cause. */
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

/** Throws the 404 for an unknown path. Its Link header leads to the contract and its documents. */
export function refuseUnknownPath(): never {
  throw new Problem('not_found', 'There is nothing at this path.', { headers: { link: discoveryLinks } })
}

function sendProblem(
  { status, headers = {}, type, body }: ErrorReply,
  { more }: Problem,
  request: FastifyRequest,
  reply: FastifyReply,
): void {
  // A download that fails before its first byte has already set its headers. They do not fit the
  // problem document.
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

/** Returns the beginning of the URLs of this server, as its caller may use them. */
export function baseUrlOf(config: Config, { host: sent, protocol }: FastifyRequest): string {
  const host = isValidHost(sent) ? sent : `${config.host}:${config.port}`
  return config.appUrl ?? `${protocol}://${host}`
}

const sayAgainMs = 60_000

/**
 * Returns a function that tells whether the storage fault of a problem was logged within the last
 * minute. Each kind of storage fault is logged once a minute, because it affects every request. The
 * access log has the code of every request.
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
 * Logs the cause of a server error. The cause of a caller's error is logged only at debug level,
 * because the access log has its code.
 */
function logCause({ status, code, more: { cause } }: Problem, { log }: FastifyRequest): void {
  // A problem without a cause is the server's own refusal, which is frequent under overload.
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
]

function toProblem(error: FastifyError | Problem): Problem {
  if (error instanceof Problem) return error
  // Node raises this error when the caller closes the connection before the end of the body.
  if (error.code === 'ECONNRESET' && error.message === 'aborted')
    return new Problem('malformed_request', 'The connection was closed before the body was complete.', { cause: error })
  if (error.statusCode === 413) return new Problem('payload_too_large', undefined, { cause: error })
  if (error.statusCode === 415) return new Problem('unsupported_media_type', undefined, { cause: error })
  if (error.statusCode !== undefined && error.statusCode < 500)
    return new Problem('malformed_request', undefined, { cause: error })
  return toUnavailableProblem(error) ?? new Problem('internal_error', undefined, { cause: error })
}

/**
 * Returns whether the response is the login page (DOMAIN 4.4). This applies to a 401 that asks for
 * a token, unless the request asks for JSON.
 */
function wantsLoginPage(problem: Problem, { headers }: FastifyRequest): boolean {
  if (problem.status !== 401 || problem.more.headers?.['www-authenticate'] === undefined) return false
  if (String(headers['x-requested-with'] ?? '').toLowerCase() === 'xmlhttprequest') return false
  return !/application\/json|\+json/i.test(headers.accept ?? '')
}
