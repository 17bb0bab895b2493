// Moving leads that nobody named: those of a stage or pipeline that goes away (DOMAIN 15.1). Handed to pipelines by app.ts,
// because pipelines come before leads.
import type { Context } from '../../kernel/context.ts'
import { withoutVisibility } from '../../kernel/query/visibility.ts'
import { leads } from './resource.ts'

/** Moves every lead of a stage, seen by the caller or not, with one `lead.update` each. */
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
