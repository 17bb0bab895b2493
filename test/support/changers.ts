// Builds databases from before the migrations that store the last changer of workflows and
// webhooks.
import { sql } from 'kysely'
import { migrate, migrations } from '../../db/migrate.ts'
import { type Db, openStore } from '../../db/store.ts'

interface Before {
  /** The migration that adds `changed_by_id` to the table. */
  migration: string
  table: 'webhooks' | 'workflows'
  event: string
  insert: (db: Db, id: number, at: string) => Promise<unknown>
}

/**
 * Returns the last changers of rows 1 to 3 after the migration. User 1 is inactive, users 2 and 3
 * are active. User 2 and then user 3 changed row 1, a deleted user changed row 2, and row 3 has no
 * known changer.
 */
export async function changersAfter({ migration, table, event, insert }: Before): Promise<(number | null)[]> {
  const place = migrations.findIndex(({ name }) => name === migration)
  const store = openStore('sqlite::memory:')
  await migrate(store, migrations.slice(0, place))
  const at = '2026-01-01T00:00:00.000Z'
  await sql`insert into roles (id, name, name_key, permission_type, created_at, updated_at)
    values (1, 'A', 'a', 'all', ${at}, ${at})`.execute(store.db)
  for (const [id, status] of [
    [1, 0],
    [2, 1],
    [3, 1],
  ])
    await sql`insert into users (id, name, name_key, email, email_key, is_active, view_permission, role_id, created_at, updated_at)
      values (${id}, ${`u${id}`}, ${`u${id}`}, ${`u${id}`}, ${`u${id}`}, ${status}, 'global', 1, ${at}, ${at})`.execute(
      store.db,
    )
  for (const id of [1, 2, 3]) await insert(store.db, id, at)
  for (const [id, actor] of [
    [1, 2],
    [1, 3],
    [2, 99],
  ])
    await sql`insert into events (name, entity_type, entity_id, actor_type, actor_id, request_id, origin, created_at)
      values (${event}, ${table}, ${id}, 'user', ${actor}, 'r', 'api', ${at})`.execute(store.db)
  await migrate(store)
  const rows = await store.db.selectFrom(table).select('changed_by_id').orderBy('id').execute()
  await store.close()
  return rows.map((row) => row.changed_by_id)
}
