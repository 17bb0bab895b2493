// An open lead is rotten when its age exceeds the `rotten_days` of its pipeline by at least one
// day. The age counts from the last touch of the lead: its last change of stage, activity or e-mail
// (migration 0028).
import { type SqlBool, sql } from 'kysely'
import type { Context } from '../../kernel/context.ts'
import { type FilterField, flagConditionField } from '../../kernel/query/filter.ts'
import { daysMs, stamp } from '../../kernel/runtime/clock.ts'
import { leadStatus } from './change-stage.ts'

/** Returns the filter `is_rotten`, which selects the rotten leads with one SQL condition. */
export async function rottenFilter(ctx: Context): Promise<FilterField> {
  const rows = await ctx.db.selectFrom('lead_pipelines').select(['id', 'rotten_days']).execute()
  const tests = rows.map(({ id, rotten_days }) => {
    const before = stamp(new Date(ctx.time.getTime() - daysMs(rotten_days + 1)))
    return sql<SqlBool>`(leads.lead_pipeline_id = ${id} and leads.touched_at <= ${before})`
  })
  const isRotten = sql<SqlBool>`(leads.status = ${sql.lit(leadStatus.open)} and (${sql.join(tests, sql` or `)}))`
  return flagConditionField((wanted) => (wanted ? isRotten : sql<SqlBool>`not ${isRotten}`))
}

export function rottenDays(ctx: Context, row: { status: number; touched_at: string; rotten_days: number }): number {
  if (row.status !== leadStatus.open) return 0
  const due = new Date(row.touched_at).getTime() + daysMs(row.rotten_days)
  return Math.max(0, Math.floor((ctx.time.getTime() - due) / daysMs(1)))
}
