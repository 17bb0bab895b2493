// Pipelines and their stages. Exactly one pipeline is the default. When a stage or
// pipeline is removed, its leads move to another stage.

import type { Schema } from '../../contract/types.ts'
import { defineRemoval, removalOf } from '../../jobs/removals.ts'
import { type Context, now } from '../../kernel/context.ts'
import { isProtected, ValidationErrors } from '../../kernel/errors.ts'
import type { Handler, Handlers } from '../../kernel/handler.ts'
import { runDeleteHooks } from '../../kernel/history/delete-hooks.ts'
import { refuseNamed } from '../../kernel/history/stored-references.ts'
import { flagField, textField, valueField } from '../../kernel/query/filter.ts'
import { defineResource, type Writing } from '../../kernel/resource/define-resource.ts'
import { upsertHandler } from '../../kernel/resource/external-ids.ts'
import { nameKey } from '../../kernel/resource/named-references.ts'
import { uniqueName } from '../../kernel/resource/references.ts'
import { replaceInRules } from '../../kernel/resource/replace-named.ts'
import { currencyText } from '../../kernel/values/format.ts'
import { fromSum } from '../../kernel/values/money.ts'
import { textKey } from '../../kernel/values/names.ts'
import { transaction, write } from '../../kernel/write/write.ts'
import { deferredReply } from '../system/jobs.ts'
import { leadTotals } from './lead-totals.ts'
import { leadMoves, loadStages, type Moves, moveAll, movesOfDeletion, movesOfUpdate, type Successors } from './moves.ts'
import { isFixedStage, planStages, type StagePlan } from './stages.ts'

/**
 * Returns the stages of each pipeline in order, with the totals of the leads visible to the caller.
 * Runs two queries for any number of pipelines.
 */
async function presentStages(ctx: Context, pipelineIds: readonly number[]): Promise<Map<number, Schema<'Stage'>[]>> {
  const rows = await ctx.db
    .selectFrom('lead_pipeline_stages')
    .selectAll()
    .where('lead_pipeline_id', 'in', [...pipelineIds])
    .orderBy('sort_order')
    .execute()
  const sums = await leadTotals(ctx)
    .where(
      'stage_id',
      'in',
      rows.map(({ id }) => id),
    )
    .execute()
  const byStage = new Map(sums.map((each) => [each.stage, each]))
  const found = new Map<number, Schema<'Stage'>[]>(pipelineIds.map((id) => [id, []]))
  for (const row of rows) {
    const inside = byStage.get(row.id)
    const leadValue = inside ? fromSum(inside.sum) : 0
    found.get(row.lead_pipeline_id)?.push({
      id: row.id,
      code: row.code,
      name: row.name,
      probability: row.probability,
      sort_order: row.sort_order,
      is_user_defined: row.is_user_defined === 1,
      leads_count: Number(inside?.count ?? 0),
      lead_value: leadValue,
      formatted_lead_value: currencyText(leadValue, ctx.services.config),
      created_at: row.created_at,
      updated_at: row.updated_at,
    })
  }
  return found
}

