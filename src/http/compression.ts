// Replies over 1 KiB are compressed for callers that ask for it, by @fastify/compress: it negotiates, streams and leaves alone what is
// short, partial or compressed already. What it cannot know is decided here: what must not be compressed, and what an ETag is then.
import compress from '@fastify/compress'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { encodedTag } from '../kernel/write/etag.ts'

const encodings = ['br', 'gzip'] as const

/** Text in all its forms but event streams, whose lines must go out as they come. */
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
    // Bodies of requests are read with limits of their own (request-guards.ts).
    globalDecompression: false,
  })
  // After the hook of the plugin, which stands with the route as well.
  http.addHook('onRoute', (route) => {
    route.onSend = [...[route.onSend ?? []].flat(), tagEncoded]
  })
}

/**
 * A browser sends its cookies along when another site leads it here. Who can see the length of what comes back, and choose words of the
 * query that come back with it, could guess the rest from how well it is compressed (BREACH). Bytes with ranges are counted as they are.
 */
const isPlain = ({ raw: { headers } }: FastifyRequest, reply: FastifyReply): boolean =>
  (headers.cookie !== undefined && headers.authorization === undefined) || reply.hasHeader('accept-ranges')

/** A strong ETag stands for the bytes that are sent (RFC 9110, 8.8.3.3): compressed ones have another. */
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

/** The encoding of the reply that a caller has already. */
const knownAs = ({ raw: { headers } }: FastifyRequest, etag: string): string | undefined =>
  encodings.find((each) => headers['if-none-match']?.includes(encodedTag(etag, each)))
