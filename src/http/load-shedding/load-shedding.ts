// Load shedding (DOMAIN 25.2): refuses a request with 503 when its expected wait is too long, or
// when the event loop is late. Under overload most responses are refusals, so a refusal skips the
// other hooks and the error handler. Its body, headers and log line are those of any other 503.
import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { routeFactsOf } from '../../contract/allowed-methods.ts'
import { Problem } from '../../contract/output/problems.ts'
import { isForm } from '../../contract/routes.ts'
import type { Services } from '../../kernel/context.ts'
import { onRequestEnd } from '../access-log.ts'
import { problemText, problemType } from '../error-handler.ts'
import { headersFor, originHeadersFor } from '../security-headers.ts'
import { createAdmissionQueue } from './admission-queue.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** Releases the place in the admission queue; null when the request has no place. */
    releasePlace: (() => void) | null
  }
}

export const retryAfterOneSecond = { headers: { 'retry-after': '1' } }

/**
 * The operations that are never refused, because monitoring needs a response under overload, too.
 */
const monitoring: ReadonlySet<string | undefined> = new Set(['getHealth', 'getReadiness', 'getMetrics'])
const isMonitoring = (request: FastifyRequest): boolean => monitoring.has(routeFactsOf(request).operation)

/**
 * The time after a start, in milliseconds, during which a late event loop does not count as
 * overload.
 */
const startupGraceMs = 5_000

/**
 * Adds the hooks of load shedding. Call this function directly after the access log has added its
 * hooks.
 */
export async function registerLoadShedding(http: FastifyInstance, { config, metrics, store }: Services): Promise<void> {
  const queue = createAdmissionQueue()
  store.onGroupCommit(() => queue.hasQueuedWrites())
  // All refusals share one problem, because the stack trace of a new problem costs as much as the
  // rest of a refusal.
  const problem = new Problem('unavailable', 'The server has too much to do.', retryAfterOneSecond)
  let isClosing = false
  http.addHook('preClose', async () => {
    isClosing = true
  })
  const refuse = (request: FastifyRequest, reply: FastifyReply): void => {
    metrics.shed()
    request.refusal = problem.code
    const body = problemText(config, problem, request)
    reply.hijack()
    reply.raw
      .writeHead(problem.status, {
        ...headersFor(request, config),
        ...originHeadersFor(request, config),
        ...retryAfterOneSecond.headers,
        // A request that is refused in `preHandler` was already counted by the rate limit.
        ...request.rateAccount?.headers(),
        ...(isClosing && { connection: 'close' }),
        'cache-control': 'no-store',
        'content-type': problemType,
        'content-length': Buffer.byteLength(body),
      })
      .end(body)
  }
  const isEventLoopOverloaded = watchEventLoop(http)
  http.decorateRequest('releasePlace', null)
  http.addHook('onRequest', (request, reply, done) => {
    if (isMonitoring(request)) return done()
    // request-guards.ts refuses the requests to a closing server.
    if ((queue.isFull() || isEventLoopOverloaded()) && !isClosing) refuse(request, reply)
    else done()
  })
  http.addHook('preHandler', (request, reply, done) => {
    // A form does not queue. Its handler reads the body, so a slow client would hold the place for
    // long.
    if (isMonitoring(request) || isForm(request)) return done()
    const begin = (): void => {
      if (request.raw.socket.destroyed) request.releasePlace?.()
      else done()
    }
    const release = queue.admit(begin, request.method !== 'GET' && request.method !== 'HEAD')
    if (release === false) return refuse(request, reply)
    request.releasePlace = release
    onRequestEnd(request, release)
  })
  // The place is released before the response is sent, because the remaining time depends on how
  // fast the client reads.
  http.addHook('onSend', (request, _reply, _payload, done) => {
    request.releasePlace?.()
    done()
  })
}

const maxDelayMs = 500
const sampleMs = 1_000
/** The resolution of the histogram in milliseconds. Every measured delay includes it. */
const resolutionMs = 10

/**
 * Returns a function that tells whether the event loop is late. @fastify/under-pressure does not
 * fit: it opens a file every second to read the memory usage, and it ends the process when no
 * descriptor is left.
 */
function watchEventLoop(http: FastifyInstance): () => boolean {
  const histogram = monitorEventLoopDelay({ resolution: resolutionMs })
  histogram.enable()
  let isSettled = false
  let isLate = false
  const timer = setInterval(() => {
    // The histogram is empty when the loop was blocked for the whole second.
    const delayMs = histogram.count === 0 ? Number.POSITIVE_INFINITY : histogram.mean / 1e6 - resolutionMs
    isLate = delayMs > maxDelayMs
    histogram.reset()
  }, sampleMs).unref()
  http.addHook('onListen', async () => {
    setTimeout(() => {
      isSettled = true
    }, startupGraceMs).unref()
  })
  http.addHook('onClose', async () => {
    clearInterval(timer)
    histogram.disable()
  })
  return () => isSettled && isLate
}
