// Sets the security headers, CORS headers and Cache-Control of every response.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import helmet from 'helmet'
import type { Config } from '../config/config.ts'
import { routeFactsOf } from '../contract/allowed-methods.ts'
import { corsHeaders } from './cors.ts'

/**
 * The content security policy of data: a browser must not run, load or frame any part of it. HTML
 * pages set their own policy.
 */
const policyOfData = "default-src 'none'; frame-ancestors 'none'"

/** The headers of a response that is sent before there is a Fastify request. */
export const minimalHeaders = {
  'content-security-policy': policyOfData,
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
}

/** Returns the headers that helmet sets, so that they are computed only once and set together. */
function helmetHeaders(): Record<string, string> {
  const headers: Record<string, string> = {}
  const response = {
    setHeader(name: string, value: string) {
      headers[name.toLowerCase()] = value
    },
    removeHeader: () => undefined,
  }
  const set = helmet({
    // minimalHeaders has the next two headers.
    contentSecurityPolicy: false,
    xFrameOptions: false,
    // Set by registerSecurityHeaders, because it depends on the protocol of the request.
    strictTransportSecurity: false,
    // The header requests a separate browser process for the origin, which no page here needs.
    originAgentCluster: false,
    xDownloadOptions: false,
  })
  type Sent = Parameters<typeof set>
  set({} as Sent[0], response as unknown as Sent[1], () => undefined)
  return headers
}

const always = { ...helmetHeaders(), ...minimalHeaders }

/** Returns the headers of a load-shedding refusal, which skips the hooks. */
export const headersFor = (request: FastifyRequest, config: Config): Record<string, string> => ({
  ...always,
  'x-request-id': request.id,
  ...(isSecure(request, config) && transportSecurity),
})

const transportSecurity = { 'strict-transport-security': 'max-age=31536000' }

/**
 * Returns whether the response gets HSTS. The header has no includeSubDomains, because subdomains
 * may belong to other programs.
 */
const isSecure = ({ protocol }: FastifyRequest, { appUrl }: Config): boolean =>
  protocol === 'https' || appUrl?.startsWith('https:') === true

/** Returns the CORS headers of a response. */
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

/**
 * Removes `default-src 'none'`, because the PDF viewer of a browser inherits the policy of the
 * response.
 */
function allowPdfViewer(reply: FastifyReply): void {
  if (reply.getHeader('content-security-policy') === policyOfData)
    reply.header('content-security-policy', "frame-ancestors 'none'")
}

/**
 * Allows other sites to embed web forms and to load the script of a form. The HTML page of a form
 * sets its own policy.
 */
function allowEmbedding(reply: FastifyReply): void {
  reply.removeHeader('x-frame-options')
  if (reply.getHeader('cross-origin-resource-policy') === 'same-origin')
    reply.header('cross-origin-resource-policy', 'cross-origin')
}

/**
 * Sets Cache-Control. Replies contain customer data, so proxies must not store them. A browser may
 * store a reply with an ETag, but must revalidate it before each use. `Vary` prevents its use for
 * another user of the browser.
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
