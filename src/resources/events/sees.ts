// Whether a caller may know of one event, for what is done later because of it.
import type { Context } from '../../kernel/context.ts'
import { knownOf } from './sight.ts'

/** False also for an event that is no longer kept. */
export async function seesEvent(ctx: Context, id: number): Promise<boolean> {
  const row = await ctx.db.selectFrom('events').selectAll().where('id', '=', id).executeTakeFirst()
  return row !== undefined && (await knownOf(ctx, [row])).length > 0
}
