// CORS headers. Any origin may call public web forms, without credentials. Listed
// origins may call every other path, with credentials. @fastify/cors is not used, because OPTIONS
// has its own handler (with Allow), and Vary must be added to the finished response.

const exposed = [
  'ETag',
  'Link',
  'Location',
  'Content-Disposition',
  'Retry-After',
  'RateLimit',
  'RateLimit-Policy',
  'X-Request-Id',
  'Idempotency-Replayed',
  'Accord-Dry-Run',
  'Deprecation',
  'Sunset',
].join(', ')

const accepted = [
  'Accept',
  'Content-Type',
  'If-None-Match',
  'X-Request-Id',
  'X-Requested-With',
  'Authorization',
  'If-Match',
  'Idempotency-Key',
  'Accord-Dry-Run',
  'X-XSRF-TOKEN',
  'X-CSRF-TOKEN',
  'Last-Event-ID',
  'Range',
  'If-Range',
]
/** The request headers that any origin may send. They contain no credentials. */
const acceptedOfAll = accepted.slice(0, 5).join(', ')
const acceptedOfListed = accepted.join(', ')

/** The caching time of a preflight response in seconds, the maximum that browsers accept. */
const daySeconds = '86400'

export interface CorsRequest {
  origin: string | undefined
  /** The methods of the path. Set only for a preflight request. */
  methods: string | undefined
  isForAnyOrigin: boolean
}

export function corsHeaders({ origin, methods, isForAnyOrigin }: CorsRequest, listed: readonly string[]) {
  const headers: Record<string, string> = {}
  // Needed even if the origin is missing or not listed, because a cache could reuse that response.
  if (!isForAnyOrigin && listed.length > 0) headers.vary = 'Origin'
  if (!isForAnyOrigin && (origin === undefined || !listed.includes(origin))) return headers
  headers['access-control-allow-origin'] = isForAnyOrigin ? '*' : (origin ?? '')
  if (!isForAnyOrigin) headers['access-control-allow-credentials'] = 'true'
  if (methods === undefined) {
    headers['access-control-expose-headers'] = exposed
    return headers
  }
  headers['access-control-allow-methods'] = methods
  headers['access-control-allow-headers'] = isForAnyOrigin ? acceptedOfAll : acceptedOfListed
  headers['access-control-max-age'] = daySeconds
  return headers
}
