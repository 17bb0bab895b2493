// The ids in other systems of e-mails and of the records of the settings.

import type { Kysely } from 'kysely'
import type { Dialect } from '../dialect.ts'
import { createTable, key, references, text } from '../schema/columns.ts'

/** The table of the records, by the name of one record. */
const tables = {
  tag: 'tags',
  source: 'lead_sources',
  type: 'lead_types',
  pipeline: 'lead_pipelines',
  user: 'users',
  group: 'groups',
  role: 'roles',
  email: 'emails',
  warehouse: 'warehouses',
  location: 'warehouse_locations',
  campaign: 'marketing_campaigns',
  marketing_event: 'marketing_events',
  email_template: 'email_templates',
  web_form: 'web_forms',
  webhook: 'webhooks',
  workflow: 'workflows',
  attribute: 'attributes',
}

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  for (const [record, table] of Object.entries(tables)) {
    const owner = `${record}_id`
    await createTable(
      db,
      dialect,
      `${record}_external_ids`,
      { [owner]: references(table, 'cascade'), source: text(), external_id: key() },
      { primaryKey: [owner, 'source'], unique: [['external_id']] },
    )
  }
}
