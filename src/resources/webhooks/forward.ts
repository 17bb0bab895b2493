// Sends events to one address without a webhook, for `accord listen`. The requests are those of a
// webhook with the default body; nothing is stored, and a failed request is not repeated.
import type { Context } from '../../kernel/context.ts'
import { newestEvent } from '../../kernel/write/event-log.ts'
import { messageIdOf } from './deliveries.ts'
import { messageOf, storedEvent } from './message.ts'
import type { RequestTemplate } from './request.ts'
import { type Attempt, attemptDelivery } from './send.ts'
import { readPastEvents } from './subscriptions.ts'

export interface Forwarding {
  url: string
  /** Patterns of event names. */
  events: readonly string[]
  /** The user whose visible events are sent. */
  user: NonNullable<Context['user']>
}

export interface Forwarded {
  event_id: number
  name: string
  entity_type: string
  entity_id: number | null
  message_id: string
  attempt: Attempt
}

/**
 * Returns the signing secret of forwarded events. It follows from the secret of the installation,
 * so that it is the same each time.
 */
export const forwardingSecret = ({ services: { encryption } }: Context): string =>
  `whsec_${Buffer.from(encryption.derive('forwarded-events'), 'base64url').toString('base64')}`

/** The number in message ids in the place of the id of a webhook. Ids of webhooks begin at 1. */
const noWebhook = 0

/**
 * Sends the events with an id greater than `after`, one by one in their order, and calls `tell` for
 * each. Returns the id after which the next call continues. Throws when `signal` aborts.
 */
export async function forwardEvents(
  ctx: Context,
  { url, events, user }: Forwarding,
  after: number,
  { tell, signal }: { tell(sent: Forwarded): void; signal: AbortSignal },
): Promise<number> {
  const newest = await newestEvent(ctx)
  // The log is shorter than before when a backup has been restored.
  if (newest <= after) return newest
  const subscription = { events: JSON.stringify(events), changed: '[]', entity_type: null, changed_by_id: user.id }
  const past = await readPastEvents(ctx, subscription, after)
  const template: RequestTemplate = {
    ...{ method: 'post', url, query_params: [], headers: [] },
    ...{ payload_type: 'default', raw_payload_type: null, payload: null },
  }
  const secret = ctx.services.encryption.encrypt(forwardingSecret(ctx))
  const sealed = { secret_sealed: secret, previous_secret_sealed: null, previous_secret_until: null }
  for (const { id, name, entity_type, entity_id, created_at } of past.events) {
    signal.throwIfAborted()
    const event = await storedEvent(ctx, id)
    if (event === null) continue
    const message_id = messageIdOf({ id, created_at }, noWebhook)
    const message = await messageOf([{ ...ctx, user }], message_id, event, template)
    const { attempt } = await attemptDelivery(ctx, sealed, template, message, signal)
    tell({ event_id: id, name, entity_type, entity_id, message_id, attempt })
  }
  return past.last ?? newest
}
