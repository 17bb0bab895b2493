// Reads and writes the groups that views are shared with.
import type { Context } from '../../kernel/context.ts'
import { linkedGroups } from '../groups/members.ts'

/** Returns a map from view id to the groups of the view, sorted by name. */
export const groupsOfViews = (ctx: Context, ids: readonly number[]): ReturnType<typeof linkedGroups> =>
  linkedGroups(ctx, { table: 'saved_view_groups', owner: 'saved_view_id' }, ids)

/** Makes `ids` the complete list of a view's groups. Undefined `ids` change nothing. */
export async function saveGroups({ db }: Context, viewId: number, ids: readonly number[] | undefined): Promise<void> {
  if (!ids) return
  await db.deleteFrom('saved_view_groups').where('saved_view_id', '=', viewId).execute()
  const links = [...new Set(ids)].map((group_id) => ({ saved_view_id: viewId, group_id }))
  if (links.length > 0) await db.insertInto('saved_view_groups').values(links).execute()
}
