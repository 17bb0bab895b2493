// How many leads each owner has at each stage, and what they are worth, kept with the leads: boards and counts need not add up a
// million rows.

import { type Kysely, sql } from 'kysely'
import type { Dialect } from '../dialect.ts'
import { createTable, id, integer } from '../schema/columns.ts'

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
  for (const statement of statements) await sql.raw(statement).execute(db)
}

// Written out, so that later changes of the program change no database that was made before.
const add = `insert into lead_totals (owner_id, stage_id, status, count, units, parts) values (coalesce(new.user_id, 0), coalesce(new.lead_pipeline_stage_id, 0), coalesce(new.status, 0), 1, new.lead_value / 10000, new.lead_value % 10000)
    on conflict (owner_id, stage_id, status) do update set count = count + 1, units = units + excluded.units, parts = parts + excluded.parts;`
const isOfOld =
  '(owner_id, stage_id, status) = (coalesce(old.user_id, 0), coalesce(old.lead_pipeline_stage_id, 0), coalesce(old.status, 0))'
const remove = `update lead_totals set (count, units, parts) = (count - 1, units - old.lead_value / 10000, parts - old.lead_value % 10000) where ${isOfOld};
    delete from lead_totals where ${isOfOld} and count = 0;`

const statements = [
  `insert into lead_totals (owner_id, stage_id, status, count, units, parts)
    select coalesce(user_id, 0), coalesce(lead_pipeline_stage_id, 0), coalesce(status, 0), count(*), sum(lead_value / 10000), sum(lead_value % 10000)
    from leads where true group by coalesce(user_id, 0), coalesce(lead_pipeline_stage_id, 0), coalesce(status, 0)`,
  `create trigger lead_totals_insert after insert on leads begin ${add} end`,
  `create trigger lead_totals_delete after delete on leads begin ${remove} end`,
  `create trigger lead_totals_update after update of user_id, lead_pipeline_stage_id, status, lead_value on leads
    when old.user_id is not new.user_id or old.lead_pipeline_stage_id is not new.lead_pipeline_stage_id or old.status is not new.status or old.lead_value is not new.lead_value
    begin ${remove} ${add} end`,
]
