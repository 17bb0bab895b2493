// Sends a document that describes the API, with its ETag and the addresses of its neighbors.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { matches } from '../../kernel/write/etag.ts'

/** The well-known address of the API catalog (RFC 9727). */
export const catalogPath = '/.well-known/api-catalog'

/**
 * The Link header of the documents that describe the API (RFC 8631): its contract, its
 * documentation for people, and the catalog of both.
 */
export const discoveryLinks = [
  '</api/admin/openapi.json>; rel="service-desc"; type="application/json"',
  '</api/admin/documentation>; rel="service-doc"; type="text/html"',
  `<${catalogPath}>; rel="api-catalog"`,
].join(', ')

export interface SentDocument {
  bytes: () => Promise<Buffer>
  /** Whether the document depends on the caller. No cache may store such a document. */
  isOwn?: boolean
  etag: string
  /** The value of Content-Type. */
  type: string
}

export async function sendDocument(
  request: FastifyRequest,
  reply: FastifyReply,
  { bytes, etag, type, isOwn = false }: SentDocument,
): Promise<FastifyReply> {
  reply.headers({ etag, ...(!isOwn && { 'cache-control': 'no-cache' }) })
  const known = request.headers['if-none-match']
  if (known !== undefined && matches(known, etag)) return reply.code(304).send()
  return reply
    .header('link', discoveryLinks)
    .type(type)
    .send(await bytes())
}
