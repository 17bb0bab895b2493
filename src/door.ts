// What every request passes before its operation is known, and what every answer carries: who is turned away because there is
// too much to do or because they call too often, headers that protect whoever reads the answer, and other origins. What a
// connection may do before it is a request is in sockets.ts.
import helmet from '@fastify/helmet'
import underPressure from '@fastify/under-pressure'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Config } from './config.ts'
import { factsOf } from './contract/methods.ts'
import { originHeaders } from './contract/origins.ts'
import { isForm } from './contract/routes.ts'
import type { Services } from './kernel/context.ts'
import { Problem } from './kernel/errors.ts'
import { borrow, tooMuch } from './kernel/held.ts'
import { isLoopback } from './kernel/networks.ts'
import { type Account, createRates } from './kernel/rates.ts'
import { createTurns } from './kernel/turns.ts'
import { whenOver } from './logs.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** Against what it counts; null for what is not limited. */
    passage: Account | null
    /** Makes room for the next one. */
    leave: (() => void) | null
  }
}

/** `serves`: whether strangers reach it, so that it must turn away what is more than it can do. */
export async function registerDoor(http: FastifyInstance, services: Services, serves: boolean): Promise<void> {
  http.decorateRequest('passage', null)
  http.decorateRequest('leave', null)
  await protect(http, services.config)
  turnAway(http, services)
  if (serves) await shed(http, services)
  limitRates(http, services)
  boundBodies(http, services)
}

/** For what is no page: nothing in it may run or load anything, and nothing may show it. Pages say what they need themselves. */
const policyOfData = "default-src 'none'; frame-ancestors 'none'"

/** The least of it, for answers that are given before there is a request to speak of. */
export const bareHeaders = {
  'content-security-policy': policyOfData,
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
}

async function protect(http: FastifyInstance, config: Config): Promise<void> {
  await http.register(helmet, {
    // Both are among the bare ones.
    contentSecurityPolicy: false,
    xFrameOptions: false,
    // Said below, by how each request came.
    strictTransportSecurity: false,
    // Those of one origin must be able to share a process; nothing here needs a process of its own.
    originAgentCluster: false,
    xDownloadOptions: false,
  })
  http.addHook('onRequest', async (request, reply) => {
    reply.headers({ ...bareHeaders, 'x-request-id': request.id })
    // Not for the domains below: they are of others.
    if (request.protocol === 'https' || config.appUrl?.startsWith('https:'))
      reply.header('strict-transport-security', 'max-age=31536000')
  })
  http.addHook('onSend', async (request, reply, payload) => {
    const { isForAnyOrigin = false, methods } = factsOf(request)
    const { vary, ...headers } = originHeaders(
      { origin: request.raw.headers.origin, methods, isForAnyOrigin },
      config.corsOrigins,
    )
    reply.headers(headers)
    if (vary !== undefined) addVary(reply, vary)
    if (isForAnyOrigin) beEmbeddable(reply)
    if (/^application\/pdf\b/.test(String(reply.getHeader('content-type')))) letShow(reply)
    keepOutOfCaches(request, reply)
    return payload
  })
}

/** Browsers show a PDF by a page of their own, which takes the policy for its. */
function letShow(reply: FastifyReply): void {
  if (reply.getHeader('content-security-policy') === policyOfData)
    reply.header('content-security-policy', "frame-ancestors 'none'")
}

/** Pages of others show web forms and load their script; the policy of the page says so to browsers that ask it. */
function beEmbeddable(reply: FastifyReply): void {
  reply.removeHeader('x-frame-options')
  if (reply.getHeader('cross-origin-resource-policy') === 'same-origin')
    reply.header('cross-origin-resource-policy', 'cross-origin')
}

/**
 * What is said of customers is for nobody else and not for later. With an ETag a browser may keep it, to ask whether it is still
 * so (304): never a proxy, never without asking, and never for somebody else on the same machine.
 */
function keepOutOfCaches({ method }: FastifyRequest, reply: FastifyReply): void {
  if (reply.hasHeader('cache-control')) return
  const isKept = (method === 'GET' || method === 'HEAD') && reply.hasHeader('etag') && reply.statusCode < 400
  reply.header('cache-control', isKept ? 'private, no-cache' : 'no-store')
  if (isKept) addVary(reply, 'Authorization, Cookie')
}

function addVary(reply: FastifyReply, names: string): void {
  const said = reply.getHeader('vary')
  reply.header('vary', said === undefined ? names : `${String(said)}, ${names}`)
}

const mostHeaders = 100

