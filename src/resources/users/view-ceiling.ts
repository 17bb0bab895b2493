// The view ceiling: a caller may change a user only if the caller sees every owner
// that the user sees, before and after the change. The checks compare sets of visible owners.
// roles/permission-ceiling.ts has the ceiling of permissions.
import { visibleOwnersWith } from '../../kernel/auth/tokens.ts'
import type { Context, CurrentUser } from '../../kernel/context.ts'
import { Problem } from '../../kernel/errors.ts'
import { groupsOf } from '../groups/members.ts'

/**
 * A user whose view is checked. `groupIds` are the groups after a planned change, by default the
 * stored groups. `id` is undefined for a new user.
 */
export interface Viewer {
  id: number | undefined
  view_permission: string
  groupIds?: readonly number[]
}

/**
 * Throws 403 when the user sees an owner whom the caller does not see. Call this in the transaction
 * of the write, with the caller's current rights in `ctx`. A context without a user is the server
 * itself, which has no ceiling.
 */
export async function requireWithinView(ctx: Context, { id, view_permission, groupIds }: Viewer): Promise<void> {
  if (await isWithinView(ctx, { id, view_permission, ...(groupIds && { groupIds }) })) return
  throw beyondView('This user sees, or would see, records of users that you do not see.')
}

const beyondView = (sentence: string): Problem =>
  new Problem('forbidden', sentence, { required: 'view_permission=global' })

async function isWithinView(ctx: Context, { id, view_permission, groupIds }: Viewer): Promise<boolean> {
  const own = ctx.user?.visibleOwners
  if (!own) return true
  const view = view_permission as CurrentUser['viewPermission']
  const owners = await visibleOwnersWith(ctx.db, { id, view, groupIds: groupIds ?? (await groupIdsOf(ctx, id)) })
  return owners?.every((owner) => own.includes(owner)) ?? false
}

/**
 * Throws 403 when a user with the role sees an owner whom the caller does not see. New permissions
 * of the role apply to all of these users, so the caller must be allowed to change each of them.
 */
export async function requireHoldersWithinView(ctx: Context, roleId: number): Promise<void> {
  if (!ctx.user?.visibleOwners) return
  const holders = ctx.db.selectFrom('users').select(['id', 'view_permission']).where('role_id', '=', roleId)
  for (const holder of await holders.execute())
    if (!(await isWithinView(ctx, holder)))
      throw beyondView('A user with this role sees records of users that you do not see.')
}

export const groupIdsOf = async (ctx: Context, userId: number | undefined): Promise<number[]> =>
  userId === undefined ? [] : ((await groupsOf(ctx, [userId])).get(userId) ?? []).map(({ id }) => id)

/**
 * Throws 403 when a user would join a group that the caller is not in. Callers with a global view
 * may add users to any group. A null in `joined` means a new group.
 */
export async function requireOwnGroups(ctx: Context, joined: readonly (number | null)[]): Promise<void> {
  const { user } = ctx
  if (!user || user.viewPermission === 'global' || joined.length === 0) return
  const own = await groupIdsOf(ctx, user.id)
  if (joined.every((id) => id !== null && own.includes(id))) return
  throw beyondView('Without a global view you can add users only to your own groups.')
}

/**
 * Throws 403 unless the caller may add the users `joined` to the group and remove the users `left`.
 * The groups of a user decide which owners the user sees. `groupId` is null for a new group.
 */
export async function checkMembership(
  ctx: Context,
  { groupId, joined, left }: { groupId: number | null; joined: readonly number[]; left: readonly number[] },
): Promise<void> {
  if (joined.length > 0) await requireOwnGroups(ctx, [groupId])
  const ids = [...joined, ...left]
  if (!ctx.user?.visibleOwners || ids.length === 0) return
  const users = await ctx.db.selectFrom('users').select(['id', 'view_permission']).where('id', 'in', ids).execute()
  for (const user of users) {
    const groupIds = await groupIdsOf(ctx, user.id)
    const gets = groupId !== null && joined.includes(user.id) ? [groupId] : []
    await requireWithinView(ctx, { ...user, groupIds: [...groupIds, ...gets] })
  }
}
