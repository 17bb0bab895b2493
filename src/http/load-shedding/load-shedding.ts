// Load shedding: refuses a request with 503 when its expected wait is too long, or
// when the event loop is late. Under overload most responses are refusals, so a refusal skips the
// other hooks and the error handler. It has the same body, headers and log line as any other 503.
import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { routeFactsOf } from '../../contract/allowed-methods.ts'
import { Problem } from '../../contract/output/problems.ts'
import { isForm } from '../../contract/routes.ts'
import { clientNetwork } from '../../kernel/auth/ip-ranges.ts'
import type { Services } from '../../kernel/context.ts'
import { onRequestEnd } from '../access-log.ts'
import { problemText, problemType } from '../error-handler.ts'
import type { AcceptedCredentials } from '../rate-limit.ts'
import { headersFor, originHeadersFor } from '../security-headers.ts'
import { createAdmissionQueue } from './admission-queue.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** Releases the place in the admission queue. Null when the request has no place. */
    releasePlace: (() => void) | null
  }
}

export const retryAfterOneSecond = { headers: { 'retry-after': '1' } }

/** The operations that are never refused, because monitoring must also work under overload. */
const monitoring: ReadonlySet<string | undefined> = new Set(['getHealth', 'getReadiness', 'getMetrics'])

/**
 * The operations that check a password. They may wait for seconds in a queue of their own
 * (kernel/auth/passwords.ts), so they release their place when they start.
 */
const signIns: ReadonlySet<string | undefined> = new Set(['login', 'createSession'])
const isSignIn = (request: FastifyRequest): boolean => signIns.has(routeFactsOf(request).operation)
/** Returns whether a request is never refused: monitoring, and the files of the pages. */
function isExempt(request: FastifyRequest): boolean {
  const { isStaticFile, operation } = routeFactsOf(request)
  return isStaticFile === true || monitoring.has(operation)
}

/** In this time after the start, a late event loop does not count as overload. */
const startupGraceMs = 5_000

/** Adds the hooks of load shedding. Must be called right after `trackRequests` (access-log.ts). */
export async function registerLoadShedding(
  http: FastifyInstance,
  { config, metrics, store }: Services,
  accepted: AcceptedCredentials,
): Promise<void> {
  const queue = createAdmissionQueue()
  store.onGroupCommit(() => queue.hasQueuedWrites())
  // All refusals share one Problem, because a new stack trace costs as much as the rest of a
  // refusal.
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
        // Set if the refusal is in `preHandler`, after the rate limit has counted the request.
        ...request.rateAccount?.headers(),
        ...(isClosing && { connection: 'close' }),
        'cache-control': 'no-store',
        'content-type': problemType,
        'content-length': Buffer.byteLength(body),
      })
      .end(body)
  }
  const isEventLoopOverloaded = watchEventLoop(http)
  /** An unknown credential counts for its address, because a stranger can invent many. */
  const credentialOf = ({ raw: { headers } }: FastifyRequest): string | undefined => {
    const credential = headers.authorization ?? headers.cookie
    return credential !== undefined && accepted.has(credential) ? credential : undefined
  }
  const clientOf = (request: FastifyRequest): string => credentialOf(request) ?? clientNetwork(request.address)
  // A known client with one request is not the reason for a late event loop.
  const isRefusedByDelay = (request: FastifyRequest): boolean => {
    if (!isEventLoopOverloaded()) return false
    const credential = credentialOf(request)
    return credential === undefined || queue.hasQueued(credential)
  }
  http.decorateRequest('releasePlace', null)
  http.addHook('onRequest', (request, reply, done) => {
    if (isExempt(request)) return done()
    // While the server is closing, request-guards.ts refuses all requests.
    if ((queue.isFull(clientOf(request)) || isRefusedByDelay(request)) && !isClosing) refuse(request, reply)
    else done()
  })
  http.addHook('preHandler', (request, reply, done) => {
    // Forms do not queue. Their handler reads the body, so a slow client would occupy a place for
    // long.
    if (isExempt(request) || isForm(request)) return done()
    const begin = (): void => {
      const isGone = request.raw.socket.destroyed
      if (isGone || isSignIn(request)) request.releasePlace?.()
      if (!isGone) done()
    }
    const release = queue.admit(begin, request.method !== 'GET' && request.method !== 'HEAD', clientOf(request))
    if (release === false) return refuse(request, reply)
    request.releasePlace = release
    onRequestEnd(request, release)
  })
  // The place is released before the response is sent, because sending takes as long as the client
  // needs.
  http.addHook('onSend', (request, _reply, _payload, done) => {
    request.releasePlace?.()
    done()
  })
}

const maxDelayMs = 500
const sampleMs = 1_000
/** The resolution of the histogram in milliseconds, which is part of every measured delay. */
const resolutionMs = 10

/**
 * Returns a function that returns whether the event loop is late. @fastify/under-pressure is not
 * used: it opens a file every second, and ends the process when no descriptor is left.
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
