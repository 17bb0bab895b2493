// Deliveries: one row for each event a webhook is to be told, and the job that tells it. Made in the transaction of what asks for
// it, once for each cause.
import type { Selectable } from 'kysely'
import type { DB } from '../../../db/tables.gen.ts'
import type { Schema } from '../../contract/types.ts'
import { enqueue, enqueueAll, expedite, releaseDedupeKey } from '../../jobs/queue.ts'
import { type Context, now } from '../../kernel/context.ts'
import { Problem } from '../../kernel/errors.ts'
import { transaction } from '../../kernel/write/write.ts'

export type Delivery = Selectable<DB['webhook_deliveries']>

/**
 * How the job of a delivery is stored; what it does is jobs.ts. Receivers that fail are tried in slots of their own, so that one that
 * hangs does not hold those of the others.
 */
export const deliveryJobKinds = { healthy: 'webhooks.deliver', failing: 'webhooks.deliver-to-failing' } as const

export interface DeliverPayload {
  delivery_id: number
}

/** What a delivery tells. */
export interface DeliveredEvent {
  id: number
  name: string
  entity_type: string
  entity_id: number | null
}

export const deliveryJobKey = (id: number): string => `webhook-delivery:${id}`

/** What happens to one record arrives in its order. */
const sequenceOf = ({
  webhook_id,
  entity_type,
  entity_id,
}: Pick<Delivery, 'webhook_id' | 'entity_type' | 'entity_id'>) =>
  `webhook:${webhook_id}:${entity_type}:${entity_id ?? 0}`

export const messageIdOf = (eventId: number, webhookId: number): string => `msg_${eventId}_${webhookId}`
export const eventDedupeKey = (eventId: number): string => `event:${eventId}`

/** Null when there is one for this cause already. */
export const queueDelivery = async (
  ctx: Context,
  webhookId: number,
  event: DeliveredEvent,
  names: Partial<Names> = {},
): Promise<number | null> => (await queueDeliveries(ctx, [{ webhookId, event, ...names }]))[0] ?? null

interface Names {
  dedupeKey: string
  messageId: string
  /** Whose rights limit what is told; nobody's for a subscription. */
  userId: number
}

/** Those for whose cause there is none yet, with as many statements as for one. Answers their ids. */
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

/** Sends one again that has ended, with the same `webhook-id`, up the whole ladder. False when it still waits. */
export async function requeueDelivery(ctx: Context, row: Delivery): Promise<boolean> {
  if (row.state !== 'pending') await leaveToEnd(ctx, row)
  const isQueued = (await enqueueDelivery(ctx, row)) !== null
  // Its job may have been deleted: then one that waits has none.
  if (row.state === 'pending' && !isQueued) return false
  if (!isQueued) await expedite(ctx, [deliveryJobKey(row.id)])
  await restartDelivery(ctx, row.id)
  return true
}

/** The job that has ended it is about to be deleted, and must not take with it what is wanted now: that comes behind it. */
async function leaveToEnd(ctx: Context, { id }: Delivery): Promise<void> {
  const job = await ctx.db
    .selectFrom('jobs')
    .select('id')
    .where('dedupe_key', '=', deliveryJobKey(id))
    .where('state', '=', 'running')
    .executeTakeFirst()
  if (job) await releaseDedupeKey(ctx, job.id)
}

/** The delivery waits, as on its first day. Its job is for the caller to see to. */
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
 * The action `trigger_webhook` of a workflow: tells the event of the run, whatever the webhook subscribes to. Once for each action of
 * a run, and told as the user sees it whose rights the run has. Answers the id of the delivery; throws a Problem for a webhook that is gone or switched off.
 */
export const triggerWebhook = (
  ctx: Context,
  webhookId: number,
  { eventId, runId, index, userId }: { eventId: number; runId: number; index: number; userId: number },
): Promise<number> =>
  transaction(ctx, async (ctx) => {
    const { db } = ctx
    const webhook = await db.selectFrom('webhooks').select('is_active').where('id', '=', webhookId).executeTakeFirst()
    if (!webhook) throw new Problem('state_conflict', `The webhook ${webhookId} is gone.`)
    if (webhook.is_active === 0) throw new Problem('state_conflict', `The webhook ${webhookId} is switched off.`)
    const event = await db
      .selectFrom('events')
      .select(['id', 'name', 'entity_type', 'entity_id'])
      .where('id', '=', eventId)
      .executeTakeFirst()
    if (!event) throw new Problem('state_conflict', 'The event is no longer kept.')
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
