// Adds the audience of campaigns, the consent of persons to campaigns, and the table of persons
// that an import created or changed.

import { type Kysely, sql } from 'kysely'
import type { Dialect } from '../dialect.ts'
import {
  addColumn,
  createIndex,
  createTable,
  flag,
  json,
  nullable,
  oneOf,
  references,
  text,
  timestamp,
} from '../schema/columns.ts'

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await addColumn(db, dialect, 'persons', 'subscribed', nullable(flag()))
  await addColumn(db, dialect, 'persons', 'subscribed_source', nullable(text()))
  await addColumn(db, dialect, 'persons', 'subscribed_at', nullable(timestamp()))
  await createIndex(db, dialect, 'persons', { columns: ['subscribed', 'id'] })
  await addAttribute(db, dialect)
  await createTable(
    db,
    dialect,
    'import_persons',
    { import_id: references('imports', 'cascade'), person_id: references('persons', 'cascade') },
    { primaryKey: ['import_id', 'person_id'] },
  )
  const campaigns = 'marketing_campaigns'
  await addColumn(db, dialect, campaigns, 'audience_type', oneOf(['all', 'filter', 'tag', 'import'], 'all'))
  await addColumn(db, dialect, campaigns, 'audience_filter', nullable(json()))
  await addColumn(db, dialect, campaigns, 'audience_tag_id', references('tags', 'set null'))
  await addColumn(db, dialect, campaigns, 'audience_import_id', references('imports', 'set null'))
}

/**
 * Adds the built-in attribute `subscribed`, with which web forms ask for consent. In a new
 * database, db/seed.ts adds it. An installation that already has an attribute with this code keeps
 * it.
 */
async function addAttribute(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  const [yes, no] = [sql.raw(dialect.flagLiteral(true)), sql.raw(dialect.flagLiteral(false))]
  await sql`insert into attributes
    (code, name, name_key, type, entity_type, sort_order, is_required, is_unique, quick_add, is_user_defined,
      created_at, updated_at)
    select 'subscribed', 'Subscribed', 'subscribed', 'boolean', 'persons',
      (select max(sort_order) + 1 from attributes where entity_type = 'persons'), ${no}, ${no}, ${yes}, ${no},
      created_at, updated_at
    from attributes where entity_type = 'persons' and code = 'emails' and is_user_defined = ${no}
      and not exists (select 1 from attributes where entity_type = 'persons' and code = 'subscribed')`.execute(db)
}
