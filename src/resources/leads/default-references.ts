// The records that a lead refers to if nothing else is known: the source and type of a new lead,
// and those that take the place of deleted ones in a restored lead.
import { cachedQuery } from '../../../db/cached-query.ts'
import type { Db } from '../../../db/store.ts'
import type { Schema } from '../../contract/types.ts'
import { type Context, now } from '../../kernel/context.ts'
import type { OnRestore } from '../../kernel/resource/definition.ts'
import { textKey } from '../../kernel/values/names.ts'

const vocabularies = {
  lead_sources: cachedQuery((db: Db) => db.selectFrom('lead_sources').select(['id', 'name_key']).orderBy('id')),
  lead_types: cachedQuery((db: Db) => db.selectFrom('lead_types').select(['id', 'name_key']).orderBy('id')),
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
  const rows = await vocabularies[table](ctx.db)
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
