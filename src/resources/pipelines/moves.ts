// Where leads go whose stage is removed, and the reads that this needs.
import { cachedQuery } from '../../../db/cached-query.ts'
import type { Db } from '../../../db/store.ts'
import type { Schema } from '../../contract/types.ts'
import { all, type RecordChange } from '../../jobs/removals.ts'
import type { Context } from '../../kernel/context.ts'
import { ValidationErrors } from '../../kernel/errors.ts'
import { planStages, type StageRow } from './stages.ts'

declare module '../../kernel/context.ts' {
  interface SliceFunctions {
    /** Moves a lead to another stage, as an update with its own events. */
    moveUnseenLead: (ctx: Context, id: number, to: { stageId: number }) => Promise<void>
  }
}

export const loadStages = (ctx: Context, pipelineId: number): Promise<StageRow[]> =>
  ctx.db
    .selectFrom('lead_pipeline_stages')
    .select(['id', 'code', 'name', 'probability', 'sort_order'])
    .where('lead_pipeline_id', '=', pipelineId)
    .orderBy('sort_order')
    .execute()

const defaultPipelineFirst = cachedQuery((db: Db) =>
  db.selectFrom('lead_pipelines').select('id').orderBy('is_default', 'desc').limit(1),
)

/**
 * Returns the id of the default pipeline. A new lead gets this pipeline if its request contains no
 * pipeline.
 */
export async function defaultPipelineId(ctx: Context): Promise<number> {
  const [holder] = await defaultPipelineFirst(ctx.db)
  if (!holder) throw new Error('There is always a default pipeline.')
  return holder.id
}

/**
 * The stages whose leads move, each with the stage that gets its leads. No leads can enter these
 * stages while a job moves the leads.
 */
export type Moves = ReadonlyMap<number, number>

/** Pairs of a stage of a pipeline to delete and the stage that takes its place. */
export type Successors = readonly (readonly [stage: number, successor: number])[]

/** Returns the moves of an update that removes stages. */
export async function movesOfUpdate(ctx: Context, pipelineId: number, body: Schema<'PipelineUpdate'>): Promise<Moves> {
  const present = await loadStages(ctx, pipelineId)
  const { removed } = planStages(present, body.stages, new ValidationErrors())
  const target = body.move_leads_to_stage_id ?? present.find(({ code }) => code === 'new')?.id
  return new Map(removed.map(({ id }) => [id, target ?? id]))
}

/**
 * Returns the moves of a deletion: to the stages that `successors` names, and for other stages to
 * those of the default pipeline with the same code.
 */
export async function movesOfDeletion(ctx: Context, pipelineId: number, successors: Successors = []): Promise<Moves> {
  const named = new Map(successors)
  const targets = await loadStages(ctx, await defaultPipelineId(ctx))
  const fallback = targets.find(({ code }) => code === 'new')
  return new Map(
    (await loadStages(ctx, pipelineId)).map(({ id, code }) => [
      id,
      named.get(id) ?? targets.find((target) => target.code === code)?.id ?? fallback?.id ?? id,
    ]),
  )
}

/** Returns changes that move up to `limit` leads. */
export async function leadMoves(ctx: Context, moves: Moves, limit: number): Promise<RecordChange[]> {
  if (moves.size === 0) return []
  const rows = await ctx.db
    .selectFrom('leads')
    .select(['id', 'lead_pipeline_stage_id as stage'])
    .where('lead_pipeline_stage_id', 'in', [...moves.keys()])
    .orderBy('lead_pipeline_stage_id')
    .orderBy('id')
    .limit(limit)
    .execute()
  return rows.map(
    ({ id, stage }) =>
      (ctx) =>
        ctx.services.slices.moveUnseenLead(ctx, id, { stageId: moves.get(stage) ?? stage }),
  )
}

export async function moveAll(ctx: Context, moves: Moves): Promise<void> {
  for (const change of await leadMoves(ctx, moves, all)) await change(ctx)
}
