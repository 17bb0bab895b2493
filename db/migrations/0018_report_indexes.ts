// Widens the indexes of leads by creation, closing and expected closing, so that reports read only
// an index and no lead.

import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const [column, read] of Object.entries(wider)) {
    const name = `leads_${column}_id_index`
    await sql.raw(`drop index ${name}`).execute(db)
    await sql.raw(`create index ${name} on leads (${column}, id, ${read})`).execute(db)
  }
}

// Written out, so that later changes of the program do not change this migration.
const wider = {
  created_at: 'status, user_id, lead_pipeline_id, lead_pipeline_stage_id, lead_value',
  closed_at: 'status, user_id, lead_pipeline_id, lead_source_id, lead_type_id, person_id, lead_value',
  expected_close_date: 'status, user_id, lead_pipeline_id, lead_pipeline_stage_id, lead_value',
}
