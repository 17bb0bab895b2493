// Deliveries: one row for each event a webhook is to be told, and the job that tells it. Made in the transaction of what asks for
// it, once for each cause.
import type { Selectable } from 'kysely'
import { sql } from 'kysely'
import type { DB } from '../../../db/tables.gen.ts'
import type { Schema } from '../../contract/types.ts'
import { enqueue } from '../../jobs/queue.ts'
import { type Context, now } from '../../kernel/context.ts'
import { Problem } from '../../kernel/errors.ts'
import { transaction } from '../../kernel/write.ts'

export type Delivery = Selectable<DB['webhook_deliveries']>

/** How the job of a delivery is stored; what it does is jobs.ts. */
export const deliverKind = { kind: 'webhooks.deliver' }

export interface DeliverPayload {
  delivery_id: number
  /** Tries of earlier rounds: one that is sent again begins the ladder anew. */
  earlier_tries: number
}

/** What a delivery tells. */
export interface Cause {
  id: number
  name: string
  entity_type: string
  entity_id: number | null
}

const keyOf = (id: number): string => `webhook-delivery:${id}`

/** What happens to one record arrives in its order. */
const sequenceOf = ({
  webhook_id,
  entity_type,
  entity_id,
}: Pick<Delivery, 'webhook_id' | 'entity_type' | 'entity_id'>) =>
  `webhook:${webhook_id}:${entity_type}:${entity_id ?? 0}`

export const messageIdOf = (eventId: number, webhookId: number): string => `msg_${eventId}_${webhookId}`
export const eventKey = (eventId: number): string => `event:${eventId}`

/** Null when there is one for this cause already. */
export async function queueDelivery(
  ctx: Context,
  webhookId: number,
  event: Cause,
  { dedupeKey = eventKey(event.id), messageId = messageIdOf(event.id, webhookId) } = {},
): Promise<number | null> {
  const at = now(ctx)
  const row = await ctx.db
    .insertInto('webhook_deliveries')
    .values({
      webhook_id: webhookId,
      dedupe_key: dedupeKey,
      message_id: messageId,
      event_id: event.id,
      event: event.name,
      entity_type: event.entity_type,
      entity_id: event.entity_id,
      next_attempt_at: at,
      finished_at: null,
      created_at: at,
      updated_at: at,
    })
    .onConflict((conflict) => conflict.columns(['webhook_id', 'dedupe_key']).doNothing())
    .returningAll()
    .executeTakeFirst()
  if (!row) return null
  await run(ctx, row)
  return row.id
}

/** Sends one again that has ended, with the same `webhook-id`. False when it still waits. */
export async function requeue(ctx: Context, row: Delivery): Promise<boolean> {
  if ((await run(ctx, row)) === null) {
    if (row.state === 'pending') return false
    // It was ended by something else than its job, which still waits to find that out.
    await hasten(ctx, [row.id])
  }
  await ctx.db
    .updateTable('webhook_deliveries')
    .set({ state: 'pending', next_attempt_at: now(ctx), finished_at: null, updated_at: now(ctx) })
    .where('id', '=', row.id)
    .execute()
  return true
}

const run = (ctx: Context, row: Delivery): Promise<number | null> => {
  const payload: DeliverPayload = { delivery_id: row.id, earlier_tries: attemptsOf(row).length }
  return enqueue(ctx, deliverKind, payload, { key: keyOf(row.id), sequence: sequenceOf(row) })
}

export const attemptsOf = ({ attempts }: Pick<Delivery, 'attempts'>): Schema<'WebhookAttempt'>[] =>
  JSON.parse(attempts) as Schema<'WebhookAttempt'>[]

const atOnce = 500

/** Lets deliveries that wait for a later try be tried now. */
export const hasten = (ctx: Context, ids: readonly number[]): Promise<void> =>
  transaction(ctx, async (ctx) => {
    for (let from = 0; from < ids.length; from += atOnce) {
      const some = ids.slice(from, from + atOnce)
      await ctx.db
        .updateTable('jobs')
        .set({ run_at: now(ctx), updated_at: now(ctx) })
        .where('dedupe_key', 'in', some.map(keyOf))
        .where('state', '=', 'waiting')
        .where('run_at', '>', now(ctx))
        .execute()
      await ctx.db
        .updateTable('webhook_deliveries')
        .set({ next_attempt_at: now(ctx) })
        .where('id', 'in', some)
        .where('state', '=', 'pending')
        .where(sql<boolean>`next_attempt_at > ${now(ctx)}`)
        .execute()
    }
    ctx.unit.wakes = true
  })

/**
 * The action `trigger_webhook` of a workflow: tells the event of the run, whatever the webhook subscribes to. Once for each action of
 * a run. Answers the id of the delivery; throws a Problem for a webhook that is gone or switched off.
 */
export const triggerWebhook = (
  ctx: Context,
  webhookId: number,
  { eventId, runId, index }: { eventId: number; runId: number; index: number },
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
