// What browsers are told about pages of other origins (CORS, DOMAIN 3.1): web forms are for scripts of any page, without
// credentials; all else is for pages of listed origins, with them. Not @fastify/cors: OPTIONS has routes of its own here, which
// say Allow, and what is said must be added to the Vary of an answer that is complete.

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
/** Of what is for everybody: nothing that says who is calling. */
const acceptedOfAll = accepted.slice(0, 5).join(', ')
const acceptedOfListed = accepted.join(', ')

/** As long as any browser remembers what it was told before it called. */
const daySeconds = '86400'

export interface CorsRequest {
  origin: string | undefined
  /** Methods of the path, when this is the question a browser asks before it calls. */
  methods: string | undefined
  isForAnyOrigin: boolean
}

export function corsHeaders({ origin, methods, isForAnyOrigin }: CorsRequest, listed: readonly string[]) {
  const headers: Record<string, string> = {}
  // Whatever the answer: for another origin it would be another one.
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
