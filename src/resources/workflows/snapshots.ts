// Stored events as workflows use them: the trigger name, and the record after the event (before it,
// for a deletion). Tags are linked by events of their own in the same transaction; the caller made
// one change, so the snapshot includes them.
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
  // Links after the record's next change belong to that change.
  const next = await later
    .select('id')
    .where('related_type', 'is', null)
    // A bare event repeats the same change.
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

/** Deletions are stored under their `.after` name; workflows subscribe to `.before`. */
export const triggerOfEvent = (name: string): string => name.replace(/\.delete\.after$/, '.delete.before')
