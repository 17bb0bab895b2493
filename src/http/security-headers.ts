// What every answer carries: headers that protect whoever reads it, what browsers are told about pages of other origins, and how long
// it may be kept.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import helmet from 'helmet'
import type { Config } from '../config/config.ts'
import { routeFactsOf } from '../contract/allowed-methods.ts'
import { corsHeaders } from './cors.ts'

/** For what is no page: nothing in it may run or load anything, and nothing may show it. Pages say what they need themselves. */
const policyOfData = "default-src 'none'; frame-ancestors 'none'"

/** The least of it, for answers that are given before there is a request to speak of. */
export const minimalHeaders = {
  'content-security-policy': policyOfData,
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
}

/** What helmet says of every answer, asked once: it would set one header after the other for each. */
function helmetHeaders(): Record<string, string> {
  const headers: Record<string, string> = {}
  const response = {
    setHeader(name: string, value: string) {
      headers[name.toLowerCase()] = value
    },
    removeHeader: () => undefined,
  }
  const set = helmet({
    // Both are among the bare ones.
    contentSecurityPolicy: false,
    xFrameOptions: false,
    // Said below, by how each request came.
    strictTransportSecurity: false,
    // Those of one origin must be able to share a process; nothing here needs a process of its own.
    originAgentCluster: false,
    xDownloadOptions: false,
  })
  type Sent = Parameters<typeof set>
  set({} as Sent[0], response as unknown as Sent[1], () => undefined)
  return headers
}

const always = { ...helmetHeaders(), ...minimalHeaders }

/** What an answer carries before anything is known but the request; `always` and more. */
export const headersFor = (request: FastifyRequest, config: Config): Record<string, string> => ({
  ...always,
  'x-request-id': request.id,
  ...(isSecure(request, config) && transportSecurity),
})

const transportSecurity = { 'strict-transport-security': 'max-age=31536000' }

/** Not for the domains below: they are of others. */
const isSecure = ({ protocol }: FastifyRequest, { appUrl }: Config): boolean =>
  protocol === 'https' || appUrl?.startsWith('https:') === true

/** What browsers are told about pages of other origins. */
export function originHeadersFor(request: FastifyRequest, { corsOrigins }: Config): Record<string, string> {
  const { isForAnyOrigin = false, methods } = routeFactsOf(request)
  return corsHeaders({ origin: request.raw.headers.origin, methods, isForAnyOrigin }, corsOrigins)
}

export function registerSecurityHeaders(http: FastifyInstance, config: Config): void {
  http.addHook('onRequest', (request, reply, done) => {
    reply.headers(always).header('x-request-id', request.id)
    if (isSecure(request, config)) reply.headers(transportSecurity)
    done()
  })
  http.addHook('onSend', (request, reply, _payload, done) => {
    const { isForAnyOrigin = false } = routeFactsOf(request)
    const { vary, ...headers } = originHeadersFor(request, config)
    reply.headers(headers)
    if (vary !== undefined) addVary(reply, vary)
    if (isForAnyOrigin) allowEmbedding(reply)
    if (String(reply.getHeader('content-type')).startsWith('application/pdf')) allowPdfViewer(reply)
    setCacheControl(request, reply)
    done()
  })
}

/** Browsers show a PDF by a page of their own, which takes the policy for its. */
function allowPdfViewer(reply: FastifyReply): void {
  if (reply.getHeader('content-security-policy') === policyOfData)
    reply.header('content-security-policy', "frame-ancestors 'none'")
}

/** Pages of others show web forms and load their script; the policy of the page says so to browsers that ask it. */
function allowEmbedding(reply: FastifyReply): void {
  reply.removeHeader('x-frame-options')
  if (reply.getHeader('cross-origin-resource-policy') === 'same-origin')
    reply.header('cross-origin-resource-policy', 'cross-origin')
}

/**
 * What is said of customers is for nobody else and not for later. With an ETag a browser may keep it, to ask whether it is still
 * so (304): never a proxy, never without asking, and never for somebody else on the same machine.
 */
function setCacheControl({ method }: FastifyRequest, reply: FastifyReply): void {
  if (reply.hasHeader('cache-control')) return
  const isKept = (method === 'GET' || method === 'HEAD') && reply.hasHeader('etag') && reply.statusCode < 400
  reply.header('cache-control', isKept ? 'private, no-cache' : 'no-store')
  if (isKept) addVary(reply, 'Authorization, Cookie')
}

function addVary(reply: FastifyReply, names: string): void {
  const said = reply.getHeader('vary')
  reply.header('vary', said === undefined ? names : `${String(said)}, ${names}`)
}
