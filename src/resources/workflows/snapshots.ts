// Stored events as workflows know them: their names, and the record as an event leaves it; of a deletion, as it was before. Tags are
// linked behind the record's own event, by events of their own in the same transaction; to whoever asked for it they are one change.
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
  // What is linked behind the next change of the record belongs to that one.
  const next = await later
    .select('id')
    .where('related_type', 'is', null)
    // A bare event tells of the same change once more.
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

/** A deletion is known once it is stored, and stored as `after`. */
export const triggerOfEvent = (name: string): string => name.replace(/\.delete\.after$/, '.delete.before')
