// The owner of a record: its reference in replies, and who may be named as owner (DOMAIN 3.4 Owner,
// 3.5 UserRef).
import type { Schema } from '../../contract/types.ts'
import { canSeeOwner } from '../../kernel/query/visibility.ts'
import type { Writing } from '../../kernel/resource/define-resource.ts'

/**
 * A UserRef from joined columns; `imageUrl` comes from `pictureUrl` of `users.image_file_id`. Null
 * without a user.
 */
export function userRef(
  id: number | null,
  name: string | null,
  email: string | null,
  imageUrl: string | null,
): Schema<'UserRef'> | null {
  return id === null || name === null ? null : { id, name, email: email ?? '', image_url: imageUrl ?? null }
}

/**
 * The `user_id` to store: the caller for a new record that names none, undefined when unchanged.
 * Finds an owner who is missing, inactive or not visible, and null from a caller without a global
 * view.
 */
export async function resolveOwnerId(
  { ctx, current, found }: Writing<{ user_id: number | null }>,
  sent: number | null | undefined,
): Promise<number | null | undefined> {
  if (sent === undefined) return current ? undefined : (ctx.user?.id ?? null)
  if (current && sent === current.user_id) return undefined
  if (sent === null) {
    if (ctx.user && ctx.user.visibleOwners !== null)
      found.invalid('user_id', 'Only users with a global view can leave a record without an owner.')
    return null
  }
  const owner = await ctx.db.selectFrom('users').select('status').where('id', '=', sent).executeTakeFirst()
  if (!owner || !canSeeOwner(ctx, sent)) found.invalid('user_id', `No user has id ${sent}.`)
  else if (owner.status !== 1) found.invalid('user_id', 'This user is not active.')
  return sent
}