async function saveStages(
  ctx: Context,
  pipelineId: number,
  plan: StagePlan,
  body: Schema<'PipelineUpdate'>,
): Promise<void> {
  const at = now(ctx)
  const present = new Map((await loadStages(ctx, pipelineId)).map((stage) => [stage.id, stage]))
  await moveAll(ctx, await movesOfUpdate(ctx, pipelineId, body))
  for (const { id } of plan.removed) {
    await runDeleteHooks(ctx, 'stages', id)
    await ctx.db.deleteFrom('lead_pipeline_stages').where('id', '=', id).execute()
  }
  // Stage names are unique within a pipeline, and a request may swap the names of two stages. To
  // avoid a conflict between two updates, all renamed stages first get a temporary name_key.
  for (const { id, name } of plan.stages) {
    if (id !== null && present.get(id)?.name !== name) {
      await ctx.db
        .updateTable('lead_pipeline_stages')
        .set({ name_key: `\u0001${id}` })
        .where('id', '=', id)
        .execute()
    }
  }
  for (const { id, code, name, probability, sort_order } of plan.stages) {
    const columns = { name, name_key: textKey(name), probability, sort_order }
    const was = id === null ? undefined : present.get(id)
    if (id === null) {
      await ctx.db
        .insertInto('lead_pipeline_stages')
        .values({
          ...columns,
          lead_pipeline_id: pipelineId,
          code,
          is_user_defined: isFixedStage(code) ? 0 : 1,
          created_at: at,
          updated_at: at,
        })
        .execute()
    } else if (was?.name !== name || was.probability !== probability || was.sort_order !== sort_order) {
      await ctx.db
        .updateTable('lead_pipeline_stages')
        .set({ ...columns, updated_at: at })
        .where('id', '=', id)
        .execute()
    }
  }
}

function refuseFixed(plan: StagePlan): void {
  const fixed = plan.removed.find(({ code }) => isFixedStage(code))
  if (fixed) throw isProtected(`The stage ${fixed.code} exists in every pipeline and cannot be removed.`)
}

function refuseDefault(row: { is_default: number }): void {
  if (row.is_default === 1)
    throw isProtected('The default pipeline cannot be deleted; make another one the default first.')
}

async function refuseNamedStages(ctx: Context, stages: readonly { id: number; name: string }[]): Promise<void> {
  for (const { id, name } of stages)
    await refuseNamed(ctx, { entity: 'stages', ids: [id], called: `The stage ${name}` })
}

/** Checks the rules for a body, and returns the columns of the name and the plan of the stages. */
async function planBody(
  body: Schema<'PipelineUpdate'>,
  writing: Writing<{ id: number; name: string; is_default: number }>,
) {
  const { ctx, current, errors } = writing
  const named = await uniqueName(writing, { table: 'lead_pipelines', entity: 'pipelines', noun: 'pipeline' }, body.name)
  const plan = planStages(current ? await loadStages(ctx, current.id) : [], body.stages, errors)
  const target = body.move_leads_to_stage_id
  if (target !== undefined && !plan.stages.some(({ id }) => id === target))
    errors.invalid('move_leads_to_stage_id', 'Must be one of the remaining stages.')
  errors.throwIfAny()
  refuseFixed(plan)
  await refuseNamedStages(ctx, plan.removed)
  if (body.is_default === false && current?.is_default === 1)
    throw isProtected('One pipeline must be the default; make another one the default instead.')
  return { named, plan }
}

