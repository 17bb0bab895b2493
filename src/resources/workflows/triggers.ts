// Which events make which workflows run (DOMAIN 18.1, 18.3): a reader of the event log that writes a run for each and enqueues it,
// and the guard against workflows that set each other off for ever.
import { enqueue } from '../../jobs/queue.ts'
import type { EventReader, StoredEvent } from '../../jobs/readers.ts'
import { type Context, now } from '../../kernel/context.ts'
import { runWorkflow } from './run.ts'
import { triggerOf } from './snapshots.ts'

/** As many workflows may follow from each other, the first one included. */
const deepest = 5

interface Run {
  id: number
  workflow_id: number
  entity_type: string
  entity_id: number
  depth: number
  parent_run_id: number | null
}

export const workflowTriggers: EventReader = {
  name: 'workflows',
  isIdle: async ({ db }) =>
    (await db.selectFrom('workflows').select('id').where('is_active', '=', 1).limit(1).executeTakeFirst()) ===
    undefined,
  async take(ctx, events) {
    const triggers = [...new Set(events.map(({ name }) => triggerOf(name)))]
    const workflows = await ctx.db
      .selectFrom('workflows')
      .select(['id', 'name', 'event', 'entity_type', 'created_at'])
      .where('is_active', '=', 1)
      .where('event', 'in', triggers)
      .orderBy('sort_order')
      .orderBy('id')
      .execute()
    if (workflows.length === 0) return
    for (const event of events) {
      const { entity_id: entityId } = event
      // A workflow knows nothing of what was before it.
      const own = workflows.filter(
        (each) =>
          each.event === triggerOf(event.name) &&
          each.entity_type === event.entity_type &&
          each.created_at <= event.created_at,
      )
      if (own.length === 0 || entityId === null) continue
      const chain = await chainOf(ctx, event)
      for (const workflow of own) await plan(ctx, workflow, { ...event, entity_id: entityId }, chain)
    }
  },
}

async function plan(
  ctx: Context,
  workflow: { id: number; name: string },
  event: Pick<StoredEvent, 'id' | 'name' | 'entity_type'> & { entity_id: number },
  chain: readonly Run[],
): Promise<void> {
  const at = now(ctx)
  const depth = (chain[0]?.depth ?? 0) + 1
  const reason = circleIn(chain, depth, workflow, event)
  const run = await ctx.db
    .insertInto('workflow_runs')
    .values({
      workflow_id: workflow.id,
      event_id: event.id,
      event: event.name,
      entity_type: event.entity_type,
      entity_id: event.entity_id,
      parent_run_id: chain[0]?.id ?? null,
      depth,
      state: reason === null ? 'pending' : 'skipped',
      reason,
      finished_at: reason === null ? null : at,
      created_at: at,
      updated_at: at,
    })
    .onConflict((conflict) => conflict.columns(['workflow_id', 'event_id']).doNothing())
    .returning('id')
    .executeTakeFirst()
  if (!run || reason !== null) return
  await enqueue(ctx, runWorkflow, { run_id: run.id }, { sequence: `workflow:${event.entity_type}:${event.entity_id}` })
}

/** Why a workflow must not run again behind these; null when it may. */
function circleIn(
  chain: readonly Run[],
  depth: number,
  workflow: { id: number; name: string },
  event: { entity_type: string; entity_id: number },
): string | null {
  const earlier = chain.find(
    (run) =>
      run.workflow_id === workflow.id && run.entity_type === event.entity_type && run.entity_id === event.entity_id,
  )
  if (earlier) return `It would run in a circle: its own run ${earlier.id} on this record led to this event.`
  return depth > deepest ? `More than ${deepest} workflows would follow from each other.` : null
}

/** The runs that led to an event, the last one first. */
async function chainOf({ db }: Context, { workflow_run_id: cause }: StoredEvent): Promise<Run[]> {
  const chain: Run[] = []
  let next = cause
  while (next !== null && chain.length <= deepest) {
    const run = await db
      .selectFrom('workflow_runs')
      .select(['id', 'workflow_id', 'entity_type', 'entity_id', 'depth', 'parent_run_id'])
      .where('id', '=', next)
      .executeTakeFirst()
    if (run) chain.push(run)
    next = run?.parent_run_id ?? null
  }
  return chain
}
