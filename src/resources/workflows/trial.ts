// A workflow tried on a record as it is now: which conditions hold, and what its actions would do. Nothing is changed or sent.
import type { Schema } from '../../contract/types.ts'
import { type Context, may } from '../../kernel/context.ts'
import { invalid, Problem } from '../../kernel/errors.ts'
import type { Snapshot } from '../../kernel/events.ts'
import type { Handler } from '../../kernel/handler.ts'
import { effects } from './effects.ts'
import { evaluate, Unanswerable } from './evaluate.ts'
import { type Occasion, resources } from './occasion.ts'
import { workflows } from './resource.ts'
import { subjectsOf } from './subjects.ts'

export const testWorkflow: Handler<'testWorkflow'> = async (ctx, { params, body: { entity_id: id } }) => {
  const workflow = await workflows.get(ctx, params.id)
  const { noun, shows, many } = resources[workflow.entity_type]
  const record = may(ctx, shows) ? ((await many(ctx, [id])).get(id) as Snapshot | undefined) : undefined
  // A record the caller may not read is as if it were not there.
  if (!record) throw invalid({ entity_id: [`No ${noun} has id ${id}.`] })
  const about = { entity: workflow.entity_type, id, record, isGone: workflow.event.endsWith('.delete.before') }
  return { data: { ...(await answerOf(ctx, workflow, record)), actions: await actionsOf(ctx, workflow, about) } }
}

async function answerOf(ctx: Context, workflow: Schema<'Workflow'>, record: Snapshot) {
  const { conditions, entity_type: entity } = workflow
  const setting = { subjects: await subjectsOf(ctx, entity), at: ctx.time, zone: ctx.services.config.timezone }
  try {
    const { matches, held } = evaluate(workflow, record, setting)
    return {
      matches,
      reason: matches ? null : 'The record does not meet the conditions.',
      matched_conditions: conditions.filter((_each, index) => held.includes(index)),
      failed_conditions: conditions.filter((_each, index) => !held.includes(index)),
    }
  } catch (error) {
    if (!(error instanceof Unanswerable)) throw error
    return { matches: false, reason: error.message, matched_conditions: [], failed_conditions: conditions }
  }
}

async function actionsOf(
  ctx: Context,
  { actions }: Schema<'Workflow'>,
  about: Occasion,
): Promise<Schema<'WorkflowTestAction'>[]> {
  const told: Schema<'WorkflowTestAction'>[] = []
  for (const action of actions) told.push({ id: action.id, would: await sentenceOf(ctx, action, about) })
  return told
}

async function sentenceOf(ctx: Context, action: Schema<'WorkflowAction'>, about: Occasion): Promise<string> {
  try {
    return await effects[action.id].would(ctx, about, action)
  } catch (error) {
    if (!(error instanceof Problem) || error.status >= 500) throw error
    const [first] = Object.values(error.more.errors ?? {}).flat()
    return `Fail: ${first ?? error.message}`
  }
}
