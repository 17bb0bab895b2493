// Tests a workflow on a current record: reports which conditions are true and what the actions
// would do. Changes nothing and sends nothing.
import type { Schema } from '../../contract/types.ts'
import { type Context, canCall } from '../../kernel/context.ts'
import { invalid, Problem } from '../../kernel/errors.ts'
import type { Handler } from '../../kernel/handler.ts'
import type { FindEntity } from '../../kernel/resource/typed-references.ts'
import type { Snapshot } from '../../kernel/write/events.ts'
import { inSteps } from '../../kernel/write/idempotency.ts'
import { type ActionSubject, actionRefused, workflowResources } from './action-subject.ts'
import { comparableFields } from './comparable-fields.ts'
import { refuseDeadExclusions, UnanswerableCondition } from './conditions.ts'
import { effects } from './effects.ts'
import { evaluate } from './evaluate.ts'
import { workflows } from './resource.ts'
import { type ActingContext, actAsChanger, hiddenReason, requireAction, requireReading } from './rights.ts'

export const testWorkflow: Handler<'testWorkflow'> = inSteps(async (ctx, { params, body: { entity_id: id } }) => {
  const workflow = await workflows.get(ctx, params.id)
  const { noun, getOperation: shows, getMany: many } = workflowResources[workflow.entity_type]
  const record = canCall(ctx, shows) ? ((await many(ctx, [id])).get(id) as Snapshot | undefined) : undefined
  // A record that the caller may not read is reported as missing, so that the caller does not learn
  // that it exists.
  if (!record) throw invalid({ entity_id: [`No ${noun} has id ${id}.`] })
  const isDeletion = workflow.event.endsWith('.delete.before')
  const about = { entity: workflow.entity_type, id, record, isGone: isDeletion, isDeletion }
  const acting = await actingOf(ctx, workflow, id)
  const answer = typeof acting === 'string' ? refused(workflow, acting) : await answerOf(ctx, workflow, record)
  return { data: { ...answer, actions: await actionsOf(ctx, workflow, about, acting) } }
})

/** Returns the type of the records that the workflow in the path is about. */
export const entityOfTest: FindEntity = async ({ db }, { params }) => {
  // The path is not validated yet.
  const id = Number(params.id)
  if (!Number.isSafeInteger(id)) return null
  const found = await db.selectFrom('workflows').select('entity_type').where('id', '=', id).executeTakeFirst()
  return found?.entity_type ?? null
}

/**
 * Returns the context of the workflow's user, or the reason why the workflow would not run. The
 * context serves only to check rights: the reply is built from what the caller sees.
 */
async function actingOf(ctx: Context, { changed_by: user, entity_type }: Schema<'Workflow'>, id: number) {
  try {
    const acting = await actAsChanger(ctx, user?.id ?? null)
    requireReading(acting, entity_type)
    return (await hiddenReason(acting, entity_type, id, null)) ?? acting
  } catch (error) {
    if (!(error instanceof Problem) || error.status >= 500) throw error
    return error.message
  }
}

const refused = ({ conditions }: Schema<'Workflow'>, reason: string) => ({
  matches: false,
  reason,
  matched_conditions: [],
  failed_conditions: conditions,
})

async function answerOf(ctx: Context, workflow: Schema<'Workflow'>, record: Snapshot) {
  const { conditions, entity_type: entity } = workflow
  const setting = {
    subjects: await comparableFields(ctx, entity),
    at: ctx.time,
    zone: ctx.services.config.timezone,
    before: null,
  }
  try {
    await refuseDeadExclusions(ctx, conditions, setting.subjects)
    const { matches, held } = evaluate(workflow, record, setting)
    return {
      matches,
      reason: matches ? null : 'The record does not meet the conditions.',
      matched_conditions: conditions.filter((_each, index) => held.includes(index)),
      failed_conditions: conditions.filter((_each, index) => !held.includes(index)),
    }
  } catch (error) {
    if (!(error instanceof UnanswerableCondition)) throw error
    return refused(workflow, error.message)
  }
}

async function actionsOf(
  ctx: Context,
  { actions }: Schema<'Workflow'>,
  about: ActionSubject,
  acting: ActingContext | string,
): Promise<Schema<'WorkflowTestAction'>[]> {
  const described: Schema<'WorkflowTestAction'>[] = []
  for (const action of actions) described.push({ id: action.id, would: await sentenceOf(ctx, action, about, acting) })
  return described
}

async function sentenceOf(
  ctx: Context,
  action: Schema<'WorkflowAction'>,
  about: ActionSubject,
  acting: ActingContext | string,
): Promise<string> {
  try {
    if (typeof acting === 'string') throw actionRefused(acting)
    requireAction(acting, action.id, about.entity)
    return await effects[action.id].describe(ctx, about, action)
  } catch (error) {
    if (!(error instanceof Problem) || error.status >= 500) throw error
    const [first] = Object.values(error.more.errors ?? {}).flat()
    return `Fail: ${first ?? error.message}`
  }
}
