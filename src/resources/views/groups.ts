// Reads and writes the groups that views are shared with.
import type { Context } from '../../kernel/context.ts'

/** Returns a map from view id to the groups of the view, sorted by name. */
export async function groupsOfViews(
  ctx: Context,
  ids: readonly number[],
): Promise<Map<number, { id: number; name: string }[]>> {
  const found = new Map<number, { id: number; name: string }[]>()
  if (ids.length === 0) return found
  const links = await ctx.db
    .selectFrom('saved_view_groups')
    .innerJoin('groups', 'groups.id', 'saved_view_groups.group_id')
    .select(['saved_view_groups.saved_view_id', 'groups.id', 'groups.name'])
    .where('saved_view_groups.saved_view_id', 'in', ids)
    .orderBy('groups.name_key')
    .execute()
  for (const { saved_view_id, id, name } of links)
    found.set(saved_view_id, [...(found.get(saved_view_id) ?? []), { id, name }])
  return found
}

/** Makes `ids` the complete list of a view's groups. Undefined `ids` change nothing. */
export async function saveGroups({ db }: Context, viewId: number, ids: readonly number[] | undefined): Promise<void> {
  if (!ids) return
  await db.deleteFrom('saved_view_groups').where('saved_view_id', '=', viewId).execute()
  const links = [...new Set(ids)].map((group_id) => ({ saved_view_id: viewId, group_id }))
  if (links.length > 0) await db.insertInto('saved_view_groups').values(links).execute()
}
