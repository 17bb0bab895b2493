// One try to deliver: the request is made, signed and sent, and what came back is told as the log keeps it. Writes nothing.
import type { Schema } from '../../contract/types.ts'
import { openOrNull } from '../../kernel/auth/encryption.ts'
import type { Context } from '../../kernel/context.ts'
import { OutboundError, type OutboundReply } from '../../kernel/outbound/client.ts'
import { stamp, stopwatch } from '../../kernel/runtime/clock.ts'
import { escapeHtml } from '../../kernel/values/format.ts'
import { buildRequest, type RequestTemplate, type WebhookMessage } from './request.ts'
import { signatureHeaders } from './signature.ts'

export type Attempt = Schema<'WebhookAttempt'>

/** What of the row of a webhook signs for it. */
export interface SigningSecrets {
  secret_sealed: string
  previous_secret_sealed: string | null
  previous_secret_until: string | null
}

export interface DeliveryAttempt {
  attempt: Attempt
  /** Whether no request could be made of what is configured, which says nothing of the receiver. */
  isUnsent: boolean
}

/** Whether the receiver took it: only then is the error of an attempt null. */
export const isAccepted = ({ error }: Attempt): boolean => error === null

/** Every outcome is an attempt; throws only when it is called off. */
export async function attemptDelivery(
  ctx: Context,
  sealed: SigningSecrets,
  recipe: RequestTemplate,
  occasion: WebhookMessage,
  signal?: AbortSignal,
): Promise<DeliveryAttempt> {
  const at = ctx.services.clock.now()
  const elapsed = stopwatch()
  try {
    const secrets = secretsOf(ctx, sealed, stamp(at))
    const { method, url, headers, body, hidden } = buildRequest(recipe, occasion)
    const reply = await ctx.services.outbound.request(
      { method, url, headers: { ...headers, ...signatureHeaders({ id: occasion.id, at, body, secrets }) }, body },
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

/** The secret in force, and for a day the one before it. */
function secretsOf({ services: { seal } }: Context, sealed: SigningSecrets, at: string): string[] {
  const { secret_sealed, previous_secret_sealed, previous_secret_until } = sealed
  const isInForce = previous_secret_sealed !== null && previous_secret_until !== null && at < previous_secret_until
  const current = openOrNull(seal, secret_sealed)
  if (current === null)
    throw new OutboundError(
      'invalid',
      'The signing secret cannot be read: it was stored with another ACCORD_SECRET. Rotate it.',
    )
  // The one before may be what was rotated for that reason.
  return [current, (isInForce ? openOrNull(seal, previous_secret_sealed) : null) ?? []].flat()
}

/** Shorter texts stand in many answers and are no secret. */
const minHiddenLength = 4

/** A text as an answer may repeat it: as it is, in JSON, in JSON that escapes slashes, and each of these in HTML. */
function formsOf(text: string): string[] {
  const inJson = JSON.stringify(text).slice(1, -1)
  return [text, inJson, inJson.replaceAll('/', '\\/')].flatMap((each) => [each, escapeHtml(each)])
}

/** An answer without what was sent to get it, the beginning of which may stand at its end. */
export function redact(text: string, hidden: readonly string[]): string {
  const maxFirstLength = [...new Set(hidden.flatMap(formsOf))]
    .filter(({ length }) => length >= minHiddenLength)
    .sort((one, other) => other.length - one.length)
  const whole = maxFirstLength.reduce((rest, each) => rest.replaceAll(each, '…'), text)
  for (const each of maxFirstLength)
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
