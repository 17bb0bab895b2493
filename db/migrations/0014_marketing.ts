// Creates the tables of marketing events and campaigns.

import type { Kysely } from 'kysely'
import type { Dialect } from '../dialect.ts'
import {
  createTable,
  date,
  flag,
  id,
  key,
  listed,
  nullable,
  references,
  text,
  timestamps,
  version,
} from '../schema/columns.ts'

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await createTable(
    db,
    dialect,
    'marketing_events',
    {
      id: id(),
      name: text(),
      name_key: key(),
      description: text(),
      date: nullable(date()),
      ...timestamps(),
      ...version(),
    },
    { unique: [['name_key']], indexes: [['date', 'id'], ...listed] },
  )
  await createTable(
    db,
    dialect,
    'marketing_campaigns',
    {
      id: id(),
      name: text(),
      name_key: key(),
      subject: text(),
      is_active: flag(false),
      email_template_id: references('email_templates', 'set null'),
      marketing_event_id: references('marketing_events', 'set null'),
      ...timestamps(),
      ...version(),
    },
    { indexes: [['name_key', 'id'], ['is_active', 'id'], ...listed] },
  )
}
