// Deliveries of webhooks. A delivery is a database row for one webhook and one event; a job sends
// it. A subscription or a workflow action queues a delivery. The column dedupe_key ensures that the
// same cause never queues a second delivery.
import type { Selectable } from 'kysely'
import type { DB } from '../../../db/tables.gen.ts'
import type { Schema } from '../../contract/types.ts'
import { enqueue, enqueueAll, expedite, releaseDedupeKey } from '../../jobs/queue.ts'
import { type Context, now } from '../../kernel/context.ts'
import { Problem } from '../../kernel/errors.ts'
import { transaction } from '../../kernel/write/write.ts'

export type Delivery = Selectable<DB['webhook_deliveries']>

/**
 * The job kinds of deliveries, which jobs.ts defines. Each kind has its own concurrency limit, so a
 * failing receiver that times out does not delay the healthy receivers.
 */
export const deliveryJobKinds = { healthy: 'webhooks.deliver', failing: 'webhooks.deliver-to-failing' } as const

export interface DeliverPayload {
  delivery_id: number
}

export interface DeliveredEvent {
  id: number
  name: string
  entity_type: string
  entity_id: number | null
  created_at: string
}

export const deliveryJobKey = (id: number): string => `webhook-delivery:${id}`

/**
 * Returns the job sequence of a delivery. Jobs of one sequence run in order, so events about one
 * record are delivered in order.
 */
const sequenceOf = ({
  webhook_id,
  entity_type,
  entity_id,
}: Pick<Delivery, 'webhook_id' | 'entity_type' | 'entity_id'>) =>
  `webhook:${webhook_id}:${entity_type}:${entity_id ?? 0}`

/** Returns the part of a job sequence that all deliveries of a webhook share. */
export const webhookOfSequence = (sequence: string): string => /^webhook:\d+:/.exec(sequence)?.[0] ?? sequence

/**
 * Returns the `webhook-id` of an event, the same for each attempt and each replay. It contains the
 * time of the event, because event ids are used again after a backup has been restored.
 */
export const messageIdOf = ({ id, created_at }: Pick<DeliveredEvent, 'id' | 'created_at'>, webhookId: number): string =>
  `msg_${id}_${webhookId}_${Date.parse(created_at).toString(36)}`
export const eventDedupeKey = (eventId: number): string => `event:${eventId}`

/** Queues one delivery and returns its id. Returns null when the cause already has a delivery. */
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
   * The user of the workflow that queues the delivery. The delivery contains only data that this
   * user may also see. Absent when a subscription queues the delivery.
   */
  userId: number
}

/**
 * Queues the deliveries whose cause has no delivery yet, and returns their ids. The number of SQL
 * statements does not depend on the number of deliveries.
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
        message_id: messageId ?? messageIdOf(event, webhookId),
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
 * Queues a finished delivery again with the same `webhook-id`; all retries start over. Returns
 * false when the delivery is still pending and its job exists.
 */
export async function requeueDelivery(ctx: Context, row: Delivery): Promise<boolean> {
  if (row.state !== 'pending') await leaveToEnd(ctx, row)
  const isQueued = (await enqueueDelivery(ctx, row)) !== null
  // If the job of a pending delivery was deleted, the call above has queued a new job.
  if (row.state === 'pending' && !isQueued) return false
  if (!isQueued) await expedite(ctx, [deliveryJobKey(row.id)])
  await restartDelivery(ctx, row.id)
  return true
}

/**
 * Releases the dedupe key of the delivery's old job if this job is still running, so that a new job
 * can be queued.
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

/** Sets the delivery to pending with zero tries. The caller must queue the job. */
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
 * Carries out the workflow action `trigger_webhook`: queues the event of the run, even if the
 * webhook does not subscribe to it. Each action of a run queues one delivery, whose content is
 * limited to what the workflow's user sees. Returns the id of the delivery. Throws a Problem when
 * the webhook is deleted or switched off.
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
      .select(['id', 'name', 'entity_type', 'entity_id', 'created_at'])
      .where('id', '=', eventId)
      .executeTakeFirst()
    if (!event) throw new Problem('state_conflict', 'The event is no longer stored.')
    const dedupeKey = `run:${runId}:${index}`
    const made = await queueDelivery(ctx, webhookId, event, {
      dedupeKey,
      messageId: `${messageIdOf(event, webhookId)}_${runId}_${index}`,
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
