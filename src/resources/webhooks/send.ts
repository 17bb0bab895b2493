// Makes one delivery attempt: builds, signs and sends the request, and describes the response for
// the log. Writes nothing to the database.
import type { Schema } from '../../contract/types.ts'
import { openOrNull } from '../../kernel/auth/encryption.ts'
import type { Context } from '../../kernel/context.ts'
import { OutboundError, type OutboundReply } from '../../kernel/outbound/client.ts'
import { stamp, stopwatch } from '../../kernel/runtime/clock.ts'
import { escapeHtml } from '../../kernel/values/format.ts'
import { buildRequest, type RequestTemplate, type WebhookMessage } from './request.ts'
import { signatureHeaders } from './signature.ts'

export type Attempt = Schema<'WebhookAttempt'>

/** The columns of a webhook with its encrypted signing secrets. */
export interface SigningSecrets {
  secret_sealed: string
  previous_secret_sealed: string | null
  previous_secret_until: string | null
}

export interface DeliveryAttempt {
  attempt: Attempt
  /**
   * Whether no request was sent because the configuration is invalid. Such an attempt says nothing
   * about the receiver.
   */
  isUnsent: boolean
}

/** Returns whether the receiver accepted the delivery. Only an accepted attempt has no error. */
export const isAccepted = ({ error }: Attempt): boolean => error === null

/**
 * Sends the request and returns the attempt, whether it succeeded or failed. Throws only when
 * `signal` aborts.
 */
export async function attemptDelivery(
  ctx: Context,
  sealed: SigningSecrets,
  template: RequestTemplate,
  message: WebhookMessage,
  signal?: AbortSignal,
): Promise<DeliveryAttempt> {
  const at = ctx.services.clock.now()
  const elapsed = stopwatch()
  try {
    const secrets = secretsOf(ctx, sealed, stamp(at))
    const { method, url, headers, body, hidden } = buildRequest(template, message)
    const reply = await ctx.services.outbound.request(
      { method, url, headers: { ...headers, ...signatureHeaders({ id: message.id, at, body, secrets }) }, body },
      signal,
    )
    const attempt = {
      at: stamp(at),
      status: reply.status,
      duration_ms: reply.ms,
      error: faultOf(reply),
      response_excerpt: redact(reply.excerpt, [...secrets, ...hidden]),
    }
    return { attempt, isUnsent: false }
  } catch (cause) {
    if (!(cause instanceof OutboundError)) throw cause
    const { message, kind } = cause
    return {
      attempt: { at: stamp(at), status: null, duration_ms: elapsed(), error: message, response_excerpt: null },
      isUnsent: kind === 'invalid',
    }
  }
}

/** Returns the current secret, and for one day after a rotation also the previous secret. */
function secretsOf({ services: { encryption } }: Context, sealed: SigningSecrets, at: string): string[] {
  const { secret_sealed, previous_secret_sealed, previous_secret_until } = sealed
  const isInForce = previous_secret_sealed !== null && previous_secret_until !== null && at < previous_secret_until
  const current = openOrNull(encryption, secret_sealed)
  if (current === null)
    throw new OutboundError(
      'invalid',
      'The signing secret cannot be read: it was stored with another ACCORD_SECRET. Rotate it.',
    )
  // A previous secret that cannot be decrypted is skipped, because this fault may be the reason for
  // the rotation.
  return [current, (isInForce ? openOrNull(encryption, previous_secret_sealed) : null) ?? []].flat()
}

/**
 * The minimum length of a redacted text in characters. Shorter texts occur in many responses by
 * chance.
 */
const minHiddenLength = 4

/**
 * Returns the encodings in which a response may repeat a text: plain, JSON, JSON with escaped
 * slashes, and the HTML form of each of these.
 */
function formsOf(text: string): string[] {
  const inJson = JSON.stringify(text).slice(1, -1)
  return [text, inJson, inJson.replaceAll('/', '\\/')].flatMap((each) => [each, escapeHtml(each)])
}

/**
 * Returns the response text with the secrets of the request replaced by `…`. A secret that is cut
 * off at the end of the text is replaced too.
 */
export function redact(text: string, hidden: readonly string[]): string {
  const longestFirst = [...new Set(hidden.flatMap(formsOf))]
    .filter(({ length }) => length >= minHiddenLength)
    .sort((one, other) => other.length - one.length)
  const whole = longestFirst.reduce((rest, each) => rest.replaceAll(each, '…'), text)
  for (const each of longestFirst)
    for (let length = Math.min(each.length - 1, whole.length); length >= minHiddenLength; length--)
      if (whole.endsWith(each.slice(0, length))) return `${whole.slice(0, -length)}…`
  return whole
}

function faultOf({ status }: OutboundReply): string | null {
  if (status >= 200 && status < 300) return null
  return status >= 300 && status < 400
    ? `The receiver answered ${status}; redirects are not followed.`
    : `The receiver answered ${status}.`
}
