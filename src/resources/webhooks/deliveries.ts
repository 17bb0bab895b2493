// A delivery is one row per webhook and event, with the job that sends it. The row is inserted in
// the transaction that asks for the delivery, and once per cause.
import type { Selectable } from 'kysely'
import type { DB } from '../../../db/tables.gen.ts'
import type { Schema } from '../../contract/types.ts'
import { enqueue, enqueueAll, expedite, releaseDedupeKey } from '../../jobs/queue.ts'
import { type Context, now } from '../../kernel/context.ts'
import { Problem } from '../../kernel/errors.ts'
import { transaction } from '../../kernel/write/write.ts'

export type Delivery = Selectable<DB['webhook_deliveries']>

/**
 * The job kinds of deliveries (jobs.ts runs them). Failing receivers have slots of their own, so a
 * receiver that hangs does not block the others.
 */
export const deliveryJobKinds = { healthy: 'webhooks.deliver', failing: 'webhooks.deliver-to-failing' } as const

export interface DeliverPayload {
  delivery_id: number
}

/** The event that a delivery sends. */
export interface DeliveredEvent {
  id: number
  name: string
  entity_type: string
  entity_id: number | null
}

export const deliveryJobKey = (id: number): string => `webhook-delivery:${id}`

/** Events about one record are delivered in their order. */
const sequenceOf = ({
  webhook_id,
  entity_type,
  entity_id,
}: Pick<Delivery, 'webhook_id' | 'entity_type' | 'entity_id'>) =>
  `webhook:${webhook_id}:${entity_type}:${entity_id ?? 0}`

export const messageIdOf = (eventId: number, webhookId: number): string => `msg_${eventId}_${webhookId}`
export const eventDedupeKey = (eventId: number): string => `event:${eventId}`

/** Returns the id of the delivery; null when one exists for this cause. */
export const queueDelivery = async (
  ctx: Context,
  webhookId: number,
  event: DeliveredEvent,
  names: Partial<Names> = {},
): Promise<number | null> => (await queueDeliveries(ctx, [{ webhookId, event, ...names }]))[0] ?? null

interface Names {
  dedupeKey: string
  messageId: string
  /**
   * The user whose rights limit the content besides those of the webhook's user; none for a
   * subscription.
   */
  userId: number
}

/**
 * Inserts the deliveries whose cause has none yet, with a fixed number of statements. Returns their
 * ids.
 */
export async function queueDeliveries(
  ctx: Context,
  wanted: readonly ({ webhookId: number; event: DeliveredEvent } & Partial<Names>)[],
): Promise<number[]> {
  const at = now(ctx)
  const made = await ctx.db
    .insertInto('webhook_deliveries')
    .values(
      wanted.map(({ webhookId, event, dedupeKey, messageId, userId }) => ({
        webhook_id: webhookId,
        dedupe_key: dedupeKey ?? eventDedupeKey(event.id),
        message_id: messageId ?? messageIdOf(event.id, webhookId),
        acting_user_id: userId ?? null,
        event_id: event.id,
        event: event.name,
        entity_type: event.entity_type,
        entity_id: event.entity_id,
        next_attempt_at: at,
        finished_at: null,
        created_at: at,
        updated_at: at,
      })),
    )
    .onConflict((conflict) => conflict.columns(['webhook_id', 'dedupe_key']).doNothing())
    .returning(['id', 'webhook_id', 'entity_type', 'entity_id'])
    .execute()
  made.sort((a, b) => a.id - b.id)
  await enqueueAll(ctx, { kind: deliveryJobKinds.healthy }, made.map(jobOf))
  return made.map(({ id }) => id)
}

const jobOf = (row: Pick<Delivery, 'id' | 'webhook_id' | 'entity_type' | 'entity_id'>) => {
  const payload: DeliverPayload = { delivery_id: row.id }
  return { payload, key: deliveryJobKey(row.id), sequence: sequenceOf(row) }
}

/**
 * Sends a finished delivery again, with the same `webhook-id` and all retries. False while it is
 * pending.
 */
export async function requeueDelivery(ctx: Context, row: Delivery): Promise<boolean> {
  if (row.state !== 'pending') await leaveToEnd(ctx, row)
  const isQueued = (await enqueueDelivery(ctx, row)) !== null
  // A pending delivery whose job was deleted gets a new job.
  if (row.state === 'pending' && !isQueued) return false
  if (!isQueued) await expedite(ctx, [deliveryJobKey(row.id)])
  await restartDelivery(ctx, row.id)
  return true
}

/**
 * A running job that has finished the delivery is deleted soon. It gives up its key so that the new
 * job can be queued behind it.
 */
async function leaveToEnd(ctx: Context, { id }: Delivery): Promise<void> {
  const job = await ctx.db
    .selectFrom('jobs')
    .select('id')
    .where('dedupe_key', '=', deliveryJobKey(id))
    .where('state', '=', 'running')
    .executeTakeFirst()
  if (job) await releaseDedupeKey(ctx, job.id)
}

/** Makes the delivery pending again with no tries. The caller queues the job. */
export async function restartDelivery(ctx: Context, id: number): Promise<void> {
  await ctx.db
    .updateTable('webhook_deliveries')
    .set({ state: 'pending', tries: 0, next_attempt_at: now(ctx), finished_at: null, updated_at: now(ctx) })
    .where('id', '=', id)
    .execute()
}

const enqueueDelivery = (ctx: Context, row: Delivery): Promise<number | null> => {
  const { payload, ...options } = jobOf(row)
  return enqueue(ctx, { kind: deliveryJobKinds.healthy }, payload, options)
}

export const attemptsOf = ({ attempts }: Pick<Delivery, 'attempts'>): Schema<'WebhookAttempt'>[] =>
  JSON.parse(attempts) as Schema<'WebhookAttempt'>[]

/**
 * The workflow action `trigger_webhook`: sends the event of the run, whatever the webhook
 * subscribes to, once per action of a run. The content is limited to what the workflow's user sees.
 * Returns the id of the delivery. Throws a Problem for a webhook that is deleted or switched off.
 */
export const triggerWebhook = (
  ctx: Context,
  webhookId: number,
  { eventId, runId, index, userId }: { eventId: number; runId: number; index: number; userId: number },
): Promise<number> =>
  transaction(ctx, async (ctx) => {
    const { db } = ctx
    const webhook = await db.selectFrom('webhooks').select('is_active').where('id', '=', webhookId).executeTakeFirst()
    if (!webhook) throw new Problem('state_conflict', `The webhook ${webhookId} has been deleted.`)
    if (webhook.is_active === 0) throw new Problem('state_conflict', `The webhook ${webhookId} is switched off.`)
    const event = await db
      .selectFrom('events')
      .select(['id', 'name', 'entity_type', 'entity_id'])
      .where('id', '=', eventId)
      .executeTakeFirst()
    if (!event) throw new Problem('state_conflict', 'The event is no longer stored.')
    const dedupeKey = `run:${runId}:${index}`
    const made = await queueDelivery(ctx, webhookId, event, {
      dedupeKey,
      messageId: `${messageIdOf(eventId, webhookId)}_${runId}_${index}`,
      userId,
    })
    if (made !== null) return made
    const { id } = await db
      .selectFrom('webhook_deliveries')
      .select('id')
      .where('webhook_id', '=', webhookId)
      .where('dedupe_key', '=', dedupeKey)
      .executeTakeFirstOrThrow()
    return id
  })
