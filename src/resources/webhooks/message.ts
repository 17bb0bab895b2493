// A stored event as something to tell (DOMAIN 18.5). It is told as it was stored, not as the record is by now, so that every try
// says the same; only what placeholders say of its person and organization is of today.
import { pathTo } from '../../contract/paths.ts'
import { parseEvent, type StoredEvent } from '../../jobs/event-consumers.ts'
import type { Context } from '../../kernel/context.ts'
import { asSeen } from '../../kernel/history/field-changes.ts'
import type { Actor, Snapshot } from '../../kernel/write/events.ts'
import { factsFrom, factsOf, type Subject, subjects } from '../email-templates/facts.ts'
import type { Placeholders } from '../email-templates/placeholders.ts'
import type { RequestTemplate, WebhookMessage } from './request.ts'

/** What of a record is for users only (DOMAIN 14): it was stored as the user saw it who wrote it, and nobody else is told. */
const forUsers: Readonly<Record<string, readonly string[]>> = { emails: ['bcc'] }

/** The stored event, null when it is not kept any more. */
export async function storedEvent({ db }: Context, id: number): Promise<StoredEvent | null> {
  const row = await db.selectFrom('events').selectAll().where('id', '=', id).executeTakeFirst()
  return row ? parseEvent(row) : null
}

/** As all of the tellers see it: what one of them may not read is not told. */
export async function messageOf(
  tellers: readonly [Context, ...Context[]],
  id: string,
  event: StoredEvent,
  recipe: RequestTemplate,
): Promise<WebhookMessage> {
  const [ctx] = tellers
  const kept = forUsers[event.entity_type] ?? []
  const whole = without(kept, event.after ?? event.before)
  const entity = tellers.reduce((seen, teller) => asTold(teller, event.entity_type, seen), whole)
  return {
    id,
    type: event.name,
    timestamp: event.created_at,
    entityType: event.entity_type,
    entityId: event.entity_id,
    entity,
    entityUrl: urlOf(ctx, event),
    changed: event.changed.filter((key) => !kept.includes(key)),
    actor: {
      type: event.actor_type === 'user' ? 'user' : 'system',
      id: event.actor_id,
      name: event.actor_name ?? '',
    } satisfies Actor,
    facts: hasPlaceholders(recipe) ? await factsFor(tellers, event, entity) : new Map(),
  }
}

/** As somebody sees a record from whom these lists are kept. */
const without = (kept: readonly string[], entity: Snapshot | null): Snapshot | null =>
  entity && { ...entity, ...Object.fromEntries(kept.filter((key) => key in entity).map((key) => [key, []])) }

/**
 * As the feed shows it to somebody who may not read everything: other records are references, and to those who do not see all records
 * no counts are told.
 */
function asTold(ctx: Context, type: string, entity: Snapshot | null): Snapshot | null {
  const { user, services } = ctx
  if (entity === null || user === null) return entity
  const isLimited = user.visibleOwners !== null
  if (!isLimited && user.permissions === 'all') return entity
  const { asRead } = services.sights.get(type) ?? {}
  const shown = Object.entries(asRead?.(ctx, entity) ?? entity).filter(
    ([key]) => !(isLimited && key.endsWith('_count')),
  )
  return Object.fromEntries(shown.map(([key, value]) => [key, asSeen(value)]))
}

/** What is sent as a test: an event that never happened. */
export async function testMessage(
  ctx: Context,
  id: string,
  webhook: { id: number; name: string },
): Promise<WebhookMessage> {
  return {
    id,
    type: 'webhook.test',
    timestamp: ctx.time.toISOString(),
    entityType: 'webhooks',
    entityId: webhook.id,
    entity: { id: webhook.id, name: webhook.name },
    entityUrl: urlOf(ctx, { entity_type: 'webhooks', entity_id: webhook.id }),
    changed: [],
    actor: ctx.user
      ? { type: 'user', id: ctx.user.id, name: ctx.user.name }
      : { type: 'system', id: null, name: 'system' },
    facts: aboutApp(ctx),
  }
}

const hasPlaceholders = (recipe: RequestTemplate): boolean =>
  JSON.stringify([recipe.end_point, recipe.query_params, recipe.headers, recipe.payload]).includes('{%')

function urlOf(
  { baseUrl: base, services }: Context,
  { entity_type, entity_id }: Pick<StoredEvent, 'entity_type' | 'entity_id'>,
) {
  const shows = services.resources.get(entity_type)?.getOperation
  return shows && entity_id !== null ? `${base}${pathTo(shows, entity_id)}` : null
}

const isSubject = (entity: string): entity is Subject => Object.hasOwn(subjects, entity)

/** What placeholders say to every teller; what only some may know is said as nothing. */
async function factsFor(
  [first, ...others]: readonly [Context, ...Context[]],
  event: StoredEvent,
  entity: Snapshot | null,
): Promise<Placeholders> {
  let facts = await factsAbout(first, event, entity)
  for (const other of others) {
    const theirs = await factsAbout(other, event, entity)
    facts = new Map([...facts].map(([name, text]) => [name, theirs.get(name) === text ? text : '']))
  }
  return facts
}

async function factsAbout(ctx: Context, event: StoredEvent, entity: Snapshot | null): Promise<Placeholders> {
  const { entity_type, entity_id, related_type } = event
  if (!isSubject(entity_type) || entity_id === null) return aboutApp(ctx)
  return related_type === null ? factsFrom(ctx, entity_type, entity ?? {}) : factsOf(ctx, entity_type, entity_id)
}

const aboutApp = (ctx: Context): Placeholders =>
  new Map([
    ['app.name', ctx.services.config.appName],
    ['app.url', ctx.baseUrl],
  ])
