// The owner of a view sees it, and so do the members of the groups that it is shared with. A role
// with all permissions and a global view sees and changes every view; a global view alone does not,
// because most users of a small team have one.
import { type RawBuilder, type SqlBool, sql } from 'kysely'
import type { Context } from '../../kernel/context.ts'
import { invalid } from '../../kernel/errors.ts'
import type { SqlCaller } from '../../kernel/query/caller-query.ts'
import type { Where } from '../../kernel/resource/where.ts'

export const seesAllViews = ({ user }: SqlCaller): boolean =>
  user === null || (user.permissions === 'all' && user.visibleOwners === null)

/** Returns the condition that the caller sees a row of `saved_views`. */
export function isInSight(caller: SqlCaller): RawBuilder<SqlBool> {
  const { user, visibleRecord } = caller
  if (user === null || seesAllViews(caller)) return sql<SqlBool>`1 = 1`
  const written = visibleRecord?.table === 'saved_views' ? sql` or saved_views.id = ${visibleRecord.id}` : sql``
  return sql<SqlBool>`(saved_views.user_id = ${user.id} or saved_views.id in (
    select shared.saved_view_id from saved_view_groups as shared
    join user_groups on user_groups.group_id = shared.group_id where user_groups.user_id = ${user.id})${written})`
}

/** Returns a context that sees and may change every view, for changes that follow from another. */
export const asAdministrator = (ctx: Context): Context => ({
  ...ctx,
  ifMatch: null,
  ...(ctx.user && { user: { ...ctx.user, permissions: 'all', visibleOwners: null } }),
})

export interface StoredView {
  name: string
  type: string
  where: Where
}

/** Returns a view, whether or not the caller sees it; undefined if it does not exist. */
export async function storedView({ db }: Pick<Context, 'db'>, id: number): Promise<StoredView | undefined> {
  const row = await db
    .selectFrom('saved_views')
    .select(['name', 'type', 'where'])
    .where('id', '=', id)
    .executeTakeFirst()
  return row && { ...row, where: JSON.parse(row.where) as Where }
}

/**
 * Returns the view that a list names. Throws 422 when the caller does not see it, or when its
 * records have another type.
 */
export async function viewOfList(ctx: Context, entity: string, id: number): Promise<StoredView> {
  const seen = await ctx.db
    .selectFrom('saved_views')
    .select('id')
    .where('id', '=', id)
    .where(isInSight(ctx))
    .executeTakeFirst()
  const view = seen && (await storedView(ctx, id))
  if (!view) throw invalid({ 'query.view': [`No view has id ${id}.`] })
  if (view.type !== entity) throw invalid({ 'query.view': [`View ${id} selects ${view.type}, not ${entity}.`] })
  return view
}
