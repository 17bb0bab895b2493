// Replies over 1 KiB are compressed by @fastify/compress for callers that ask for it. This file
// decides which replies must not be compressed, and gives compressed ones their own ETag.
import compress from '@fastify/compress'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { encodedTag } from '../kernel/write/etag.ts'

const encodings = ['br', 'gzip'] as const

/** Text of every kind except event streams, whose lines must be sent at once. */
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
    // request-guards.ts limits request bodies and leaves them compressed.
    globalDecompression: false,
  })
  // Runs after the plugin's hook, which it adds to each route.
  http.addHook('onRoute', (route) => {
    route.onSend = [...[route.onSend ?? []].flat(), tagEncoded]
  })
}

/**
 * BREACH: a browser sends its cookies with a request that another site makes, so that site could
 * guess a secret of the reply from its compressed length. A reply with byte ranges is not
 * compressed either.
 */
const isPlain = ({ raw: { headers } }: FastifyRequest, reply: FastifyReply): boolean =>
  (headers.cookie !== undefined && headers.authorization === undefined) || reply.hasHeader('accept-ranges')

/**
 * A strong ETag identifies the bytes that are sent (RFC 9110, 8.8.3.3), so a compressed reply has
 * another one.
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

/** The encoding of the copy that the caller has. */
const knownAs = ({ raw: { headers } }: FastifyRequest, etag: string): string | undefined =>
  encodings.find((each) => headers['if-none-match']?.includes(encodedTag(etag, each)))
