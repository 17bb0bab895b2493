// The ceiling of views (DOMAIN 7.4): nobody makes anyone see more than they see themselves, neither by a wider view nor by
// putting people into groups they are not in. The ceiling of permissions is in roles/ceiling.ts.
import type { Context } from '../../kernel/context.ts'
import { Problem } from '../../kernel/errors.ts'
import { groupsOf } from '../groups/members.ts'

const width = { individual: 0, group: 1, global: 2 } as const
type View = keyof typeof width

/** Throws 403 for a view wider than the caller's. The server itself, without a user, has no ceiling. */
export function stayWithinView({ user }: Context, view: View): void {
  if (!user || width[view] <= width[user.viewPermission]) return
  throw new Problem('forbidden', `Your view is ${user.viewPermission}, so you cannot give anybody the view ${view}.`, {
    required: `view_permission=${view}`,
  })
}

/** Throws 403 when somebody is to join a group that the caller is not in; only a global view may fill any group. */
export async function stayWithinGroups(ctx: Context, joined: readonly (number | null)[]): Promise<void> {
  const { user } = ctx
  if (!user || user.viewPermission === 'global' || joined.length === 0) return
  const own = new Set(((await groupsOf(ctx, [user.id])).get(user.id) ?? []).map(({ id }) => id))
  if (joined.every((id) => id !== null && own.has(id))) return
  throw new Problem('forbidden', 'Without a global view you can put users only into groups that you are in yourself.', {
    required: 'view_permission=global',
  })
}