export const pipelines = defineResource({
  noun: 'pipeline',
  table: 'lead_pipelines',
  externalIds: { table: 'pipeline_external_ids', column: 'pipeline_id' },
  namedBy: { keys: { name: nameKey }, isShown: true },
  operations: {
    list: 'listPipelines',
    get: 'getPipeline',
    create: 'createPipeline',
    update: 'updatePipeline',
    delete: 'deletePipeline',
  },
  rows: (_ctx, db) => db.selectFrom('lead_pipelines').selectAll('lead_pipelines'),
  sort: { id: 'lead_pipelines.id', name: 'lead_pipelines.name_key', created_at: 'lead_pipelines.created_at' },
  filter: {
    name: textField('lead_pipelines.name_key'),
    is_default: flagField('lead_pipelines.is_default'),
    rotten_days: valueField('lead_pipelines.rotten_days'),
  },
  search: [{ key: 'lead_pipelines.name_key' }],
  withoutColumn: { stages: 'rows', move_leads_to_stage_id: 'this request' },
  toRow: async (body: Schema<'PipelineUpdate'>, writing) => {
    const { ctx, current } = writing
    const { named, plan } = await planBody(body, writing)
    if (body.is_default && current?.is_default !== 1) await clearDefault(ctx)
    return {
      columns: {
        ...named,
        rotten_days: body.rotten_days,
        ...(body.is_default !== undefined && { is_default: body.is_default ? 1 : 0 }),
      },
      save: (ctx, id) => saveStages(ctx, id, plan, body),
    }
  },
  toReply: (row): Schema<'Pipeline'> => ({
    id: row.id,
    name: row.name,
    is_default: row.is_default === 1,
    rotten_days: row.rotten_days,
    // `loadRelated` fills in the stages and the count.
    leads_count: 0,
    stages: [],
    external_ids: {},
    created_at: row.created_at,
    updated_at: row.updated_at,
    version: row.version,
  }),
  loadRelated: async (ctx, replies) => {
    const stages = await presentStages(
      ctx,
      replies.map(({ id }) => id),
    )
    for (const reply of replies) {
      reply.stages = stages.get(reply.id) ?? []
      reply.leads_count = reply.stages.reduce((total, { leads_count }) => total + leads_count, 0)
    }
  },
  // Removes the stage totals when the reader of the event has limited visibility, because the
  // totals include all leads that the writer saw.
  asRead: (ctx, snapshot) =>
    (ctx.user?.visibleOwners ?? null) === null ? snapshot : { ...snapshot, stages: withoutSums(snapshot.stages) },
  beforeDelete: async (ctx, row) => {
    refuseDefault(row)
    await refuseNamedStages(ctx, await loadStages(ctx, row.id))
    await moveAll(ctx, await movesOfDeletion(ctx, row.id))
  },
})

function withoutSums(stages: unknown): unknown {
  if (!Array.isArray(stages)) return stages
  return (stages as Schema<'Stage'>[]).map(
    ({ leads_count: _count, lead_value: _value, formatted_lead_value: _text, ...stage }) => stage,
  )
}

/** Clears `is_default` of the current default pipeline, as a separate write with its own events. */
async function clearDefault(ctx: Context): Promise<void> {
  const holder = await ctx.db.selectFrom('lead_pipelines').select('id').where('is_default', '=', 1).executeTakeFirst()
  if (!holder) return
  const before = await pipelines.get(ctx, holder.id)
  await write(
    ctx,
    'settings.pipeline.update',
    { entity: 'pipelines', input: { is_default: false }, id: holder.id, before },
    async (ctx) => {
      await ctx.db.updateTable('lead_pipelines').set({ is_default: 0 }).where('id', '=', holder.id).execute()
      await pipelines.touch(ctx, holder.id)
      return { id: holder.id, entity: await pipelines.get(ctx, holder.id) }
    },
  )
}

/** A change of a pipeline that removes stages. Without a body, the whole pipeline is deleted. */
interface StageRemoval {
  body?: Schema<'PipelineUpdate'>
  successors?: Successors
}

const movesOf = (ctx: Context, id: number, { body, successors }: StageRemoval): Promise<Moves> =>
  body ? movesOfUpdate(ctx, id, body) : movesOfDeletion(ctx, id, successors)

/** Moves many leads out of stages and then removes these stages or their pipeline. */
export const pipelineRemoval = defineRemoval<StageRemoval>({
  kind: 'pipelines.remove',
  entity: 'pipelines',
  noun: 'pipeline',
  operation: ({ body }) => (body ? 'updatePipeline' : 'deletePipeline'),
  async count(ctx, id, request) {
    const { leads } = await ctx.db
      .selectFrom('leads')
      .select(({ fn }) => fn.countAll<number>().as('leads'))
      .where('lead_pipeline_stage_id', 'in', [...(await movesOf(ctx, id, request)).keys()])
      .executeTakeFirstOrThrow()
    return Number(leads)
  },
  pending: async (ctx, id, request, limit) => leadMoves(ctx, await movesOf(ctx, id, request), limit),
  finish: (ctx, id, { body }) => (body ? pipelines.update(ctx, id, body) : pipelines.remove(ctx, id)),
})

