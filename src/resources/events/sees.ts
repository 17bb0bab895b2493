// Whether a caller may know of events, for what is done later because of them.
import type { Context } from '../../kernel/context.ts'
import { knownOf } from './event-visibility.ts'

/** False also for an event that is no longer kept. */
export const seesEvent = async (ctx: Context, id: number): Promise<boolean> => (await seenEvents(ctx, [id])).has(id)

/** As many at once: each is a variable of a statement, of which there can be some thousands. */
const atOnce = 500

/** Those of the events that the caller may know of. */
export async function seenEvents(ctx: Context, ids: readonly number[]): Promise<ReadonlySet<number>> {
  const seen = new Set<number>()
  for (let place = 0; place < ids.length; place += atOnce) {
    const rows = await ctx.db
      .selectFrom('events')
      .select(['id', 'entity_type', 'entity_id', 'related_type', 'related_id'])
      .where('id', 'in', ids.slice(place, place + atOnce))
      .execute()
    for (const { id } of await knownOf(ctx, rows)) seen.add(id)
  }
  return seen
}
