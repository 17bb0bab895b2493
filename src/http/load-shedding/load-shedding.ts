// Load shedding (DOMAIN 25.2): a request that would wait too long in the admission queue gets a
// 503, and so does every request while the event loop is late. Under overload most responses are
// refusals, so a refusal skips the other hooks and the error handler; its body, headers and log
// line are those of any other 503.
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
    /** Releases the place in the admission queue. */
    releasePlace: (() => void) | null
  }
}

export const retryAfterOneSecond = { headers: { 'retry-after': '1' } }

/** Monitoring must get an answer under overload too. */
const monitoring: ReadonlySet<string | undefined> = new Set(['getHealth', 'getReadiness', 'getMetrics'])
const isMonitoring = (request: FastifyRequest): boolean => monitoring.has(routeFactsOf(request).operation)

/** The first seconds after a start do not count as overload. */
const startupGraceMs = 5_000

/** Its hooks come first, after those of the access log. */
export async function registerLoadShedding(http: FastifyInstance, { config, metrics, store }: Services): Promise<void> {
  const queue = createAdmissionQueue()
  store.onGroupCommit(() => queue.hasQueuedWrites())
  // Shared, because the stack trace of a new one costs as much as the rest of a refusal.
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
        // The rate limit may have counted the request before it was refused.
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
    // request-guards.ts answers for a closing server.
    if ((queue.isFull() || isEventLoopOverloaded()) && !isClosing) refuse(request, reply)
    else done()
  })
  http.addHook('preHandler', (request, reply, done) => {
    // A form has not arrived yet.
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
  // The remaining time depends on how fast the client reads.
  http.addHook('onSend', (request, _reply, _payload, done) => {
    request.releasePlace?.()
    done()
  })
}

const maxDelayMs = 500
const sampleMs = 1_000
/** The histogram's resolution; every measured delay includes it. */
const resolutionMs = 10

/**
 * Returns whether the event loop is late. Not @fastify/under-pressure: it reads the memory each
 * second, for which it opens a file, and it ends the process when no descriptor is left.
 */
function watchEventLoop(http: FastifyInstance): () => boolean {
  const histogram = monitorEventLoopDelay({ resolution: resolutionMs })
  histogram.enable()
  let isSettled = false
  let isLate = false
  const timer = setInterval(() => {
    // A loop that was blocked for the whole second measured nothing.
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