/** Returns whether a job moves the leads of the stage to another stage. */
export async function isStageLeaving(ctx: Context, pipelineId: number, stageId: number): Promise<boolean> {
  const request = await removalOf<StageRemoval>(ctx, 'pipelines', pipelineId)
  return request !== undefined && (await movesOf(ctx, pipelineId, request)).has(stageId)
}

const currentPipeline = async (ctx: Context, id: number) => {
  await pipelines.assertVisible(ctx, id)
  const columns = ['id', 'name', 'is_default'] as const
  return ctx.db.selectFrom('lead_pipelines').select(columns).where('id', '=', id).executeTakeFirstOrThrow()
}

const updatePipeline: Handler<'updatePipeline'> = (ctx, input) =>
  transaction(ctx, async (ctx) => {
    const { id } = input.params
    const current = await currentPipeline(ctx, id)
    await planBody(input.body, { ctx, current, errors: new ValidationErrors() })
    const jobId = await pipelineRemoval.start(ctx, id, { body: input.body })
    if (jobId === null) return pipelines.handlers.updatePipeline(ctx, input)
    return deferredReply(ctx, jobId, 'The leads move to another stage; then the pipeline changes.')
  })

const upsertPipeline: Handler<'upsertPipeline'> = upsertHandler(pipelines, {
  create: 'createPipeline',
  update: 'updatePipeline',
  creating: pipelines.handlers.createPipeline,
  updating: updatePipeline,
})

/** Reads `stage_successors`. Throws 422 when a pair names a wrong stage. */
async function readSuccessors(ctx: Context, pipelineId: number, pairs: readonly string[]): Promise<Successors> {
  const own = new Set((await loadStages(ctx, pipelineId)).map(({ id }) => id))
  const stages = await ctx.db.selectFrom('lead_pipeline_stages').select(['id', 'lead_pipeline_id']).execute()
  const pipelineOf = new Map(stages.map((stage) => [stage.id, stage.lead_pipeline_id]))
  const errors = new ValidationErrors()
  const refuse = (text: string): void => errors.invalid('query.stage_successors', text)
  const successors = new Map<number, number>()
  for (const pair of pairs) {
    const [stage = 0, successor = 0] = pair.split(':').map(Number)
    const target = pipelineOf.get(successor)
    if (!own.has(stage)) refuse(`The pipeline ${pipelineId} has no stage ${stage}.`)
    else if (successors.has(stage)) refuse(`The stage ${stage} has two successors.`)
    else if (target === undefined || own.has(successor)) refuse(`No other pipeline has a stage ${successor}.`)
    else if (await isStageLeaving(ctx, target, successor)) refuse(`The stage ${successor} is being removed.`)
    successors.set(stage, successor)
  }
  errors.throwIfAny()
  return [...successors]
}

const deletePipeline: Handler<'deletePipeline'> = (ctx, input) =>
  transaction(ctx, async (ctx) => {
    const { id } = input.params
    const { replace_with, stage_successors = [] } = input.query
    refuseDefault(await currentPipeline(ctx, id))
    const successors = await readSuccessors(ctx, id, stage_successors)
    const jobId = await pipelineRemoval.startDeletion(ctx, id, { successors }, replace_with)
    for (const [stage, successor] of successors)
      await replaceInRules(ctx, { entity: 'stages', id: stage }, successor, 'query.stage_successors')
    if (jobId === null) {
      // The deletion itself moves leads only by the codes of their stages.
      if (successors.length > 0) await moveAll({ ...ctx, ifMatch: null }, await movesOfDeletion(ctx, id, successors))
      return pipelines.handlers.deletePipeline(ctx, input)
    }
    await refuseNamedStages(ctx, await loadStages(ctx, id))
    return deferredReply(ctx, jobId, 'The leads move to other stages; then the pipeline is deleted.')
  })

export const handlers = {
  updatePipeline,
  upsertPipeline,
  deletePipeline,
  listPipelineStages: async (ctx, { params }) => ({ data: (await pipelines.get(ctx, params.id)).stages }),
} satisfies Partial<Handlers>
