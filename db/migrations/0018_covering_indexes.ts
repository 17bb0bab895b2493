// Widens indexes, so that reports, and the counts of lists for limited users, read only an index.

import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const [name, on] of Object.entries(wider)) {
    await sql.raw(`drop index ${name}`).execute(db)
    await sql.raw(`create index ${name} on ${on}`).execute(db)
  }
}

// Written out, so that later changes of the program do not change this migration.
const wider = {
  leads_created_at_id_index:
    'leads (created_at, id, status, user_id, lead_pipeline_id, lead_pipeline_stage_id, lead_value)',
  leads_closed_at_id_index:
    'leads (closed_at, id, status, user_id, lead_pipeline_id, lead_source_id, lead_type_id, person_id, lead_value)',
  leads_expected_close_date_id_index:
    'leads (expected_close_date, id, status, user_id, lead_pipeline_id, lead_pipeline_stage_id, lead_value)',
  leads_person_id_index: 'leads (person_id, user_id)',
  quotes_person_id_index: 'quotes (person_id, user_id)',
  persons_organization_id_index: 'persons (organization_id, user_id)',
  product_inventories_warehouse_id_index: 'product_inventories (warehouse_id, product_id)',
}
