// Adds the user who last changed a campaign. Its placeholders show only what this user may see.

import { type Kysely, sql } from 'kysely'
import type { Dialect } from '../dialect.ts'
import { addColumn, references } from '../schema/columns.ts'

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await addColumn(db, dialect, 'marketing_campaigns', 'changed_by_id', references('users', 'set null'))
  await nameChangers(db, dialect)
}

/**
 * The user of the last change in the event log, or null when this user was deleted. If the log has
 * no user, the first administrator, because campaigns filled in every value before.
 */
async function nameChangers(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  const yes = sql.raw(dialect.flagLiteral(true))
  const change = sql`events.entity_type = 'campaigns' and events.entity_id = marketing_campaigns.id
    and events.name in ('settings.marketing.campaigns.create.after', 'settings.marketing.campaigns.update.after')
    and events.actor_type = 'user'`
  const last = sql`select events.actor_id from events where ${change} order by events.id desc limit 1`
  const first = sql`select min(users.id) from users join roles on roles.id = users.role_id
    where users.is_active = ${yes} and users.view_permission = 'global' and roles.permission_type = 'all'`
  await sql`update marketing_campaigns set changed_by_id = case when exists (select 1 from events where ${change})
    then (select users.id from users where users.id = (${last})) else (${first}) end`.execute(db)
}
