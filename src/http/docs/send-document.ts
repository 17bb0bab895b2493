// Sends a document that describes the API, with an ETag and links to related documents.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { matches } from '../../kernel/write/etag.ts'

/** The path of the API catalog (RFC 9727). */
export const catalogPath = '/.well-known/api-catalog'

/**
 * The Link header of documents that describe the API (RFC 8631). Links to the contract, the
 * documentation page and the API catalog.
 */
export const discoveryLinks = [
  '</api/admin/openapi.json>; rel="service-desc"; type="application/json"',
  '</api/admin/documentation>; rel="service-doc"; type="text/html"',
  `<${catalogPath}>; rel="api-catalog"`,
].join(', ')

export interface SentDocument {
  bytes: () => Promise<Buffer>
  /** Whether the document depends on the caller. Caches must not store such a document. */
  isOwn?: boolean
  etag: string
  /** The value of Content-Type. */
  type: string
}

export function sendDocument(
  request: FastifyRequest,
  reply: FastifyReply,
  { bytes, etag, type, isOwn = false }: SentDocument,
): Promise<FastifyReply> {
  if (!isOwn) reply.header('cache-control', 'no-cache')
  return sendTagged(request, reply, { etag, type, headers: { link: discoveryLinks }, body: bytes })
}

export interface Tagged {
  etag: string
  /** The value of Content-Type. */
  type: string
  /** Headers for a reply with a body. */
  headers?: Record<string, string>
  body: () => string | Buffer | Promise<Buffer>
}

/** Sends a body with its ETag, or 304 if the client has the same version. */
export async function sendTagged(
  request: FastifyRequest,
  reply: FastifyReply,
  { etag, type, headers = {}, body }: Tagged,
): Promise<FastifyReply> {
  reply.header('etag', etag)
  const known = request.headers['if-none-match']
  if (known !== undefined && matches(known, etag)) return reply.code(304).send()
  return reply
    .headers(headers)
    .type(type)
    .send(await body())
}
