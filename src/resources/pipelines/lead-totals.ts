// Selects the number and total value of the leads of each stage that the caller sees. Reads the
// table lead_totals, which triggers maintain (db/migrations/0006): a row for each owner, stage and
// status.
import { sql } from 'kysely'
import type { Context } from '../../kernel/context.ts'
import { visible } from '../../kernel/query/visibility.ts'

/** The sum has the format `units|parts` of `sumOf`. A stage without visible leads has no row. */
export const leadTotals = (ctx: Context) =>
  ctx.db
    .selectFrom('lead_totals')
    .select(['lead_totals.stage_id as stage', (eb) => eb.fn.sum<number>('lead_totals.count').as('count')])
    .select(sql<string>`cast(sum(lead_totals.units) as text) || '|' || cast(sum(lead_totals.parts) as text)`.as('sum'))
    .where(visible(ctx, 'lead_totals.owner_id'))
    .groupBy('lead_totals.stage_id')
