// How many leads each owner has at each stage, and what they are worth, kept with the leads: boards and counts need not add up a
// million rows.

import type { Kysely } from 'kysely'
import { createTable, id, integer } from '../columns.ts'
import type { Dialect } from '../dialects/dialect.ts'

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await createTable(
    db,
    dialect,
    'lead_totals',
    {
      id: id(),
      /** 0 for leads of nobody. No foreign keys: a row is gone with the last lead it counts. */
      owner_id: integer(),
      stage_id: integer(),
      status: integer(),
      count: integer(),
      /** The sum of their values, whole units and ten-thousandths apart, so that no sum can overflow. */
      units: integer(),
      parts: integer(),
    },
    { unique: [['owner_id', 'stage_id', 'status']] },
  )
  await dialect.keepTotals(db, {
    table: 'lead_totals',
    of: 'leads',
    by: { owner_id: 'user_id', stage_id: 'lead_pipeline_stage_id', status: 'status' },
    sum: 'lead_value',
  })
}
