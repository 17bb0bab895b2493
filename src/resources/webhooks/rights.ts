// Whose sight limits what a webhook is sent (DOMAIN chapter 0, row 14): that of the user who changed it last, as it is when the delivery
// is made and at each try; and when a workflow calls it, that of the workflow's user as well.
import { signedInAs } from '../../kernel/auth/tokens.ts'
import type { Context, Services } from '../../kernel/context.ts'
import { Problem } from '../../kernel/errors.ts'
import { seenEvents, seesEvent } from '../events/sees.ts'
import { changerColumns, silentReason } from '../system/webhook-rights.ts'
import type { Delivery } from './deliveries.ts'

const webhooksWithChanger = ({ db }: Context) =>
  db
    .selectFrom('webhooks')
    .leftJoin('users', 'users.id', 'webhooks.changed_by_id')
    .leftJoin('roles', 'roles.id', 'users.role_id')
    .select(['webhooks.id', 'webhooks.is_active', 'webhooks.events', 'webhooks.changed', 'webhooks.entity_type'])
    .select(['webhooks.events_after', 'webhooks.changed_by_id', ...changerColumns])

/** Webhooks that subscribe to events and are sent some, in their order. */
export async function loadSubscribers(ctx: Context) {
  const query = webhooksWithChanger(ctx).where('webhooks.is_active', '=', 1).where('webhooks.events', '<>', '[]')
  const rows = await query.orderBy('webhooks.id').execute()
  return rows.filter((row) => {
    const silence = silentReason(ctx.services.sights, row)
    logSilence(ctx, row.id, silence)
    return silence === null
  })
}

/** A sentence why a webhook is sent nothing; null when it is sent something, or is switched off. */
export async function silentReasonOf(ctx: Context, id: number): Promise<string | null> {
  const row = await webhooksWithChanger(ctx).where('webhooks.id', '=', id).executeTakeFirst()
  return row ? silentReason(ctx.services.sights, row) : null
}

/** Throws 409 for a webhook that is sent nothing. */
export async function requireNotSilent(ctx: Context, id: number): Promise<void> {
  const silence = await silentReasonOf(ctx, id)
  if (silence !== null) throw new Problem('state_conflict', silence)
}

/** What was said in the log of each webhook: once, not for every event. */
const said = new WeakMap<Services, Map<number, string>>()

function logSilence({ services }: Context, webhook: number, silence: string | null): void {
  const known = said.get(services) ?? new Map<number, string>()
  said.set(services, known)
  if (silence === null) known.delete(webhook)
  else if (known.get(webhook) !== silence) {
    known.set(webhook, silence)
    services.log.warn({ webhook, reason: silence }, 'A webhook is sent nothing.')
  }
}

/** Those of the events that a user may know of; none for one who is gone or not active. */
export async function eventsVisibleTo(
  ctx: Context,
  userId: number | null,
  ids: readonly number[],
): Promise<ReadonlySet<number>> {
  const user = userId === null ? null : await signedInAs(ctx.db, userId)
  return user && ids.length > 0 ? seenEvents({ ...ctx, user, token: null }, ids) : new Set()
}

/** The contexts of those who must see what is sent, at least one; a sentence when one of them does not. */
export async function contextsOfViewers(
  ctx: Context,
  { webhook_id: webhookId, acting_user_id: callerId, event_id: eventId }: Delivery,
  changerId: number | null,
): Promise<[Context, ...Context[]] | string> {
  const silence = await silentReasonOf(ctx, webhookId)
  logSilence(ctx, webhookId, silence)
  if (silence !== null) return silence
  const changer = changerId === null ? null : await signedInAs(ctx.db, changerId)
  if (!changer) return 'The user who changed this webhook last is gone or not active.'
  const own = { ...ctx, user: changer }
  if (eventId === null || !(await seesEvent(own, eventId)))
    return `${changer.name}, who changed this webhook last, does not see the record.`
  if (callerId === null) return [own]
  const caller = await signedInAs(ctx.db, callerId)
  if (!caller) return 'The user whose workflow called the webhook is gone or not active.'
  const acting = { ...ctx, user: caller }
  if (await seesEvent(acting, eventId)) return [own, acting]
  return `${caller.name}, whose workflow called the webhook, does not see the record any more.`
}
