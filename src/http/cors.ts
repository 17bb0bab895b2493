// CORS (DOMAIN 3.1): scripts on any page may call public web forms, without credentials; pages of
// listed origins may call the rest, with credentials. Not @fastify/cors: OPTIONS is a route of its
// own here, with Allow, and Vary has to be added to a finished response.

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
/** For any origin: no header that identifies the caller. */
const acceptedOfAll = accepted.slice(0, 5).join(', ')
const acceptedOfListed = accepted.join(', ')

/** The longest time that any browser caches a preflight. */
const daySeconds = '86400'

export interface CorsRequest {
  origin: string | undefined
  /** The methods of the path, for a preflight request. */
  methods: string | undefined
  isForAnyOrigin: boolean
}

export function corsHeaders({ origin, methods, isForAnyOrigin }: CorsRequest, listed: readonly string[]) {
  const headers: Record<string, string> = {}
  // The response depends on the origin, whichever it is.
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
