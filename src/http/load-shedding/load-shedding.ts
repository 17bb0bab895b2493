// Load shedding (DOMAIN 25.2): 503 for requests that would wait too long in the admission queue, and for all of them while the event
// loop is late. Under overload most replies are refusals, so a refusal skips the other hooks and the error handler; its body, headers
// and log line are those of any other 503.
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
    /** Makes room for the next one. */
    leave: (() => void) | null
  }
}

export const retryAfterOneSecond = { headers: { 'retry-after': '1' } }

/** Of what everybody must always be able to ask. */
const watching: ReadonlySet<string | undefined> = new Set(['getHealth', 'getReadiness', 'getMetrics'])
const isWatching = (request: FastifyRequest): boolean => watching.has(routeFactsOf(request).operation)

/** What starting costs is no load. */
const startupGraceMs = 5_000

/** Comes before all hooks but the one that counts and logs. */
export async function registerLoadShedding(http: FastifyInstance, { config, metrics, store }: Services): Promise<void> {
  const queue = createAdmissionQueue()
  store.onGroupCommit(() => queue.hasQueuedWrites())
  // One for all of them: the stack of a new one costs as much as the rest of a refusal.
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
        ...request.passage?.headers(),
        ...(isClosing && { connection: 'close' }),
        'cache-control': 'no-store',
        'content-type': problemType,
        'content-length': Buffer.byteLength(body),
      })
      .end(body)
  }
  const isEventLoopOverloaded = watchLoop(http, config.env)
  http.decorateRequest('leave', null)
  http.addHook('onRequest', (request, reply, done) => {
    if (isWatching(request)) return done()
    // A closing server has an answer of its own (request-guards.ts).
    if ((queue.isFull() || isEventLoopOverloaded()) && !isClosing) refuse(request, reply)
    else done()
  })
  http.addHook('preHandler', (request, reply, done) => {
    // A form is still arriving.
    if (isWatching(request) || isForm(request)) return done()
    const begin = (): void => {
      if (request.raw.socket.destroyed) request.leave?.()
      else done()
    }
    const leave = queue.admit(begin, request.method !== 'GET' && request.method !== 'HEAD')
    if (leave === false) return refuse(request, reply)
    request.leave = leave
    onRequestEnd(request, leave)
  })
  // The rest depends on how fast the client reads.
  http.addHook('onSend', (request, _reply, _payload, done) => {
    request.leave?.()
    done()
  })
}

const maxDelayMs = 500
const sampleMs = 1_000
/** The resolution of the histogram, which each measured delay includes. */
const resolutionMs = 10

/**
 * Answers whether the event loop is late. In tests it is that of the tests as well. Not @fastify/under-pressure: it asks for the memory
 * each second, for which it has to open a file, and ends the process when there is no descriptor left.
 */
function watchLoop(http: FastifyInstance, env: string): () => boolean {
  if (env === 'test') return () => false
  const histogram = monitorEventLoopDelay({ resolution: resolutionMs })
  histogram.enable()
  let isSettled = false
  let isLate = false
  const timer = setInterval(() => {
    // Nothing was measured when the loop was held up all the time.
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
