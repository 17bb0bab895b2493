// The event consumer that queues deliveries for subscribed events. A subscription
// selects events by name pattern, record type and changed fields. The event log is read in order,
// so no event is missed or queued twice.
import { type EventConsumer, type StoredEvent, takeWithinLimit } from '../../jobs/event-consumers.ts'
import type { Context } from '../../kernel/context.ts'
import { isNeverSent } from '../../kernel/write/event-names.ts'
import { transaction } from '../../kernel/write/write.ts'
import { eventMatcher } from '../system/event-patterns.ts'
import { eventDedupeKey, queueDeliveries, queueDelivery, requeueDelivery } from './deliveries.ts'
import { eventsVisibleTo, hasEvents, loadSubscribers } from './rights.ts'

type Listed = Pick<StoredEvent, 'id' | 'name' | 'entity_type' | 'entity_id' | 'changed' | 'created_at'>

interface Subscription {
  events: string
  changed: string
  entity_type: string | null
}

/** Returns a function that tests whether the subscription includes an event. */
export function matchesSubscription({ events, changed, entity_type }: Subscription): (event: Listed) => boolean {
  const patterns = (JSON.parse(events) as string[]).map(eventMatcher)
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
    const listening = db.selectFrom('webhooks').where('is_active', '=', 1).where(hasEvents)
    const rows = await listening.select('entity_type').distinct().execute()
    const types = rows.flatMap(({ entity_type: type }) => type ?? [])
    // The query returns null for webhooks that subscribe to all types. `types` omits null and is
    // then shorter than `rows`.
    return types.length < rows.length ? null : types
  },
  async consume(ctx, events) {
    const listening = (await loadSubscribers(ctx)).map((webhook) => ({
      ...webhook,
      isSubscribed: matchesSubscription(webhook),
    }))
    // `events_after` excludes events that occurred before the webhook was created, or while it was
    // off.
    const { asked, last } = takeWithinLimit(events, (event) =>
      listening
        .filter(({ events_after, isSubscribed }) => event.id > events_after && isSubscribed(event))
        .map(({ id, changed_by_id }) => ({ webhookId: id, changerId: changed_by_id, event })),
    )
    const visible = await seen(ctx, asked)
    if (visible.length > 0) await queueDeliveries(ctx, visible)
    return last
  },
}

interface Asked {
  webhookId: number
  changerId: number | null
  event: Listed
}

/**
 * Returns the deliveries whose event is visible to the webhook's user. Checks all events of one
 * user with one call.
 */
async function seen(ctx: Context, asked: readonly Asked[]): Promise<Asked[]> {
  const known = new Map<number | null, ReadonlySet<number>>()
  for (const user of new Set(asked.map(({ changerId }) => changerId))) {
    const ids = asked.flatMap(({ changerId, event }) => (changerId === user ? [event.id] : []))
    known.set(user, await eventsVisibleTo(ctx, user, [...new Set(ids)]))
  }
  return asked.filter(({ changerId, event }) => known.get(changerId)?.has(event.id))
}

/** The maximum numbers of past events that one replay reads and queues. */
const maxReplay = { read: 10_000, queued: 200 }

type PastEvent = Pick<StoredEvent, 'id' | 'name' | 'entity_type' | 'entity_id' | 'created_at'>

export interface PastEvents {
  /** The events that the webhook subscribes to and that its user may see. */
  events: readonly PastEvent[]
  /** The id of the last event that was read; null when no event was read. */
  last: number | null
}

/**
 * Reads the subscribed events with an id greater than `after`. Call this before the transaction:
 * the log is long, and stored events never change.
 */
export async function readPastEvents(
  ctx: Context,
  webhook: Subscription & { changed_by_id: number | null },
  after: number,
): Promise<PastEvents> {
  const isSubscribed = matchesSubscription(webhook)
  const rows = await ctx.db
    .selectFrom('events')
    .select(['id', 'name', 'entity_type', 'entity_id', 'changed', 'created_at'])
    .where('id', '>', after)
    .orderBy('id')
    .limit(maxReplay.read)
    .execute()
  const asked = rows.filter((event) => isSubscribed({ ...event, changed: JSON.parse(event.changed) as string[] }))
  const known = await eventsVisibleTo(
    ctx,
    webhook.changed_by_id,
    asked.map(({ id }) => id),
  )
  return { events: asked.filter(({ id }) => known.has(id)), last: rows.at(-1)?.id ?? null }
}

/**
 * Queues deliveries of the given events, even if the webhook has sent them before. Returns the
 * number of queued deliveries and the id of the last processed event.
 */
export const replayEvents = (
  ctx: Context,
  webhookId: number,
  { events, last }: PastEvents,
): Promise<{ queued: number; last_event_id: number | null }> =>
  transaction(ctx, async (ctx) => {
    let queued = 0
    for (const event of events) {
      if ((await queueDelivery(ctx, webhookId, event)) !== null || (await again(ctx, webhookId, event.id))) queued++
      if (queued === maxReplay.queued) return { queued, last_event_id: event.id }
    }
    return { queued, last_event_id: last }
  })

/** Queues the existing delivery of an event again. Returns false while the delivery is pending. */
async function again(ctx: Context, webhookId: number, eventId: number): Promise<boolean> {
  const row = await ctx.db
    .selectFrom('webhook_deliveries')
    .selectAll()
    .where('webhook_id', '=', webhookId)
    .where('dedupe_key', '=', eventDedupeKey(eventId))
    .executeTakeFirstOrThrow()
  return requeueDelivery(ctx, row)
}
