// Describes why an outgoing call got no response. The message is one line that may be stored and
// shown. It names only the host, because the path and query of a URL may contain secrets.
export type OutboundErrorKind = 'refused-address' | 'dns' | 'connect' | 'tls' | 'timeout' | 'dropped' | 'invalid'

export class OutboundError extends Error {
  readonly kind: OutboundErrorKind
  constructor(kind: OutboundErrorKind, message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.name = 'OutboundError'
    this.kind = kind
  }
}

/** The state of a call at the moment of an error. */
interface Moment {
  host: string
  isConnected: boolean
  /** Whether the time limit of the call has passed. */
  isOver: boolean
  ms: number
}

const ofTls =
  /^(EPROTO|ERR_TLS_|ERR_SSL_|CERT_|CRL_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|INVALID_CA|INVALID_PURPOSE|HOSTNAME_)/
const notInTime = /^(UND_ERR_(CONNECT|HEADERS|BODY)_TIMEOUT|ETIMEDOUT)$/

export function toOutboundError(cause: unknown, { host, isConnected, isOver, ms }: Moment): OutboundError {
  if (cause instanceof OutboundError) return cause
  const code = codeOf(cause)
  const failed = (kind: OutboundErrorKind, message: string): OutboundError =>
    new OutboundError(kind, message, { cause })
  if (code === 'UND_ERR_INVALID_ARG' || code === 'UND_ERR_NOT_SUPPORTED')
    return failed('invalid', `The request cannot be sent: ${oneLine(cause)}`)
  if (ofTls.test(code)) return failed('tls', `No trusted connection to ${host} (${code}).`)
  if (notInTime.test(code) || isOver)
    return failed(
      'timeout',
      isConnected ? `${host} did not answer within ${ms} ms.` : `No connection to ${host} within ${ms} ms.`,
    )
  if (!isConnected) return failed('connect', `No connection to ${host} (${code || 'refused'}).`)
  return failed('dropped', `${host} ended the connection before its answer was complete.`)
}

/**
 * Returns the code of an error. For an error without a code, returns the code of its cause or of
 * its first sub-error.
 */
function codeOf(cause: unknown): string {
  const error = cause as { code?: unknown; errors?: unknown[]; cause?: unknown } | null | undefined
  if (typeof error?.code === 'string') return error.code
  if (Array.isArray(error?.errors) && error.errors.length > 0) return codeOf(error.errors[0])
  return error?.cause === undefined ? '' : codeOf(error.cause)
}

/**
 * Returns the message of an error on one line. The message may be shown: for an invalid argument,
 * undici names the header but not its value.
 */
const oneLine = (cause: unknown): string =>
  cause instanceof Error ? cause.message.replace(/\s+/g, ' ').slice(0, 200) : ''
