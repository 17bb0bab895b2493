// Moves leads to another stage when their stage or pipeline is deleted (DOMAIN 15.1). The pipelines
// resource cannot import leads, so app.ts passes this function to it.
import type { Context } from '../../kernel/context.ts'
import { withoutVisibility } from '../../kernel/query/visibility.ts'
import { leads } from './resource.ts'

/**
 * Moves every lead of a stage, including leads that the caller may not see. Each lead is a separate
 * update with its own `lead.update` events.
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
