// The owner of a record: how replies refer to the owner, and which
// user a caller may set as owner.
import type { Schema } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import type { Writing } from '../../kernel/resource/define-resource.ts'

/**
 * Returns a UserRef built from joined columns of `users`; null when no user is joined. Pass the
 * `pictureUrl` of `users.image_file_id` as `imageUrl`.
 */
export function userRef(
  id: number | null,
  name: string | null,
  email: string | null,
  imageUrl: string | null,
): Schema<'UserRef'> | null {
  return id === null || name === null ? null : { id, name, email: email ?? '', image_url: imageUrl ?? null }
}

/** Returns those of `ids` that are active users. Every caller may name these. */
export async function activeUsers({ db }: Context, ids: readonly number[]): Promise<ReadonlySet<number>> {
  if (ids.length === 0) return new Set()
  const rows = await db
    .selectFrom('users')
    .select('id')
    .where('id', 'in', [...ids])
    .where('is_active', '=', 1)
    .execute()
  return new Set(rows.map(({ id }) => id))
}

/**
 * Returns the `user_id` to store, or undefined when it is unchanged. If a create request contains
 * no owner, the caller becomes the owner. Adds a validation error for an owner who is missing
 * or inactive. Only callers with a global view may send null.
 */
export async function resolveOwnerId(
  { ctx, current, errors }: Writing<{ user_id: number | null }>,
  sent: number | null | undefined,
): Promise<number | null | undefined> {
  if (sent === undefined) return current ? undefined : (ctx.user?.id ?? null)
  if (current && sent === current.user_id) return undefined
  if (sent === null) {
    if (ctx.user && ctx.user.visibleOwners !== null)
      errors.invalid('user_id', 'Only users with a global view can leave a record without an owner.')
    return null
  }
  const owner = await ctx.db.selectFrom('users').select('is_active').where('id', '=', sent).executeTakeFirst()
  if (!owner) errors.invalid('user_id', `No user has id ${sent}.`)
  else if (owner.is_active !== 1) errors.invalid('user_id', 'This user is not active.')
  return sent
}
