// CORS headers (DOMAIN 3.1). Scripts of any origin may call public web forms, without credentials.
// Scripts of a listed origin may call every other path, with credentials. @fastify/cors does not
// fit, because OPTIONS has its own route here (with Allow), and Vary is added to a finished
// response.

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
/** The request headers that any origin may send. None of them identifies the caller. */
const acceptedOfAll = accepted.slice(0, 5).join(', ')
const acceptedOfListed = accepted.join(', ')

/** The caching time of a preflight response. No browser caches it for longer. */
const daySeconds = '86400'

export interface CorsRequest {
  origin: string | undefined
  /** The methods of the path. Only set for a preflight request. */
  methods: string | undefined
  isForAnyOrigin: boolean
}

export function corsHeaders({ origin, methods, isForAnyOrigin }: CorsRequest, listed: readonly string[]) {
  const headers: Record<string, string> = {}
  // The response depends on the origin, even when the origin is not listed or absent.
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
