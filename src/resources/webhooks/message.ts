// Turns a stored event into the message that a webhook sends. The message has the record before and
// after the change as the event stores it, so every attempt sends the same data. Placeholders for
// the person and organization of a record show current values.
import { parseEvent, type StoredEvent } from '../../jobs/event-consumers.ts'
import type { Context } from '../../kernel/context.ts'
import { asSeen } from '../../kernel/history/field-changes.ts'
import type { Snapshot } from '../../kernel/write/events.ts'
import {
  appFacts,
  placeholdersFrom,
  placeholdersOf,
  subjects,
  type TemplateSubject,
} from '../email-templates/placeholder-values.ts'
import { type Placeholders, rawName } from '../email-templates/placeholders.ts'
import { eventWithOldNames, factsOf } from '../events/event-facts.ts'
import type { RequestTemplate, WebhookMessage } from './request.ts'

/**
 * The list fields that webhooks send as empty lists, by entity. A stored event has
 * these fields as the author of the event saw them, but the webhook's user may not be allowed to
 * see them.
 */
const forUsers: Readonly<Record<string, readonly string[]>> = { emails: ['bcc'] }

/** Returns the stored event; null when the nightly job has deleted it. */
export async function storedEvent({ db }: Context, id: number): Promise<StoredEvent | null> {
  const row = await db.selectFrom('events').selectAll().where('id', '=', id).executeTakeFirst()
  return row ? parseEvent(row) : null
}

/**
 * Returns the message as all `viewers` may see it. A value that one viewer may not read is left
 * out.
 */
export async function messageOf(
  viewers: readonly [Context, ...Context[]],
  id: string,
  event: StoredEvent,
  template: RequestTemplate,
): Promise<WebhookMessage> {
  const omitted = forUsers[event.entity_type] ?? []
  const seen = (whole: Snapshot | null): Snapshot | null =>
    viewers.reduce((shown, viewer) => asVisible(viewer, event.entity_type, shown), without(omitted, whole))
  const [before, after] = [seen(event.before), seen(event.after)]
  const changed = event.changed.filter((key) => !omitted.includes(key))
  return {
    id,
    type: event.name,
    timestamp: event.created_at,
    data: eventWithOldNames(viewers[0], {
      ...factsOf(event, { changed, restored: event.restored }),
      before,
      after,
    }),
    placeholders: hasPlaceholders(template) ? await factsFor(viewers, event, after ?? before) : new Map(),
  }
}

/** Returns the record with the list fields in `omitted` emptied. */
const without = (omitted: readonly string[], entity: Snapshot | null): Snapshot | null =>
  entity && { ...entity, ...Object.fromEntries(omitted.filter((key) => key in entity).map((key) => [key, []])) }

/**
 * Returns the record as the event feed shows it to a user with limited permissions: nested records
 * become references. Users without a global view get no counts.
 */
function asVisible(ctx: Context, type: string, entity: Snapshot | null): Snapshot | null {
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

/** Returns the message of a test. The message describes an event that never happened. */
export async function testMessage(
  ctx: Context,
  id: string,
  webhook: { id: number; name: string },
): Promise<WebhookMessage> {
  return {
    id,
    type: 'webhook.test',
    timestamp: ctx.time.toISOString(),
    data: {
      id: null,
      name: 'webhook.test',
      entity_type: 'webhooks',
      entity_id: webhook.id,
      related_type: null,
      related_id: null,
      actor: ctx.user
        ? { type: 'user', id: ctx.user.id, name: ctx.user.name }
        : { type: 'system', id: null, name: 'system' },
      token_id: ctx.token?.id ?? null,
      request_id: ctx.requestId,
      origin: ctx.origin,
      changed: [],
      restored: false,
      occurred_at: ctx.time.toISOString(),
      before: null,
      after: { id: webhook.id, name: webhook.name },
    },
    placeholders: aboutApp(ctx),
  }
}

const hasPlaceholders = (template: RequestTemplate): boolean =>
  JSON.stringify([template.url, template.query_params, template.headers, template.payload]).includes('{%')

const isSubject = (entity: string): entity is TemplateSubject => Object.hasOwn(subjects, entity)

/**
 * Returns the placeholder values that are the same for all viewers. A value that differs between
 * viewers becomes empty.
 */
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
  if (entity_id === null) return aboutApp(ctx)
  if (related_type !== null) return isSubject(entity_type) ? placeholdersOf(ctx, entity_type, entity_id) : aboutApp(ctx)
  return isSubject(entity_type) || entity_type === 'organizations'
    ? placeholdersFrom(ctx, entity_type, entity ?? {})
    : aboutApp(ctx)
}

const aboutApp = (ctx: Context): Placeholders =>
  new Map(
    Object.entries(appFacts(ctx)).flatMap(([name, value]): [string, string][] => [
      [name, value],
      [rawName(name), JSON.stringify(value)],
    ]),
  )
