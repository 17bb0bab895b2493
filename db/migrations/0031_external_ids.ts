// The ids of records in other systems, `hubspot:123`: one for each system and record.

import type { Kysely } from 'kysely'
import type { Dialect } from '../dialect.ts'
import { createTable, key, references, text } from '../schema/columns.ts'

const records = ['lead', 'person', 'organization', 'product', 'quote', 'activity']

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  for (const record of records) {
    const owner = `${record}_id`
    await createTable(
      db,
      dialect,
      `${record}_external_ids`,
      {
        [owner]: references(record === 'activity' ? 'activities' : `${record}s`, 'cascade'),
        source: text(),
        external_id: key(),
      },
      { primaryKey: [owner, 'source'], unique: [['external_id']] },
    )
  }
}
