// The permission ceiling: a caller cannot grant or change permissions that the
// caller's own role lacks. A change of a role checks the role's permissions before and after the
// change. A change of a user checks the old and the new role.

import type { Db } from '../../../db/store.ts'
import type { Schema } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import { Problem } from '../../kernel/errors.ts'

/** The permissions of a role, as its database row stores them. `permissions` is a JSON list. */
export interface Grants {
  permission_type: Schema<'Role'>['permission_type']
  permissions: string | null
}

export const grantedKeys = ({ permissions }: Pick<Grants, 'permissions'>): string[] =>
  permissions === null ? [] : (JSON.parse(permissions) as string[])

/**
 * Throws 403 when `role` has a permission that the caller lacks. A context without a user is the
 * server itself, which has no ceiling.
 */
export function requirePermissionsOf(ctx: Context, role: Grants): void {
  if (role.permission_type === 'all') requireEverything(ctx)
  else requireKeys(ctx, grantedKeys(role))
}

/**
 * Throws 403 unless the caller's role has all permissions, including those that later versions add.
 */
function requireEverything({ user }: Context): void {
  if (!user || user.permissions === 'all') return
  throw new Problem('forbidden', 'This needs a role that holds every permission.', { required: '*' })
}

/** Throws 403 when the caller lacks one of `keys`. The error names the first missing key. */
function requireKeys({ user }: Context, keys: readonly string[]): void {
  if (!user || user.permissions === 'all') return
  const { permissions } = user
  const missing = keys.find((key) => !permissions.has(key))
  if (missing === undefined) return
  throw new Problem('forbidden', `This needs the permission ${missing}, which your role lacks.`, { required: missing })
}

/** Returns a query for the ids of the active users whose role has all permissions. */
export const fullAccessUsers = (db: Db) =>
  db
    .selectFrom('users')
    .innerJoin('roles', 'roles.id', 'users.role_id')
    .select('users.id')
    .where('users.is_active', '=', 1)
    .where('roles.permission_type', '=', 'all')

/**
 * Returns whether an active user has all permissions, ignoring the user `without.user` or all users
 * with the role `without.role`.
 */
export async function isFullAccessHeldBeside(
  ctx: Context,
  without: { user: number } | { role: number },
): Promise<boolean> {
  const all = fullAccessUsers(ctx.db)
  const others =
    'user' in without ? all.where('users.id', '!=', without.user) : all.where('roles.id', '!=', without.role)
  return (await others.limit(1).executeTakeFirst()) !== undefined
}
