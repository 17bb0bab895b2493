// Compresses replies over 1 KiB with @fastify/compress, except replies for which that is unsafe,
// and changes their ETags.
import compress from '@fastify/compress'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { routeFactsOf } from '../contract/allowed-methods.ts'
import { encodedTag } from '../kernel/write/etag.ts'

const encodings = ['br', 'gzip'] as const

/** Matches every text media type except event streams, whose lines must be sent immediately. */
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
    // Request bodies are not decompressed.
    globalDecompression: false,
  })
  // Added after the plugin, so this hook runs after the plugin's hook on each route.
  http.addHook('onRoute', (route) => {
    route.onSend = [...[route.onSend ?? []].flat(), tagEncoded]
  })
}

/**
 * Returns whether a reply must stay uncompressed: replies with byte ranges, and replies to requests
 * with cookies. Another site can make a browser send such a request, and the length of a compressed
 * reply could reveal a secret in it (BREACH attack). Answers to lines must not wait for further
 * answers.
 */
const isPlain = (request: FastifyRequest, reply: FastifyReply): boolean =>
  routeFactsOf(request).hasLines === true ||
  (request.raw.headers.cookie !== undefined && request.raw.headers.authorization === undefined) ||
  reply.hasHeader('accept-ranges')

/**
 * Changes the ETag of a compressed reply, because a strong ETag identifies the sent bytes (RFC
 * 9110, 8.8.3.3).
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

/** Returns the encoding of the client's cached copy, or undefined if it is not compressed. */
const knownAs = ({ raw: { headers } }: FastifyRequest, etag: string): string | undefined =>
  encodings.find((each) => headers['if-none-match']?.includes(encodedTag(etag, each)))
