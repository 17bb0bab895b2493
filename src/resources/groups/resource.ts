// Groups of users. A user with the view permission `group` sees the records of all
// members of the user's groups.

import { type SqlBool, sql } from 'kysely'
import type { Schema } from '../../contract/types.ts'
import { withCurrentCaller } from '../../kernel/auth/tokens.ts'
import { type Context, canCall } from '../../kernel/context.ts'
import { inUse } from '../../kernel/errors.ts'
import type { SqlCaller } from '../../kernel/query/caller-query.ts'
import { conditionField, textField } from '../../kernel/query/filter.ts'
import { canSeeOwner, visible } from '../../kernel/query/visibility.ts'
import { defineResource, type Resource } from '../../kernel/resource/define-resource.ts'
import { nameKey } from '../../kernel/resource/named-references.ts'
import { checkReferences, uniqueName } from '../../kernel/resource/references.ts'
import { checkMembership } from '../users/view-ceiling.ts'
import { membersOf, setMembers } from './members.ts'

type Group = Schema<'Group'>

export const groups = defineResource({
  noun: 'group',
  table: 'groups',
  externalIds: { table: 'group_external_ids', column: 'group_id' },
  namedBy: { keys: { name: nameKey } },
  operations: {
    list: 'listGroups',
    get: 'getGroup',
    create: 'createGroup',
    update: 'updateGroup',
    delete: 'deleteGroup',
  },
  rows: (ctx, db) =>
    db
      .selectFrom('groups')
      .selectAll('groups')
      .select(sql<number>`(select count(*) ${members(ctx)})`.as('users_count')),
  sort: { id: 'groups.id', name: 'groups.name_key', created_at: 'groups.created_at' },
  filter: {
    name: textField('groups.name_key'),
    user_id: (ctx) =>
      conditionField((ids) => sql<SqlBool>`exists (select 1 ${members(ctx)} and users.id in (${sql.join(ids)}))`),
  },
  search: [{ key: 'groups.name_key' }, { text: 'groups.description' }],
  withoutColumn: { user_ids: 'links' },
  toRow: async ({ name, description, user_ids }, writing) => {
    const { ctx, current, errors } = writing
    const named = await uniqueName(writing, { table: 'groups', entity: 'groups', noun: 'group' }, name)
    const present = current && user_ids ? await allMembers(ctx, current.id) : []
    await checkReferences(writing, 'user_ids', user_ids, { noun: 'user', visibleIds: acceptPresent(present) })
    if (user_ids && !errors.any) {
      const joined = [...new Set(user_ids)].filter((id) => !present.includes(id))
      const left = present.filter((id) => canSeeOwner(ctx, id) && !user_ids.includes(id))
      await checkMembership(await withCurrentCaller(ctx), { groupId: current?.id ?? null, joined, left })
    }
    return { columns: { ...named, description }, save: (ctx, id) => setMembers(ctx, { group_id: id }, user_ids) }
  },
  toReply: (row): Group => ({
    id: row.id,
    name: row.name,
    description: row.description,
    user_ids: [],
    users_count: Number(row.users_count),
    external_ids: {},
    created_at: row.created_at,
    updated_at: row.updated_at,
    version: row.version,
  }),
  loadRelated: async (ctx, replies, include) => {
    const members = await membersOf(
      ctx,
      replies.map(({ id }) => id),
    )
    for (const reply of replies) reply.user_ids = members.get(reply.id) ?? []
    const users = usersIn(ctx)
    if (!include.includes('users') || !canCall(ctx, users.getOperation)) return
    const full = await users.getMany(
      ctx,
      replies.flatMap(({ user_ids }) => user_ids),
    )
    for (const reply of replies) reply.users = reply.user_ids.flatMap((id) => full.get(id) ?? [])
  },
  // Removes members that the reader of an event may not see. The user whose change wrote the
  // snapshot may see more members.
  asRead: (ctx, snapshot) => ({
    ...snapshot,
    ...(Array.isArray(snapshot.user_ids) && { user_ids: snapshot.user_ids.filter((id) => canSeeOwner(ctx, id)) }),
  }),
  beforeDelete: async (ctx, { id, name }) => {
    const members = await allMembers(ctx, id)
    if (members.length === 0) return
    throw inUse(
      `${name} has members.`,
      members
        .slice(0, 20)
        .map((user) => ({ entity_type: 'users', id: canSeeOwner(ctx, user) ? user : null, field: 'group_ids' })),
    )
  },
})

/** Returns the users resource. It is not imported, because the users resource imports this file. */
const usersIn = ({ services }: Context) => services.resources.get('users') as Resource<Schema<'User'>, never>

/**
 * Returns the SQL, from the keyword `from` on, for the visible members of a group. The surrounding
 * query must select from `groups`.
 */
const members = (ctx: SqlCaller) =>
  sql`from user_groups join users on users.id = user_groups.user_id where user_groups.group_id = groups.id and ${visible(ctx, 'users.id')}`

/** Returns the ids of all members of a group, including members that the caller may not see. */
const allMembers = async (ctx: Context, groupId: number): Promise<number[]> =>
  (
    await ctx.db
      .selectFrom('user_groups')
      .select('user_id')
      .where('group_id', '=', groupId)
      .orderBy('user_id')
      .execute()
  ).map(({ user_id }) => user_id)

/**
 * Returns a function that filters user ids. Present members pass without a check, and new members
 * pass only when they are visible to the caller.
 */
const acceptPresent =
  (present: readonly number[]) =>
  async (ctx: Context, ids: readonly number[]): Promise<Set<number>> =>
    new Set([...present, ...(await usersIn(ctx).visibleIds(ctx, ids))])
