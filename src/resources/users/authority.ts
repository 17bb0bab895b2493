// Which users a caller may change: users with no more permissions and no
// more visible owners than the caller. Callers cannot deactivate or delete their own account or the
// last active user with all permissions.
import { withCurrentCaller } from '../../kernel/auth/tokens.ts'
import type { Context } from '../../kernel/context.ts'
import { isProtected } from '../../kernel/errors.ts'
import { type Grants, isFullAccessHeldBeside, requirePermissionsOf } from '../roles/permission-ceiling.ts'
import { requireWithinView } from './view-ceiling.ts'

export interface GovernedUser extends Grants {
  id: number
  is_active: number
  role_id: number
  view_permission: string
}

/** A change of a user. An undefined field keeps its stored value. */
export interface AccountChange {
  is_active: boolean | undefined
  role: ({ id: number } & Grants) | undefined
}

/**
 * Throws 403 when `user` has a permission or sees an owner that the caller lacks. Otherwise the
 * caller could set a password for this user and gain more rights by signing in as this user.
 */
export async function requireAuthorityOver(
  ctx: Context,
  user: Omit<GovernedUser, 'is_active' | 'role_id'>,
): Promise<void> {
  requirePermissionsOf(ctx, user)
  await requireWithinView(ctx, { id: user.id, view_permission: user.view_permission })
}

/**
 * Does the check of `requireAuthorityOver` for a user id. Reads the caller and the user in the
 * transaction of the change.
 */
export async function requireAuthorityOverId(ctx: Context, userId: number): Promise<void> {
  const user = await ctx.db
    .selectFrom('users')
    .innerJoin('roles', 'roles.id', 'users.role_id')
    .select(['users.id', 'users.view_permission', 'roles.permission_type', 'roles.permissions'])
    .where('users.id', '=', userId)
    .executeTakeFirst()
  if (user) await requireAuthorityOver(await withCurrentCaller(ctx), user)
}

/**
 * Throws 403 when the user or the new role exceeds the caller's rights. Throws 409 when the change
 * would lock out the caller or the last user with all permissions. `changes` is true when the write
 * changes the user.
 */
export async function checkAuthority(
  ctx: Context,
  current: GovernedUser | null,
  next: AccountChange,
  changes: boolean,
): Promise<void> {
  if (current && changes) await requireAuthorityOver(ctx, current)
  if (next.role && next.role.id !== current?.role_id) requirePermissionsOf(ctx, next.role)
  if (!current) return
  const deactivates = next.is_active === false && current.is_active === 1
  if (deactivates && current.id === ctx.user?.id) throw isProtected('You cannot deactivate your own account.')
  const demotes = next.role !== undefined && next.role.permission_type !== 'all'
  if (deactivates || demotes) await refuseLast(ctx, current)
}

/**
 * Throws 403 when the user exceeds the caller's rights. Throws 409 for the caller's own account and
 * for the last active user who has all permissions.
 */
export async function checkDeletable(outer: Context, user: GovernedUser): Promise<void> {
  const ctx = await withCurrentCaller(outer)
  await requireAuthorityOver(ctx, user)
  if (user.id === ctx.user?.id) throw isProtected('You cannot delete your own account.')
  await refuseLast(ctx, user)
}

async function refuseLast(ctx: Context, user: GovernedUser): Promise<void> {
  if (user.is_active !== 1 || user.permission_type !== 'all') return
  if (await isFullAccessHeldBeside(ctx, { user: user.id })) return
  throw isProtected('This is the last active user who holds every permission.')
}
