// Which events a webhook is told (DOMAIN 18.5): those its patterns name, of its type of record, with a change it asks for. Read from
// the event log, so that no event is missed and none is told twice.
import { type EventConsumer, type StoredEvent, takeWithinLimit } from '../../jobs/event-consumers.ts'
import type { Context } from '../../kernel/context.ts'
import { matcher } from '../../kernel/write/events.ts'
import { transaction } from '../../kernel/write/write.ts'
import { eventDedupeKey, queueDeliveries, queueDelivery, requeueDelivery } from './deliveries.ts'
import { eventsVisibleTo, loadSubscribers } from './rights.ts'
import { isNeverSent } from './rules.ts'

type Listed = Pick<StoredEvent, 'id' | 'name' | 'entity_type' | 'entity_id' | 'changed'>

interface Subscription {
  events: string
  changed: string
  entity_type: string | null
}

/** Whether a webhook is told an event. */
export function matchesSubscription({ events, changed, entity_type }: Subscription): (event: Listed) => boolean {
  const patterns = (JSON.parse(events) as string[]).map(matcher)
  const keys = JSON.parse(changed) as string[]
  const isAsked = (key: string): boolean =>
    keys.includes(key) || (key.startsWith('custom_attributes.') && keys.includes('custom_attributes'))
  return (event) =>
    !isNeverSent(event.name) &&
    (entity_type === null || event.entity_type === entity_type) &&
    (keys.length === 0 || event.changed.some(isAsked)) &&
    patterns.some((matches) => matches(event.name))
}

export const subscriptions: EventConsumer = {
  name: 'webhooks',
  entityTypes: async ({ db }) => {
    const listening = db.selectFrom('webhooks').where('is_active', '=', 1).where('events', '<>', '[]')
    const rows = await listening.select('entity_type').distinct().execute()
    const types = rows.flatMap(({ entity_type: type }) => type ?? [])
    // One without a type is told of all of them.
    return types.length < rows.length ? null : types
  },
  async consume(ctx, events) {
    const listening = (await loadSubscribers(ctx)).map((webhook) => ({
      ...webhook,
      isTold: matchesSubscription(webhook),
    }))
    // What happened before there was a webhook, or while it was off, is no business of its.
    const { asked, last } = takeWithinLimit(events, (event) =>
      listening
        .filter(({ events_after, isTold }) => event.id > events_after && isTold(event))
        .map(({ id, changed_by_id }) => ({ webhookId: id, changerId: changed_by_id, event })),
    )
    const told = await seen(ctx, asked)
    if (told.length > 0) await queueDeliveries(ctx, told)
    return last
  },
}

interface Asked {
  webhookId: number
  changerId: number | null
  event: Listed
}

/** Those whose webhook was changed last by a user who may know of the event, asked once for each user. */
async function seen(ctx: Context, asked: readonly Asked[]): Promise<Asked[]> {
  const known = new Map<number | null, ReadonlySet<number>>()
  for (const user of new Set(asked.map(({ changerId }) => changerId))) {
    const ids = asked.flatMap(({ changerId, event }) => (changerId === user ? [event.id] : []))
    known.set(user, await eventsVisibleTo(ctx, user, [...new Set(ids)]))
  }
  return asked.filter(({ changerId, event }) => known.get(changerId)?.has(event.id))
}

/** How much of the past is gone through at once. */
const most = { looked: 10_000, queued: 200 }

type Told = Pick<StoredEvent, 'id' | 'name' | 'entity_type' | 'entity_id'>

export interface PastEvents {
  /** The events that the webhook is told. */
  told: readonly Told[]
  /** The last event looked at. */
  last: number | null
}

/** What happened behind an event. The log is long and only grows, so it is looked through before the transaction. */
export async function readPastEvents(
  ctx: Context,
  webhook: Subscription & { changed_by_id: number | null },
  after: number,
): Promise<PastEvents> {
  const isTold = matchesSubscription(webhook)
  const rows = await ctx.db
    .selectFrom('events')
    .select(['id', 'name', 'entity_type', 'entity_id', 'changed'])
    .where('id', '>', after)
    .orderBy('id')
    .limit(most.looked)
    .execute()
  const asked = rows.filter((event) => isTold({ ...event, changed: JSON.parse(event.changed) as string[] }))
  const known = await eventsVisibleTo(
    ctx,
    webhook.changed_by_id,
    asked.map(({ id }) => id),
  )
  return { told: asked.filter(({ id }) => known.has(id)), last: rows.at(-1)?.id ?? null }
}

/** Queues what is told, also what was told before. Answers how much, and the last event looked at. */
export const replayEvents = (
  ctx: Context,
  webhookId: number,
  { told, last }: PastEvents,
): Promise<{ queued: number; last_event_id: number | null }> =>
  transaction(ctx, async (ctx) => {
    let queued = 0
    for (const event of told) {
      if ((await queueDelivery(ctx, webhookId, event)) !== null || (await again(ctx, webhookId, event.id))) queued++
      if (queued === most.queued) return { queued, last_event_id: event.id }
    }
    return { queued, last_event_id: last }
  })

/** Sends the delivery of an event again. False when it still waits. */
async function again(ctx: Context, webhookId: number, eventId: number): Promise<boolean> {
  const row = await ctx.db
    .selectFrom('webhook_deliveries')
    .selectAll()
    .where('webhook_id', '=', webhookId)
    .where('dedupe_key', '=', eventDedupeKey(eventId))
    .executeTakeFirstOrThrow()
  return requeueDelivery(ctx, row)
}
