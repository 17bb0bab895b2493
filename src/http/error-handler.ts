// The error handler: the one place that turns an error into a problem document.
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import { storageFaultOf } from '../../db/storage-errors.ts'
import type { Config } from '../config/config.ts'
import { Problem, problemDocument } from '../contract/output/problems.ts'
import type { Clock } from '../kernel/runtime/clock.ts'
import { toUnavailableProblem } from '../kernel/runtime/unavailable.ts'
import { loginPage } from '../resources/authentication/login-page.ts'
import { isValidHost } from './host-header.ts'

export type AnswerError = (error: FastifyError | Problem, request: FastifyRequest, reply: FastifyReply) => void

/** The caller gets the sentence of the problem, the log gets its cause. */
export function createErrorHandler(config: Config, clock: Clock): AnswerError {
  const isSaid = loggedRecently(clock)
  return (error, request, reply) => {
    const problem = toProblem(error)
    request.refusal = problem.code
    if (!isSaid(problem)) logCause(problem, request)
    sendProblem(config, problem, request, reply)
  }
}

/** The response to an unknown path. */
export function refuseUnknownPath(): never {
  throw new Problem('not_found', 'There is nothing at this path.')
}

function sendProblem(config: Config, problem: Problem, request: FastifyRequest, reply: FastifyReply): void {
  // A download that fails before its first byte has set these headers already.
  for (const name of downloadHeaders) {
    reply.removeHeader(name)
    if (!reply.raw.headersSent) reply.raw.removeHeader(name)
  }
  reply
    .code(problem.status)
    .headers({ 'x-request-id': request.id, 'cache-control': 'no-store', ...problem.more.headers })
  if (wantsLoginPage(problem, request)) {
    const page = loginPage(config)
    reply.headers(page.headers).type('text/html; charset=utf-8').send(page.html)
    return
  }
  reply.type(problemType).send(problemText(config, problem, request))
}

export const problemType = 'application/problem+json; charset=utf-8'

/** The body of a problem response. */
export function problemText(
  config: Config,
  problem: Problem,
  { host: sent, protocol, url, id }: FastifyRequest,
): string {
  const host = isValidHost(sent) ? sent : `${config.host}:${config.port}`
  const base = config.appUrl ?? `${protocol}://${host}`
  return JSON.stringify(problemDocument(problem, { base, path: url.split('?')[0] ?? '/', requestId: id }))
}

const sayAgainMs = 60_000

/**
 * Every request meets the same disk, so each kind of storage fault is logged once a minute. The
 * access log has the code for each request.
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
 * Logs our own failures with their cause. For errors of the caller, the access log has the code.
 */
function logCause({ status, code, more: { cause } }: Problem, { log }: FastifyRequest): void {
  // A problem without a cause is the server's own refusal, and frequent under overload.
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
  // The error that Node raises when the caller closes the connection within the body.
  if (error.code === 'ECONNRESET' && error.message === 'aborted')
    return new Problem('malformed_request', 'The connection was closed before the body was complete.', { cause: error })
  if (error.statusCode === 413) return new Problem('payload_too_large', undefined, { cause: error })
  if (error.statusCode === 415) return new Problem('unsupported_media_type', undefined, { cause: error })
  if (error.statusCode !== undefined && error.statusCode < 500)
    return new Problem('malformed_request', undefined, { cause: error })
  return toUnavailableProblem(error) ?? new Problem('internal_error', undefined, { cause: error })
}

/**
 * DOMAIN 4.4: a 401 that asks for a token shows the login page unless the request asks for JSON.
 */
function wantsLoginPage(problem: Problem, { headers }: FastifyRequest): boolean {
  if (problem.status !== 401 || problem.more.headers?.['www-authenticate'] === undefined) return false
  if (String(headers['x-requested-with'] ?? '').toLowerCase() === 'xmlhttprequest') return false
  return !/application\/json|\+json/i.test(headers.accept ?? '')
}
