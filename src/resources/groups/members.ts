// Reads and writes the membership of users in groups. Groups (`user_ids`) and users (`group_ids`)
// both write the link table user_groups.
import { sql } from 'kysely'
import type { DB } from '../../../db/tables.gen.ts'
import type { Context } from '../../kernel/context.ts'
import { visible } from '../../kernel/query/visibility.ts'

/**
 * Returns a map from group id to the ids of the group's members, in ascending order. Contains only
 * members visible to the caller.
 */
export async function membersOf(ctx: Context, groupIds: readonly number[]): Promise<Map<number, number[]>> {
  const found = new Map<number, number[]>()
  if (groupIds.length === 0) return found
  const links = await ctx.db
    .selectFrom('user_groups')
    .innerJoin('users', 'users.id', 'user_groups.user_id')
    .selectAll('user_groups')
    .where('group_id', 'in', groupIds)
    .where(visible(ctx, 'users.id'))
    .orderBy('user_id')
    .execute()
  for (const { group_id, user_id } of links) found.set(group_id, [...(found.get(group_id) ?? []), user_id])
  return found
}

/** Returns a map from user id to the groups of the user, sorted by name. */
export const groupsOf = (ctx: Context, userIds: readonly number[]): ReturnType<typeof linkedGroups> =>
  linkedGroups(ctx, { table: 'user_groups', owner: 'user_id' }, userIds)

/**
 * Returns a map from the ids of records to their groups, sorted by name. `table` links records to
 * groups, and `owner` is its column with the id of the record.
 */
export async function linkedGroups(
  { db }: Context,
  { table, owner }: { table: keyof DB; owner: string },
  ids: readonly number[],
): Promise<Map<number, { id: number; name: string }[]>> {
  const found = new Map<number, { id: number; name: string }[]>()
  if (ids.length === 0) return found
  const record = sql.ref(`link.${owner}`)
  const links = await sql<{ record: number; id: number; name: string }>`
    select ${record} as record, "groups".id, "groups".name
    from ${sql.table(table)} as link join "groups" on "groups".id = link.group_id
    where ${record} in (${sql.join(ids)}) order by "groups".name_key`.execute(db)
  for (const { record, id, name } of links.rows) found.set(record, [...(found.get(record) ?? []), { id, name }])
  return found
}

/**
 * Makes `ids` the complete list of a group's members, or of a user's groups. Members that the
 * caller may not see stay in the group. Undefined `ids` change nothing.
 */
export async function setMembers(
  ctx: Context,
  of: { group_id: number } | { user_id: number },
  ids: readonly number[] | undefined,
): Promise<void> {
  if (!ids) return
  const wanted = [...new Set(ids)]
  let gone = ctx.db.deleteFrom('user_groups')
  if ('group_id' in of) {
    const seen = ctx.db.selectFrom('users').select('id').where(visible(ctx, 'users.id'))
    gone = gone.where('group_id', '=', of.group_id).where('user_id', 'in', seen)
    if (wanted.length > 0) gone = gone.where('user_id', 'not in', wanted)
  } else {
    gone = gone.where('user_id', '=', of.user_id)
    if (wanted.length > 0) gone = gone.where('group_id', 'not in', wanted)
  }
  await gone.execute()
  if (wanted.length === 0) return
  const links = wanted.map((id) =>
    'group_id' in of ? { group_id: of.group_id, user_id: id } : { user_id: of.user_id, group_id: id },
  )
  await ctx.db
    .insertInto('user_groups')
    .values(links)
    .onConflict((conflict) => conflict.columns(['user_id', 'group_id']).doNothing())
    .execute()
}
