// The rights with which a webhook sends. A webhook sends only records
// that the user who last changed it may see. This is checked when a delivery is queued and at each
// attempt. When a workflow calls the webhook, the workflow's user must see the record too.

import { type SqlBool, sql } from 'kysely'
import type { Context, Services } from '../../kernel/context.ts'
import { Problem } from '../../kernel/errors.ts'
import { perOwner } from '../../kernel/runtime/per-owner.ts'
import { canSeeEvent, visibleEventIds } from '../events/visible-events.ts'
import { changerColumns, silentReason } from '../system/webhook-rights.ts'
import { inactiveReason, loadActingUser } from '../users/acting-user.ts'
import type { Delivery } from './deliveries.ts'

const webhooksWithChanger = ({ db }: Context) =>
  db
    .selectFrom('webhooks')
    .leftJoin('users', 'users.id', 'webhooks.changed_by_id')
    .leftJoin('roles', 'roles.id', 'users.role_id')
    .select(['webhooks.id', 'webhooks.is_active', 'webhooks.events', 'webhooks.changed', 'webhooks.entity_type'])
    .select(['webhooks.events_after', 'webhooks.changed_by_id', ...changerColumns])

/** The condition for webhooks that subscribe to events. The JSON list is compared as text. */
export const hasEvents = sql<SqlBool>`cast(webhooks.events as text) <> '[]'`

/**
 * Returns the active webhooks with a subscription, sorted by id. Omits and logs webhooks whose user
 * may read none of the subscribed record types.
 */
export async function loadSubscribers(ctx: Context) {
  const query = webhooksWithChanger(ctx).where('webhooks.is_active', '=', 1).where(hasEvents)
  const rows = await query.orderBy('webhooks.id').execute()
  return rows.filter((row) => {
    const silence = silentReason(ctx.services.sights, row)
    logSilence(ctx, row.id, silence)
    return silence === null
  })
}

/** Returns why the webhook sends nothing; null when it sends something or is switched off. */
export async function silentReasonOf(ctx: Context, id: number): Promise<string | null> {
  const row = await webhooksWithChanger(ctx).where('webhooks.id', '=', id).executeTakeFirst()
  return row ? silentReason(ctx.services.sights, row) : null
}

/** Throws 409 with the reason when the webhook sends nothing. */
export async function requireNotSilent(ctx: Context, id: number): Promise<void> {
  const silence = await silentReasonOf(ctx, id)
  if (silence !== null) throw new Problem('state_conflict', silence)
}

/**
 * The last logged reason of each webhook. A reason is logged only when it changes, not for every
 * event.
 */
const logged = perOwner((_services: Services) => new Map<number, string>())

function logSilence({ services }: Context, webhook: number, silence: string | null): void {
  const known = logged(services)
  if (silence === null) known.delete(webhook)
  else if (known.get(webhook) !== silence) {
    known.set(webhook, silence)
    services.log.warn({ webhook, reason: silence }, 'A webhook sends nothing.')
  }
}

/**
 * Returns the given event ids that the user may see. The result is empty for a deleted or inactive
 * user.
 */
export async function eventsVisibleTo(
  ctx: Context,
  userId: number | null,
  ids: readonly number[],
): Promise<ReadonlySet<number>> {
  const user = await loadActingUser(ctx, userId)
  return user && ids.length > 0 ? visibleEventIds({ ...ctx, user, token: null }, ids) : new Set()
}

/**
 * Returns the context of every user who must see the event of a delivery. Returns the reason as a
 * sentence when one of these users does not see the event.
 */
export async function contextsOfViewers(
  ctx: Context,
  { webhook_id: webhookId, acting_user_id: callerId, event_id: eventId }: Delivery,
  changerId: number | null,
): Promise<[Context, ...Context[]] | string> {
  const silence = await silentReasonOf(ctx, webhookId)
  logSilence(ctx, webhookId, silence)
  if (silence !== null) return silence
  const changer = await loadActingUser(ctx, changerId)
  if (!changer) return inactiveReason('webhook')
  const own = { ...ctx, user: changer }
  if (eventId === null || !(await canSeeEvent(own, eventId)))
    return `${changer.name}, who changed this webhook last, does not see the record.`
  if (callerId === null) return [own]
  const caller = await loadActingUser(ctx, callerId)
  if (!caller) return 'The user whose workflow called the webhook is deleted or inactive.'
  const acting = { ...ctx, user: caller }
  if (await canSeeEvent(acting, eventId)) return [own, acting]
  return `${caller.name}, whose workflow called the webhook, no longer sees the record.`
}
