// Plans stage changes of leads. Loads the stages from which stages.ts chooses,
// finds the default source and type of a new lead, and repairs restored leads.
import type { Schema } from '../../contract/types.ts'
import { isBeingRemoved } from '../../jobs/removals.ts'
import { type Context, canCall, now } from '../../kernel/context.ts'
import { oncePerBatch, queryCached } from '../../kernel/query/statement-cache.ts'
import type { Writing } from '../../kernel/resource/define-resource.ts'
import type { OnRestore } from '../../kernel/resource/definition.ts'
import { stamp } from '../../kernel/runtime/clock.ts'
import { textKey } from '../../kernel/values/names.ts'
import { defaultPipelineId, isStageLeaving, pipelines } from '../pipelines/resource.ts'
import { chooseStage, enterStage, type LeadState } from './stages.ts'

/**
 * Returns the columns that a stage change sets. Returns no columns for an update that sends none of
 * pipeline, stage, closing time and lost reason.
 */
export async function planStageChange({ ctx, current, errors }: Writing<LeadState>, body: Schema<'LeadUpdate'>) {
  const { lead_pipeline_id, lead_pipeline_stage_id, closed_at, lost_reason } = body
  if (current && [lead_pipeline_id, lead_pipeline_stage_id, closed_at, lost_reason].every((each) => each === undefined))
    return {}
  // Closing time and lost reason are checked against the stage, so these checks are skipped when
  // the stage or pipeline is refused.
  if (errors.isRefused('lead_pipeline_id') || errors.isRefused('lead_pipeline_stage_id')) return {}
  const build = () =>
    ctx.db
      .selectFrom('lead_pipeline_stages')
      .select(['id', 'lead_pipeline_id', 'code', 'sort_order'])
      .select(isBeingRemoved('pipelines', 'lead_pipeline_id').as('is_changing'))
  const name = 'leads: stages'
  const stages = await oncePerBatch(ctx, name, () => queryCached(ctx, { name, values: [], build }))
  const stage = chooseStage(stages, await defaultPipelineId(ctx), current, body, errors)
  if (!stage) return {}
  const isEntering = current?.lead_pipeline_stage_id !== stage.id
  if (isEntering && stage.is_changing && (await isStageLeaving(ctx, stage.lead_pipeline_id, stage.id))) {
    const field = lead_pipeline_stage_id === undefined ? 'lead_pipeline_id' : 'lead_pipeline_stage_id'
    errors.invalid(field, `The stage ${stage.id} is being removed.`)
  }
  return enterStage(stage, current, body, now(ctx), stamp(new Date(ctx.time.getTime() + 60_000)), errors)
}

/**
 * Returns the id of the lead source or type with this name. If none has the name, returns the
 * lowest id.
 */
export async function defaultVocabularyId(
  ctx: Context,
  table: 'lead_sources' | 'lead_types',
  name: string,
): Promise<number> {
  const key = `leads: ${table}`
  const build = () => ctx.db.selectFrom(table).select(['id', 'name_key']).orderBy('id')
  const rows = await oncePerBatch(ctx, key, () => queryCached(ctx, { name: key, values: [], build }))
  const row = rows.find(({ name_key }) => name_key === textKey(name)) ?? rows[0]
  if (!row) throw new Error(`${table} is empty; the last row cannot be deleted.`)
  return row.id
}

/**
 * Replaces references to deleted records in a restored lead. Source and type become the defaults of
 * a new lead. The new stage has the code of the old stage, so that the lead stays won or lost, or
 * else the code `new`. A deleted pipeline is replaced with the default pipeline.
 */
export const repairLead: OnRestore = async (ctx, { row, snapshot, vanished }) => {
  const repaired: Awaited<ReturnType<OnRestore>> = {}
  if (vanished.has('lead_source_id')) repaired.lead_source_id = await defaultVocabularyId(ctx, 'lead_sources', 'Direct')
  if (vanished.has('lead_type_id')) repaired.lead_type_id = await defaultVocabularyId(ctx, 'lead_types', 'New Business')
  const hasPipeline = !vanished.has('lead_pipeline_id')
  if (hasPipeline && !vanished.has('lead_pipeline_stage_id')) return repaired
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
    ...repaired,
    lead_pipeline_id: stage.lead_pipeline_id,
    lead_pipeline_stage_id: stage.id,
    stage_changed_at: now(ctx),
  }
}

/**
 * Replaces each stage reference with the complete stage, for `include=stage`. No operation returns
 * a single stage, so the stages are loaded with their pipelines.
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
