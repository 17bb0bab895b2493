// The stage of a lead: loads the stages that stages.ts decides about, and the defaults of a new
// lead (DOMAIN 9.1, 9.2).
import type { Schema } from '../../contract/types.ts'
import { type Context, canCall, now } from '../../kernel/context.ts'
import type { Mend } from '../../kernel/history/restore.ts'
import { oncePerBatch, queryCached } from '../../kernel/query/statement-cache.ts'
import type { Writing } from '../../kernel/resource/define-resource.ts'
import { stamp } from '../../kernel/runtime/clock.ts'
import { fold } from '../../kernel/values/format.ts'
import { defaultPipelineId, pipelines } from '../pipelines/resource.ts'
import { chooseStage, enterStage, type LeadState } from './stages.ts'

/**
 * Returns the columns that a stage change sets; none when the body has neither a stage nor a
 * closing time nor a reason.
 */
export async function planStageChange({ ctx, current, found }: Writing<LeadState>, body: Schema<'LeadUpdate'>) {
  const { lead_pipeline_id, lead_pipeline_stage_id, closed_at, lost_reason } = body
  if (current && [lead_pipeline_id, lead_pipeline_stage_id, closed_at, lost_reason].every((each) => each === undefined))
    return {}
  // A closing time and a reason depend on the stage, so no other error is reported beside a refused
  // stage.
  if (found.isRefused('lead_pipeline_id') || found.isRefused('lead_pipeline_stage_id')) return {}
  const build = () => ctx.db.selectFrom('lead_pipeline_stages').select(['id', 'lead_pipeline_id', 'code', 'sort_order'])
  const name = 'leads: stages'
  const stages = await oncePerBatch(ctx, name, () => queryCached(ctx, { name, values: [], build }))
  const stage = chooseStage(stages, await defaultPipelineId(ctx), current, body, found)
  if (!stage) return {}
  return enterStage(stage, current, body, now(ctx), stamp(new Date(ctx.time.getTime() + 60_000)), found)
}

/** Returns the id of the source or type with this name, else the lowest id (DOMAIN 9.1). */
export async function defaultVocabularyId(
  ctx: Context,
  table: 'lead_sources' | 'lead_types',
  name: string,
): Promise<number> {
  const key = `leads: ${table}`
  const build = () => ctx.db.selectFrom(table).select(['id', 'name_key']).orderBy('id')
  const rows = await oncePerBatch(ctx, key, () => queryCached(ctx, { name: key, values: [], build }))
  const row = rows.find(({ name_key }) => name_key === fold(name)) ?? rows[0]
  if (!row) throw new Error(`${table} is empty; the last row cannot be deleted.`)
  return row.id
}

/**
 * Replaces references of a restored lead to deleted records. Source and type get the defaults of a
 * new lead. The stage becomes the one with the same code, else `new`, in the remaining or default
 * pipeline (DOMAIN 15.1). So the lead stays won or lost.
 */
export const mendLead: Mend = async (ctx, { row, snapshot, vanished }) => {
  const mended: Awaited<ReturnType<Mend>> = {}
  if (vanished.has('lead_source_id')) mended.lead_source_id = await defaultVocabularyId(ctx, 'lead_sources', 'Direct')
  if (vanished.has('lead_type_id')) mended.lead_type_id = await defaultVocabularyId(ctx, 'lead_types', 'New Business')
  const hasPipeline = !vanished.has('lead_pipeline_id')
  if (hasPipeline && !vanished.has('lead_pipeline_stage_id')) return mended
  const stages = ctx.db
    .selectFrom('lead_pipeline_stages as stage')
    .innerJoin('lead_pipelines as pipeline', 'pipeline.id', 'stage.lead_pipeline_id')
    .select(['stage.id', 'stage.lead_pipeline_id', 'stage.code'])
  const left = await (hasPipeline
    ? stages.where('pipeline.id', '=', Number(row.lead_pipeline_id))
    : stages.where('pipeline.is_default', '=', 1)
  ).execute()
  const { code } = snapshot.stage as Schema<'StageRef'>
  const stage = left.find((each) => each.code === code) ?? left.find((each) => each.code === 'new')
  if (!stage) throw new Error('Every pipeline has a stage new.')
  return {
    ...mended,
    lead_pipeline_id: stage.lead_pipeline_id,
    lead_pipeline_stage_id: stage.id,
    stage_changed_at: now(ctx),
  }
}

/**
 * Fills in `include=stage`. Stages have no path of their own, so they come from their pipelines.
 */
export async function expandStages(ctx: Context, replies: Schema<'Lead'>[]): Promise<void> {
  if (!canCall(ctx, pipelines.getOperation)) return
  const full = await pipelines.getMany(
    ctx,
    replies.map((reply) => reply.lead_pipeline_id),
  )
  for (const reply of replies) {
    reply.stage =
      full.get(reply.lead_pipeline_id)?.stages.find(({ id }) => id === reply.lead_pipeline_stage_id) ?? reply.stage
  }
}
