// Adds users with a view and permissions directly to the database, for tests about visibility.
import { type Caller, start, type TestServer } from './app.ts'

export interface Someone {
  /** The group of the user, which is created if it is missing. */
  group?: string
  view?: 'global' | 'group' | 'individual'
  /** The permission keys of a new role for the user. The default is the Administrator role. */
  permissions?: string[]
  isActive?: boolean
}

const stamps = { created_at: start, updated_at: start }

/** Adds a signed-in user whose token has every ability. */
export async function addUser(server: TestServer, name: string, about: Someone = {}): Promise<Caller & { id: number }> {
  const { db } = server.store
  const key = name.toLowerCase()
  const role = about.permissions && {
    name,
    name_key: key,
    permission_type: 'custom' as const,
    permissions: JSON.stringify(about.permissions),
    ...stamps,
  }
  const roleId = role ? (await db.insertInto('roles').values(role).returning('id').executeTakeFirstOrThrow()).id : 1
  const email = `${key}@example.com`
  const { id } = await db
    .insertInto('users')
    .values({
      name,
      name_key: key,
      email,
      email_key: email,
      is_active: about.isActive === false ? 0 : 1,
      view_permission: about.view ?? 'global',
      role_id: roleId,
      ...stamps,
    })
    .returning('id')
    .executeTakeFirstOrThrow()
  if (about.group !== undefined) {
    const group = { name: about.group, name_key: about.group.toLowerCase(), ...stamps }
    await db
      .insertInto('groups')
      .values(group)
      .onConflict((conflict) => conflict.column('name_key').doNothing())
      .execute()
    const { id: groupId } = await db
      .selectFrom('groups')
      .select('id')
      .where('name_key', '=', group.name_key)
      .executeTakeFirstOrThrow()
    await db.insertInto('user_groups').values({ user_id: id, group_id: groupId }).execute()
  }
  return { ...(await server.as(id)), id }
}
