// Security headers, CORS headers and Cache-Control of every response.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import helmet from 'helmet'
import type { Config } from '../config/config.ts'
import { routeFactsOf } from '../contract/allowed-methods.ts'
import { corsHeaders } from './cors.ts'

/** For data: a browser must not run, load or frame any of it. HTML pages set their own policy. */
const policyOfData = "default-src 'none'; frame-ancestors 'none'"

/** For responses that are sent before Fastify has a request. */
export const minimalHeaders = {
  'content-security-policy': policyOfData,
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
}

/**
 * The headers of helmet, computed once, because helmet sets each header separately for every
 * response.
 */
function helmetHeaders(): Record<string, string> {
  const headers: Record<string, string> = {}
  const response = {
    setHeader(name: string, value: string) {
      headers[name.toLowerCase()] = value
    },
    removeHeader: () => undefined,
  }
  const set = helmet({
    // minimalHeaders has both.
    contentSecurityPolicy: false,
    xFrameOptions: false,
    // Set below, depending on the protocol of the request.
    strictTransportSecurity: false,
    // Pages of one origin may share a process; no page here needs one of its own.
    originAgentCluster: false,
    xDownloadOptions: false,
  })
  type Sent = Parameters<typeof set>
  set({} as Sent[0], response as unknown as Sent[1], () => undefined)
  return headers
}

const always = { ...helmetHeaders(), ...minimalHeaders }

/** The headers of a refusal before routing: `always`, the request id and HSTS. */
export const headersFor = (request: FastifyRequest, config: Config): Record<string, string> => ({
  ...always,
  'x-request-id': request.id,
  ...(isSecure(request, config) && transportSecurity),
})

const transportSecurity = { 'strict-transport-security': 'max-age=31536000' }

/** Without includeSubDomains, because subdomains may belong to other programs. */
const isSecure = ({ protocol }: FastifyRequest, { appUrl }: Config): boolean =>
  protocol === 'https' || appUrl?.startsWith('https:') === true

/** The CORS headers of a response. */
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

/** Browsers show a PDF in a page of their own, which inherits the policy. */
function allowPdfViewer(reply: FastifyReply): void {
  if (reply.getHeader('content-security-policy') === policyOfData)
    reply.header('content-security-policy', "frame-ancestors 'none'")
}

/** Other sites embed web forms and load their script; the form's own page sets its policy. */
function allowEmbedding(reply: FastifyReply): void {
  reply.removeHeader('x-frame-options')
  if (reply.getHeader('cross-origin-resource-policy') === 'same-origin')
    reply.header('cross-origin-resource-policy', 'cross-origin')
}

/**
 * Replies hold customer data, so no proxy may store them. A browser may keep a reply with an ETag,
 * to ask whether it is still current (304), but not for another user of the same machine.
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
