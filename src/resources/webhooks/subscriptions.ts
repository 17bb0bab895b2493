// Which events a webhook is told (DOMAIN 18.5): those its patterns name, of its type of record, with a change it asks for. Read from
// the event log, so that no event is missed and none is told twice.
import { type EventReader, firstOf, type StoredEvent } from '../../jobs/readers.ts'
import type { Context } from '../../kernel/context.ts'
import { matcher } from '../../kernel/events.ts'
import { transaction } from '../../kernel/write.ts'
import { eventKey, queueDeliveries, queueDelivery, requeue } from './deliveries.ts'
import { isUntold } from './rules.ts'

type Listed = Pick<StoredEvent, 'id' | 'name' | 'entity_type' | 'entity_id' | 'changed'>

interface Subscription {
  events: string
  changed: string
  entity_type: string | null
}

/** Whether a webhook is told an event. */
export function subscribed({ events, changed, entity_type }: Subscription): (event: Listed) => boolean {
  const patterns = (JSON.parse(events) as string[]).map(matcher)
  const keys = JSON.parse(changed) as string[]
  const isAsked = (key: string): boolean =>
    keys.includes(key) || (key.startsWith('custom_attributes.') && keys.includes('custom_attributes'))
  return (event) =>
    !isUntold(event.name) &&
    (entity_type === null || event.entity_type === entity_type) &&
    (keys.length === 0 || event.changed.some(isAsked)) &&
    patterns.some((matches) => matches(event.name))
}

export const subscriptions: EventReader = {
  name: 'webhooks',
  hears: async ({ db }) => {
    const listening = db.selectFrom('webhooks').where('is_active', '=', 1).where('events', '<>', '[]')
    const rows = await listening.select('entity_type').distinct().execute()
    const types = rows.flatMap(({ entity_type: type }) => type ?? [])
    // One without a type is told of all of them.
    return types.length < rows.length ? null : types
  },
  async take(ctx, events) {
    const webhooks = await ctx.db
      .selectFrom('webhooks')
      .select(['id', 'events', 'changed', 'entity_type', 'events_after'])
      .where('is_active', '=', 1)
      .where('events', '<>', '[]')
      .orderBy('id')
      .execute()
    const listening = webhooks.map((webhook) => ({ ...webhook, isTold: subscribed(webhook) }))
    // What happened before there was a webhook, or while it was off, is no business of its.
    const { asked, last } = firstOf(events, (event) =>
      listening
        .filter(({ events_after, isTold }) => event.id > events_after && isTold(event))
        .map(({ id }) => ({ webhookId: id, event })),
    )
    if (asked.length > 0) await queueDeliveries(ctx, asked)
    return last
  },
}

/** How much of the past is gone through at once. */
const most = { looked: 10_000, queued: 200 }

/** Queues what happened behind an event, also what was told before. Answers how much, and the last event looked at. */
export const tellAgain = (
  ctx: Context,
  webhook: Subscription & { id: number },
  after: number,
): Promise<{ queued: number; last_event_id: number | null }> =>
  transaction(ctx, async (ctx) => {
    const isTold = subscribed(webhook)
    const events = await ctx.db
      .selectFrom('events')
      .select(['id', 'name', 'entity_type', 'entity_id', 'changed'])
      .where('id', '>', after)
      .orderBy('id')
      .limit(most.looked)
      .execute()
    let queued = 0
    let last: number | null = null
    for (const event of events) {
      if (queued === most.queued) break
      last = event.id
      if (!isTold({ ...event, changed: JSON.parse(event.changed) as string[] })) continue
      if ((await queueDelivery(ctx, webhook.id, event)) !== null || (await again(ctx, webhook.id, event.id))) queued++
    }
    return { queued, last_event_id: last }
  })

/** Sends the delivery of an event again. False when it still waits. */
async function again(ctx: Context, webhookId: number, eventId: number): Promise<boolean> {
  const row = await ctx.db
    .selectFrom('webhook_deliveries')
    .selectAll()
    .where('webhook_id', '=', webhookId)
    .where('dedupe_key', '=', eventKey(eventId))
    .executeTakeFirstOrThrow()
  return requeue(ctx, row)
}
