// The API of deliveries: list deliveries, send a delivery again, replay past events,
// and send a test.
import type { Schema } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import { invalid, notFound, Problem } from '../../kernel/errors.ts'
import type { Handler, Handlers } from '../../kernel/handler.ts'
import { timeField, valueField } from '../../kernel/query/filter.ts'
import { recordPage } from '../../kernel/query/page.ts'
import { newestEvent } from '../../kernel/write/event-log.ts'
import { answering, inSteps } from '../../kernel/write/idempotency.ts'
import { transaction } from '../../kernel/write/write.ts'
import { visibleReferences } from '../events/visible-references.ts'
import { attemptsOf, type Delivery, requeueDelivery } from './deliveries.ts'
import { testMessage } from './message.ts'
import { requestTemplateOf } from './request.ts'
import { requireNotSilent } from './rights.ts'
import { attemptDelivery, isAccepted } from './send.ts'
import { readPastEvents, replayEvents } from './subscriptions.ts'

const present = (row: Delivery): Schema<'WebhookDelivery'> => ({
  id: row.id,
  webhook_id: row.message_id,
  event_id: row.event_id,
  event: row.event,
  entity_type: row.entity_type,
  entity_id: row.entity_id,
  state: row.state as Schema<'WebhookDelivery'>['state'],
  attempts: attemptsOf(row),
  next_attempt_at: row.next_attempt_at,
  created_at: row.created_at,
  finished_at: row.finished_at,
})

/** Returns a query for the deliveries of a webhook, limited to events that the caller may see. */
const rowsOf = async (ctx: Context, webhookId: number) =>
  ctx.db
    .selectFrom('webhook_deliveries')
    .selectAll('webhook_deliveries')
    .where('webhook_deliveries.webhook_id', '=', webhookId)
    .where(await visibleReferences(ctx, 'webhook_deliveries'))

async function deliveryOf(ctx: Context, webhookId: number, id: number): Promise<Delivery> {
  const row = await (await rowsOf(ctx, webhookId)).where('webhook_deliveries.id', '=', id).executeTakeFirst()
  if (!row) throw notFound('delivery', id)
  return row
}

async function webhookOf({ db }: Context, id: number) {
  const row = await db.selectFrom('webhooks').selectAll().where('id', '=', id).executeTakeFirst()
  if (!row) throw notFound('webhook', id)
  return row
}

function requireActive({ is_active }: { is_active: number }): void {
  if (is_active === 0) throw new Problem('state_conflict', 'The webhook is switched off.')
}

const listWebhookDeliveries: Handler<'listWebhookDeliveries'> = async (ctx, { params, query }) => {
  await webhookOf(ctx, params.id)
  return recordPage(ctx, await rowsOf(ctx, params.id), query, {
    fields: {
      state: valueField('webhook_deliveries.state'),
      event_id: valueField('webhook_deliveries.event_id'),
      created_at: timeField('webhook_deliveries.created_at'),
    },
    sort: { id: 'webhook_deliveries.id' },
    id: 'webhook_deliveries.id',
    present: (rows: Delivery[]) => rows.map(present),
  })
}

const replayWebhookDelivery: Handler<'replayWebhookDelivery'> = (ctx, { params: { id, delivery_id } }) =>
  transaction(ctx, async (ctx) => {
    const webhook = await webhookOf(ctx, id)
    const delivery = await deliveryOf(ctx, id, delivery_id)
    requireActive(webhook)
    await requireNotSilent(ctx, id)
    if (!(await requeueDelivery(ctx, delivery))) throw new Problem('state_conflict', 'The delivery is still pending.')
    return { data: present(await deliveryOf(ctx, id, delivery_id)), message: 'Delivery queued.' }
  })

const replayWebhook: Handler<'replayWebhook'> = inSteps(async (ctx, { params: { id }, body }) => {
  const past = await readPastEvents(ctx, await webhookOf(ctx, id), body.after_event_id)
  return answering(ctx, async (ctx) => {
    requireActive(await webhookOf(ctx, id))
    await requireNotSilent(ctx, id)
    if (body.after_event_id > (await newestEvent(ctx))) throw invalid({ after_event_id: ['No event has such an id.'] })
    const data = await replayEvents(ctx, id, past)
    return { data, message: data.queued === 1 ? '1 delivery queued.' : `${data.queued} deliveries queued.` }
  })
})

/**
 * Sends a test to the webhook and waits for the result. A dry run sends nothing. No transaction is
 * open meanwhile, so after a server crash a repeated Idempotency-Key sends the test again.
 */
const testWebhook: Handler<'testWebhook'> = inSteps(async (ctx, { params: { id } }) => {
  const webhook = await webhookOf(ctx, id)
  const message = await testMessage(ctx, `msg_test_${ctx.requestId}`, webhook)
  const attempt = ctx.dryRun
    ? {
        at: ctx.time.toISOString(),
        status: null,
        duration_ms: 0,
        error: 'This is a dry run: nothing was sent.',
        response_excerpt: null,
      }
    : (await attemptDelivery(ctx, webhook, requestTemplateOf(webhook, ctx.services.encryption), message)).attempt
  const isSuccess = isAccepted(attempt)
  return {
    data: { state: isSuccess ? 'succeeded' : 'failed', attempt },
    message: isSuccess ? 'The receiver accepted the test.' : 'The test failed.',
  }
})

export const handlers = {
  listWebhookDeliveries,
  replayWebhookDelivery,
  replayWebhook,
  testWebhook,
} satisfies Partial<Handlers>
