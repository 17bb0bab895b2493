// The check of `accord doctor` that compares the ledger of reports (lead_outcomes) with the leads.
import { sql } from 'kysely'
import type { Store } from '../../../db/store.ts'
import type { CheckResult } from './check-result.ts'

/** The number of leads that a finding names. */
const maxShown = 3

/**
 * Names the leads that reports count otherwise than they are: as won or lost although they are
 * open or deleted, not at all, or with another value.
 */
export async function checkLedger({ db }: Store): Promise<CheckResult> {
  const { rows } = await sql<{ lead_id: number; total: number }>`
    with newest as (
      select max(id) as id from lead_outcomes where kind in ('won', 'lost') group by lead_id
    ), standing as (
      select booked.lead_id, booked.kind, booked.amount from lead_outcomes as booked
      join newest on newest.id = booked.id where booked.sign = 1
    ), differing as (
      select leads.id as lead_id from leads left join standing on standing.lead_id = leads.id
      where (leads.status in (2, 3)) <> (standing.lead_id is not null)
        or (leads.status = 2 and standing.kind <> 'won') or (leads.status = 3 and standing.kind <> 'lost')
        or standing.amount <> leads.lead_value
      union all
      select lead_id from standing where not exists (select 1 from leads where leads.id = standing.lead_id)
    )
    select lead_id, (select count(*) from differing) as total from differing order by lead_id limit ${sql.lit(maxShown)}
  `.execute(db)
  const [first] = rows
  if (!first) return null
  const named = rows.map(({ lead_id }) => lead_id).join(', ')
  const more = Number(first.total) > rows.length ? ` and ${Number(first.total) - rows.length} more` : ''
  return `reports count the leads ${named}${more} otherwise than they are. Close or reopen each of them, and move it back to its stage, which books it again.`
}
