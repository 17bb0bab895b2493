// The stage that a body names by its name or code instead of its id. Pipelines may have stages with
// the same name, so a stage of the pipeline in the body, or of the stored lead's pipeline, comes
// first.
import { operations } from '../../contract/operations.gen.ts'
import type { Context } from '../../kernel/context.ts'
import { type FindNamed, notOne } from '../../kernel/resource/named-references.ts'
import { defaultPipelineId } from '../pipelines/moves.ts'
import { stagesNamed, stagesWithCode } from '../pipelines/stages.ts'
import { leads } from './resource.ts'

export const findNamedStage: FindNamed = async (ctx, { key: sentKey, text }, { path, params, body, beside }) => {
  const key = sentKey === 'code' ? 'code' : 'name'
  const stages = await ctx.db
    .selectFrom('lead_pipeline_stages')
    .select(['id', 'code', 'name', 'lead_pipeline_id'])
    .orderBy('lead_pipeline_id')
    .orderBy('sort_order')
    .execute()
  const sent = beside.lead_pipeline_id
  // The pipeline itself has an error if it is not known.
  const pipeline =
    typeof sent === 'number' ? sent : await usualPipeline(ctx, path, params.id ?? (body as { ids?: unknown }).ids)
  const own = stages.filter((each) => each.lead_pipeline_id === pipeline)
  const matching = key === 'code' ? stagesWithCode : stagesNamed
  const inOwn = matching(own, text)
  const found = inOwn.length > 0 || typeof sent === 'number' ? inOwn : matching(stages, text)
  const known = (pipeline === null ? stages : own).map((each) => each[key])
  return found.length === 1 && found[0]
    ? found[0].id
    : notOne(
        'stage',
        key,
        text,
        found.map(({ id }) => id),
        [...new Set(known)],
      )
}

/**
 * Returns the pipeline of the leads that the request names, or of a new lead. Returns null when the
 * leads have several pipelines.
 */
async function usualPipeline(ctx: Context, path: string, sent: unknown): Promise<number | null> {
  if (path === operations.createLead.path) return defaultPipelineId(ctx)
  if (!path.startsWith(`${operations.createLead.path}/`)) return null
  const ids = (Array.isArray(sent) ? sent : [typeof sent === 'string' ? Number(sent) : sent]).filter(
    (id): id is number => typeof id === 'number' && Number.isSafeInteger(id),
  )
  const visible = await leads.visibleIds(ctx, ids.slice(0, maxLeads))
  if (visible.size === 0) return null
  const pipelines = await ctx.db
    .selectFrom('leads')
    .select('lead_pipeline_id')
    .distinct()
    .where('id', 'in', [...visible])
    .limit(2)
    .execute()
  return pipelines.length === 1 ? (pipelines[0]?.lead_pipeline_id ?? null) : null
}

/** The body is not validated yet. A mass update takes this many leads. */
const maxLeads = 100
