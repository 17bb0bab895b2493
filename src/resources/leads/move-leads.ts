// Moves a lead whose stage or pipeline is deleted to another stage. The pipelines
// resource cannot import leads, so app.ts passes this function to it.
import type { Context } from '../../kernel/context.ts'
import { withoutVisibility } from '../../kernel/query/visibility.ts'
import { leads } from './resource.ts'

/**
 * Moves a lead, even one that the caller may not see, as an update with its own `lead.update`
 * events.
 */
export const moveLead = async (ctx: Context, id: number, to: { stageId: number }): Promise<void> =>
  void (await leads.update(withoutVisibility(ctx), id, { lead_pipeline_stage_id: to.stageId }))