/** What no honest client sends, and what comes while the server closes. */
function turnAway(http: FastifyInstance, { metrics }: Services): void {
  let isClosing = false
  http.addHook('preClose', async () => {
    isClosing = true
  })
  // The next request of whoever is still answered goes to the server that comes after this one.
  http.addHook('onSend', async (_request, reply, payload) => {
    if (isClosing) reply.header('connection', 'close')
    return payload
  })
  http.addHook('onRequest', async ({ raw, host }) => {
    if (isClosing) {
      metrics.shed()
      throw new Problem('unavailable', 'The server is closing.', comeAgain)
    }
    const names = raw.rawHeaders.filter((_name, index) => index % 2 === 0)
    if (names.length > mostHeaders)
      throw new Problem('malformed_request', `There are more than ${mostHeaders} headers.`)
    const hosts = names.filter((name) => name.toLowerCase() === 'host').length
    if (hosts > 1 || (hosts === 0 && raw.httpVersion === '1.1'))
      throw new Problem('malformed_request', 'There must be one Host header.')
    // It becomes the beginning of links.
    if (host && !isHost(host)) throw new Problem('malformed_request', 'The Host header names no host.')
  })
}

/** With or without a port. Nothing else becomes part of an address. */
export const isHost = (text: string): boolean =>
  /^(\[[\da-f:.]+\]|[\w.~-]+)(:\d+)?$/i.test(text) && URL.canParse(`http://${text}`)

const comeAgain = { headers: { 'retry-after': '1' } }

/** Of what everybody must always be able to ask. */
const watching: ReadonlySet<string | undefined> = new Set(['getHealth', 'getReadiness', 'getMetrics'])
const operationOf = (request: FastifyRequest): string | undefined => factsOf(request).operation

/** What starting costs is no load. */
const settlesMs = 5_000

/** 503 before anything is read or looked up (DOMAIN 25.2): by what waits already, and when the event loop is late. */
async function shed(http: FastifyInstance, { config, metrics }: Services): Promise<void> {
  const turns = createTurns()
  // One for all of them: the stack of a new one costs as much as the rest of a refusal.
  const problem = new Problem('unavailable', 'The server has too much to do.', comeAgain)
  const refuse = (): Problem => {
    metrics.shed()
    return problem
  }
  let isSettled = false
  http.addHook('onListen', async () => {
    setTimeout(() => {
      isSettled = true
    }, settlesMs).unref()
  })
  // In tests the event loop is that of the tests as well.
  if (config.env !== 'test')
    await http.register(underPressure, {
      maxEventLoopDelay: 500,
      sampleInterval: 1_000,
      pressureHandler: async (request) => {
        if (isSettled && !watching.has(operationOf(request))) throw refuse()
      },
    })
  http.addHook('onRequest', async (request) => {
    if (turns.isFull() && !watching.has(operationOf(request))) throw refuse()
  })
  http.addHook('preHandler', (request, _reply, done) => {
    // A form is still arriving.
    if (watching.has(operationOf(request)) || isForm(request)) return done()
    const leave = turns.enter(() => {
      // Who has gone needs no answer.
      if (request.raw.socket.destroyed) request.leave?.()
      else done()
    })
    if (leave === false) return done(refuse())
    request.leave = leave
    whenOver(request, leave)
  })
  // From here on it is a matter of how fast the caller reads.
  http.addHook('onSend', async (request, _reply, payload) => {
    request.leave?.()
    return payload
  })
}

function limitRates(http: FastifyInstance, { config, clock }: Services): void {
  if (config.rateFactor === null) return
  const rates = createRates(config.rateFactor)
  http.addHook('onRequest', async (request) => {
    const { operation, isPublic = true, methods } = factsOf(request)
    if (operation === 'getHealth' || operation === 'getReadiness') return
    if (operation === 'getMetrics' && isLoopback(request.ip)) return
    // What browsers ask before they call says the same to everybody and costs less than a refusal.
    if (methods !== undefined) return
    const { authorization, cookie } = request.raw.headers
    const credential = isPublic ? undefined : (authorization ?? cookie)
    request.passage = rates.enter({ ip: request.ip, credential, at: clock.now() })
  })
  http.addHook('onSend', async ({ passage }, reply, payload) => {
    if (passage) reply.headers(passage.headers())
    return payload
  })
}

/** A body is in memory before it is known who sends it, for as long as they take: so it is counted as it comes. */
function boundBodies(http: FastifyInstance, services: Services): void {
  http.addHook('preParsing', (request, reply, payload, done) => {
    const { 'content-length': length = '0', 'transfer-encoding': coding } = request.raw.headers
    const isRead = request.method !== 'GET' && request.method !== 'HEAD' && request.method !== 'TRACE'
    if (!isRead || isForm(request) || (length === '0' && coding === undefined)) return done()
    const loan = borrow(services, request.ip)
    whenOver(request, () => loan.giveBack())
    payload.on('data', function count(chunk: Buffer) {
      if (loan.take(chunk.length)) return
      payload.off('data', count)
      // What is refused already is read to its end by nobody.
      if (payload.listenerCount('error') === 0) return
      reply.header('connection', 'close')
      payload.emit('error', tooMuch())
    })
    done()
  })
}
