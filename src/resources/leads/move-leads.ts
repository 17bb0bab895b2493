// Moves the leads of a stage or pipeline that is deleted (DOMAIN 15.1). app.ts passes this function
// to the pipelines, which may not import leads.
import type { Context } from '../../kernel/context.ts'
import { withoutVisibility } from '../../kernel/query/visibility.ts'
import { leads } from './resource.ts'

/**
 * Moves every lead of a stage, also those that the caller may not see, with one `lead.update` each.
 */
export async function moveLeads(ctx: Context, from: { stageId: number }, to: { stageId: number }): Promise<void> {
  const all: Context = withoutVisibility(ctx)
  const rows = await ctx.db
    .selectFrom('leads')
    .select('id')
    .where('lead_pipeline_stage_id', '=', from.stageId)
    .orderBy('id')
    .execute()
  for (const { id } of rows) await leads.update(all, id, { lead_pipeline_stage_id: to.stageId })
}
