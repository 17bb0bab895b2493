// Checks by event id whether a caller may see events. Background jobs need this check, because they
// act on an event some time after it was written.
import type { Context } from '../../kernel/context.ts'
import { filterVisible } from './event-visibility.ts'

/**
 * Returns whether the caller may see the event. Returns false when the log no longer has the event.
 */
export const canSeeEvent = async (ctx: Context, id: number): Promise<boolean> =>
  (await visibleEventIds(ctx, [id])).has(id)

/**
 * The maximum number of ids per query. Each id is a bound variable, and SQLite limits the number of
 * variables per statement.
 */
const idsPerQuery = 500

/** Returns the subset of event `ids` that the caller may see. */
export async function visibleEventIds(ctx: Context, ids: readonly number[]): Promise<ReadonlySet<number>> {
  const seen = new Set<number>()
  for (let place = 0; place < ids.length; place += idsPerQuery) {
    const rows = await ctx.db
      .selectFrom('events')
      .select(['id', 'entity_type', 'entity_id', 'related_type', 'related_id'])
      .where('id', 'in', ids.slice(place, place + idsPerQuery))
      .execute()
    for (const { id } of await filterVisible(ctx, rows)) seen.add(id)
  }
  return seen
}
