// Compresses replies over 1 KiB with @fastify/compress. This file decides which replies must not be
// compressed, and changes the ETag of a compressed reply.
import compress from '@fastify/compress'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { encodedTag } from '../kernel/write/etag.ts'

const encodings = ['br', 'gzip'] as const

/**
 * Matches every text media type except event streams. The lines of an event stream must be sent at
 * once.
 */
const texts = /^(text\/(?!event-stream)|application\/([\w.-]+\+)?(json|x-ndjson|yaml|javascript)|image\/svg\+xml)/

export async function compressReplies(http: FastifyInstance): Promise<void> {
  http.addHook('onSend', (request, reply, _payload, done) => {
    if (isPlain(request, reply)) request.raw.headers['x-no-compression'] = 'yes'
    done()
  })
  await http.register(compress, {
    encodings: [...encodings],
    threshold: 1024,
    customTypes: texts,
    // Request bodies stay compressed. request-guards.ts limits their size.
    globalDecompression: false,
  })
  // The plugin adds its hook to each route. The hook added here runs after that hook.
  http.addHook('onRoute', (route) => {
    route.onSend = [...[route.onSend ?? []].flat(), tagEncoded]
  })
}

/**
 * Returns whether a reply must stay uncompressed. Another site can make a browser
 * send a request with its cookies. The length of the compressed reply could then reveal a secret in
 * the reply (the BREACH attack). A reply that allows byte ranges stays uncompressed, too.
 */
const isPlain = ({ raw: { headers } }: FastifyRequest, reply: FastifyReply): boolean =>
  (headers.cookie !== undefined && headers.authorization === undefined) || reply.hasHeader('accept-ranges')

/**
 * Changes the ETag of a compressed reply. A strong ETag identifies the bytes that are sent (RFC
 * 9110, 8.8.3.3), so a compressed reply needs a different ETag.
 */
function tagEncoded(
  request: FastifyRequest,
  reply: FastifyReply,
  payload: unknown,
  done: (error: null, payload: unknown) => void,
): void {
  const etag = reply.getHeader('etag')
  if (typeof etag === 'string' && etag.startsWith('"')) {
    const encoding = reply.getHeader('content-encoding') ?? (reply.statusCode === 304 && knownAs(request, etag))
    if (typeof encoding === 'string') reply.header('etag', encodedTag(etag, encoding))
  }
  done(null, payload)
}

/**
 * Returns the encoding of the copy that the caller has; undefined when the copy is not compressed.
 */
const knownAs = ({ raw: { headers } }: FastifyRequest, etag: string): string | undefined =>
  encodings.find((each) => headers['if-none-match']?.includes(encodedTag(etag, each)))
