// The permission ceiling (DOMAIN 7.1): callers neither grant nor act upon more permissions than
// their own role holds. Roles check their grants before and after a change, users check their old
// and new role.
import type { Db } from '../../../db/store.ts'
import type { Context } from '../../kernel/context.ts'
import { Problem } from '../../kernel/errors.ts'

/** The grants of a role, as stored. */
export interface Grants {
  permission_type: string
  permissions: string | null
}

export const grantedKeys = ({ permissions }: Pick<Grants, 'permissions'>): string[] =>
  permissions === null ? [] : (JSON.parse(permissions) as string[])

/**
 * Throws 403 when the role holds a permission that the caller lacks. The server itself, without a
 * user, has no ceiling.
 */
export function requirePermissionsOf(ctx: Context, role: Grants): void {
  if (role.permission_type === 'all') requireEverything(ctx)
  else requireKeys(ctx, grantedKeys(role))
}

/** Throws 403 unless the caller's role holds every permission, present and future. */
function requireEverything({ user }: Context): void {
  if (!user || user.permissions === 'all') return
  throw new Problem('forbidden', 'This needs a role that holds every permission.', { required: '*' })
}

/** Throws 403 for the first permission that the caller lacks. */
function requireKeys({ user }: Context, keys: readonly string[]): void {
  if (!user || user.permissions === 'all') return
  const { permissions } = user
  const missing = keys.find((key) => !permissions.has(key))
  if (missing === undefined) return
  throw new Problem('forbidden', `This needs the permission ${missing}, which your role lacks.`, { required: missing })
}

/** Active users whose role holds every permission. */
export const fullAccessUsers = (db: Db) =>
  db
    .selectFrom('users')
    .innerJoin('roles', 'roles.id', 'users.role_id')
    .select('users.id')
    .where('users.status', '=', 1)
    .where('roles.permission_type', '=', 'all')

/**
 * Whether an active user other than this one, or of a role other than this one, holds every
 * permission.
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
