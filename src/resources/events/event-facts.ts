// The keys that the event feed, its streams and webhooks share (schema EventFacts).
import { oldNamesOf, recordWithOldNames } from '../../contract/old-names.ts'
import type { Schema } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import type { EventEntity } from '../../kernel/query/event-visibility.ts'
import type { EventRow } from './event-visibility.ts'

/** The keys of an event in every channel. Only the snapshots of the record differ. */
export type SharedFacts = Omit<Schema<'EventEntry'>, 'before' | 'after'>

/**
 * Returns the shared keys of an event. `changed` and `restored` are the parsed values of the row's
 * columns.
 */
export const factsOf = (
  row: Omit<EventRow, 'before' | 'after' | 'changed' | 'restored'>,
  { changed, restored }: { changed: string[]; restored: boolean },
): SharedFacts => ({
  id: row.id,
  name: row.name,
  entity_type: row.entity_type as EventEntity,
  entity_id: row.entity_id,
  related_type: row.related_type as EventEntity | null,
  related_id: row.related_id,
  actor: { type: row.actor_type === 'user' ? 'user' : 'system', id: row.actor_id, name: row.actor_name },
  token_id: row.token_id,
  request_id: row.request_id,
  origin: row.origin,
  changed,
  restored,
  occurred_at: row.created_at,
})

/** Returns an event whose snapshots and changed keys also have the old names of keys. */
export function eventWithOldNames<Event extends SharedFacts & Pick<Schema<'EventEntry'>, 'before' | 'after'>>(
  { services }: Context,
  event: Event,
): Event {
  const operation = services.resources.get(event.entity_type)?.getOperation
  if (!operation) return event
  const names = oldNamesOf(services.contract, operation)
  if (names.size === 0) return event
  const [before, after] = [event.before, event.after].map((each) =>
    recordWithOldNames(services.contract, operation, each),
  )
  return { ...event, before, after, changed: event.changed.flatMap((key) => [key, names.get(key) ?? []].flat()) }
}
