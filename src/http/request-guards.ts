// Checks every request before its operation runs: load shedding, malformed headers, a closing
// server, rate limits, and the memory for bodies.
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { routeFactsOf } from '../contract/allowed-methods.ts'
import { isForm } from '../contract/routes.ts'
import { isLoopback, plainAddress } from '../kernel/auth/ip-ranges.ts'
import type { Services } from '../kernel/context.ts'
import { Problem } from '../kernel/errors.ts'
import { budgetExceeded, reserve } from '../kernel/files/body-memory-budget.ts'
import { onRequestEnd } from './access-log.ts'
import { isValidHost } from './host-header.ts'
import { registerLoadShedding, retryAfterOneSecond } from './load-shedding/load-shedding.ts'
import { type AcceptedCredentials, createAccepted, createRates, type RateAccount } from './rate-limit.ts'
import { registerSecurityHeaders } from './security-headers.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** The rate limits of the caller. Null for a request without a rate limit. */
    rateAccount: RateAccount | null
    /** The caller's IP address in canonical form. Code must read this property, not `ip`. */
    readonly address: string
  }
}

/** Registers all guards. `serves`: the server listens on a socket and so needs load shedding. */
export async function registerRequestGuards(http: FastifyInstance, services: Services, serves: boolean): Promise<void> {
  http.decorateRequest('rateAccount', null)
  http.decorateRequest('address', { getter: addressOf })
  const accepted = createAccepted()
  if (serves) await registerLoadShedding(http, services, accepted)
  registerSecurityHeaders(http, services.config)
  rejectBadRequests(http, services)
  warnOfSharedAddress(http, services)
  limitRates(http, services, accepted)
  boundBodies(http, services)
}

/**
 * Returns the client address from a trusted proxy, or the address of the connection if that is
 * invalid.
 */
function addressOf(this: FastifyRequest): string {
  return plainAddress(this.ip ?? '') ?? plainAddress(this.socket.remoteAddress ?? '') ?? ''
}

const maxHeaders = 100

/** Refuses requests with malformed headers, and all requests while the server is closing. */
function rejectBadRequests(http: FastifyInstance, { metrics }: Services): void {
  let isClosing = false
  http.addHook('preClose', async () => {
    isClosing = true
  })
  // The client must open a new connection, so that its next request reaches another server.
  http.addHook('onSend', (_request, reply, _payload, done) => {
    if (isClosing) reply.header('connection', 'close')
    done()
  })
  http.addHook('onRequest', (request, _reply, done) => {
    if (isClosing) {
      metrics.shed()
      return done(new Problem('unavailable', 'The server is closing.', retryAfterOneSecond))
    }
    const why = headerFault(request)
    if (why === undefined) done()
    else done(new Problem('malformed_request', why))
  })
}

/** Returns the reason to refuse the headers, or undefined. */
function headerFault(request: FastifyRequest): string | undefined {
  const { rawHeaders, httpVersion, headers } = request.raw
  if (rawHeaders.length > maxHeaders * 2) return `There are more than ${maxHeaders} headers.`
  let hosts = 0
  for (let at = 0; at < rawHeaders.length; at += 2) if (isHostHeader(rawHeaders[at] ?? '')) hosts++
  if (hosts > 1 || (hosts === 0 && httpVersion === '1.1')) return 'There must be one Host header.'
  // These values begin the links in replies. Behind a trusted proxy, they are the forwarded values.
  const { host, protocol } = request
  if (!/^https?$/i.test(protocol)) return 'X-Forwarded-Proto must be http or https.'
  if (host === '' ? (headers.host ?? '') !== '' : !isValidHost(host)) return 'The Host header names no host.'
  return undefined
}

const isHostHeader = (name: string): boolean => name.length === 4 && name.toLowerCase() === 'host'

/**
 * Logs a warning at the first request that a proxy has forwarded if no proxy is trusted: all
 * callers then have the address of the proxy, and share its limits.
 */
function warnOfSharedAddress(http: FastifyInstance, { config, log }: Services): void {
  if (config.trustedProxies.length > 0) return
  let isKnown = false
  http.addHook('onRequest', ({ raw: { headers } }, _reply, done) => {
    if (!isKnown && (headers['x-forwarded-for'] !== undefined || headers.forwarded !== undefined)) {
      isKnown = true
      log.warn(
        {},
        'A request names its caller in a forwarding header, but ACCORD_TRUSTED_PROXIES is not set. If a proxy is in front of the server, all callers share its address and its limits: set ACCORD_TRUSTED_PROXIES to the address of the proxy.',
      )
    }
    done()
  })
}

function limitRates(http: FastifyInstance, { config, clock }: Services, accepted: AcceptedCredentials): void {
  if (config.rateFactor === null) return
  const rates = createRates(config.rateFactor, accepted)
  // This hook must be synchronous: a request without a body must be queued or refused before the
  // event loop handles the next request (load-shedding.ts).
  http.addHook('onRequest', (request, _reply, done) => {
    const { operation, isPublic = true, methods } = routeFactsOf(request)
    if (operation === 'getHealth' || operation === 'getReadiness') return done()
    if (operation === 'getMetrics' && isLoopback(request.address)) return done()
    // A preflight request and a 405 are not limited, because they cost less than a refusal.
    if (methods !== undefined) return done()
    const { authorization, cookie } = request.raw.headers
    const credential = isPublic ? undefined : (authorization ?? cookie)
    request.rateAccount = rates.check({ ip: request.address, credential, at: clock.now() })
    done()
  })
  http.addHook('onSend', ({ rateAccount }, reply, _payload, done) => {
    if (rateAccount) reply.headers(rateAccount.headers())
    done()
  })
}

/**
 * Limits the memory for bodies, because a body is read before its caller is known. Counts the bytes
 * as they arrive.
 */
function boundBodies(http: FastifyInstance, services: Services): void {
  http.addHook('preParsing', (request, reply, payload, done) => {
    const { 'content-length': length = '0', 'transfer-encoding': coding } = request.raw.headers
    const isRead = request.method !== 'GET' && request.method !== 'HEAD' && request.method !== 'TRACE'
    if (!isRead || isForm(request) || (length === '0' && coding === undefined)) return done()
    const loan = reserve(services, request.address)
    onRequestEnd(request, () => loan.release())
    payload.on('data', function count(chunk: Buffer) {
      const refusal = loan.grow(chunk.length) ? rateRefusal(request, chunk.length) : budgetExceeded()
      if (refusal === undefined) return
      payload.off('data', count)
      // Without an error listener, the request was already refused and its body is not read.
      if (payload.listenerCount('error') === 0) return
      reply.header('connection', 'close')
      payload.emit('error', refusal)
    })
    done()
  })
}

/** Counts bytes toward the rate limit of the address. Returns 429 above it. */
function rateRefusal({ rateAccount }: FastifyRequest, bytes: number): Problem | undefined {
  try {
    rateAccount?.received(bytes)
    return undefined
  } catch (error) {
    if (error instanceof Problem) return error
    throw error
  }
}
