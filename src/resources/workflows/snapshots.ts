// Reads stored events for workflows: the trigger name, and the record after the event. For a
// deletion, this is the record before the event. When a request also sets tags, its transaction
// stores separate tag events; the snapshot includes these tags.
import type { StoredEvent } from '../../jobs/event-consumers.ts'
import type { Context } from '../../kernel/context.ts'
import type { Snapshot } from '../../kernel/write/events.ts'

export async function loadSnapshot(ctx: Context, event: StoredEvent): Promise<Snapshot> {
  if (event.after === null) return event.before ?? {}
  const later = ctx.db
    .selectFrom('events')
    .where('entity_type', '=', event.entity_type)
    .where('entity_id', '=', event.entity_id)
    .where('id', '>', event.id)
    .orderBy('id')
  // Tag events after the next change of the record belong to that later change.
  const next = await later
    .select('id')
    .where('related_type', 'is', null)
    // An event whose name lacks `.after` repeats the change of another event, so only `.after`
    // events count.
    .where('name', 'like', '%.after')
    .limit(1)
    .executeTakeFirst()
  const links = await later
    .select(['after', 'related_id'])
    .where('first_event_id', '=', event.first_event_id ?? event.id)
    .where('related_type', '=', 'tags')
    .$if(next !== undefined, (links) => links.where('id', '<', next?.id ?? 0))
    .execute()
  const tags = new Map(((event.after.tags ?? []) as { id: number }[]).map((tag) => [tag.id, tag]))
  for (const { after, related_id: id } of links) {
    if (id === null) continue
    if (after === null) tags.delete(id)
    else tags.set(id, { id })
  }
  return { ...event.after, tags: [...tags.values()] }
}

/**
 * Returns the trigger of a stored event. A deletion is stored as `.delete.after`, but workflows
 * subscribe to `.delete.before`.
 */
export const triggerOfEvent = (name: string): string => name.replace(/\.delete\.after$/, '.delete.before')
