// The event consumer that starts workflow runs. It stores and enqueues one run
// for each event and matching workflow. It also stops endless chains of workflows that trigger each
// other.

import { sql } from 'kysely'
import { type EventConsumer, type EventSummary, takeWithinLimit } from '../../jobs/event-consumers.ts'
import { enqueueAll } from '../../jobs/queue.ts'
import { type Context, now } from '../../kernel/context.ts'
import { runWorkflow } from './run.ts'
import { triggerOfEvent } from './snapshots.ts'

/**
 * The maximum number of workflows in a chain in which each triggers the next, including the first.
 */
const maxChainLength = 5

interface Run {
  id: number
  workflow_id: number
  entity_type: string
  entity_id: number
  depth: number
  parent_run_id: number | null
}

export const workflowTriggers: EventConsumer = {
  name: 'workflows',
  entityTypes: async ({ db }) => {
    const active = db.selectFrom('workflows').select('entity_type').distinct().where('is_active', '=', 1)
    return (await active.execute()).map((workflow) => workflow.entity_type)
  },
  async consume(ctx, events) {
    const triggers = [...new Set(events.map(({ name }) => triggerOfEvent(name)))]
    const workflows = await ctx.db
      .selectFrom('workflows')
      .select(['id', 'name', 'event', 'entity_type', 'events_after', 'run_on_restore'])
      .where('is_active', '=', 1)
      // timed-runs.ts starts the others itself, for the workflow whose time it is.
      .where('timing', 'is', null)
      .where(sql.ref('event'), 'in', triggers)
      .orderBy('sort_order')
      .orderBy('id')
      .execute()
    const { asked, last } = takeWithinLimit(events, (event) =>
      // `events_after` excludes events that occurred before the workflow was created, or while it
      // was off.
      workflows.flatMap((workflow): Asked[] =>
        event.entity_id !== null &&
        workflow.event === triggerOfEvent(event.name) &&
        workflow.entity_type === event.entity_type &&
        workflow.events_after < event.id &&
        (!event.restored || workflow.run_on_restore === 1)
          ? [{ workflow, event: { ...event, entity_id: event.entity_id } }]
          : [],
      ),
    )
    if (asked.length > 0) await plan(ctx, asked)
    return last
  },
}

type Caused = Pick<EventSummary, 'id' | 'name' | 'entity_type' | 'workflow_run_id'>

interface Asked {
  workflow: { id: number; name: string }
  event: Caused & { entity_id: number }
}

/**
 * Stores a run for each pair of workflow and event, and enqueues the runs that may start. The
 * number of SQL statements does not depend on the number of pairs.
 */
export async function plan(ctx: Context, asked: readonly Asked[]): Promise<void> {
  const at = now(ctx)
  const chainOf = await chains(
    ctx,
    asked.map(({ event }) => event),
  )
  const made = await ctx.db
    .insertInto('workflow_runs')
    .values(
      asked.map(({ workflow, event }) => {
        const chain = chainOf(event)
        const depth = (chain[0]?.depth ?? 0) + 1
        const reason = loopReason(chain, depth, workflow, event)
        return {
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
        }
      }),
    )
    .onConflict((conflict) => conflict.columns(['workflow_id', 'event_id']).doNothing())
    .returning(['id', 'state', 'entity_type', 'entity_id'])
    .execute()
  const pending = made.filter(({ state }) => state === 'pending').sort((a, b) => a.id - b.id)
  await enqueueAll(
    ctx,
    runWorkflow,
    pending.map(({ id, entity_type, entity_id }) => ({
      payload: { run_id: id },
      sequence: `workflow:${entity_type}:${entity_id}`,
    })),
  )
}

/** Returns why the workflow must not run after this chain of runs; null when it may run. */
function loopReason(
  chain: readonly Run[],
  depth: number,
  workflow: { id: number; name: string },
  event: { entity_type: string; entity_id: number },
): string | null {
  const earlier = chain.find(
    (run) =>
      run.workflow_id === workflow.id && run.entity_type === event.entity_type && run.entity_id === event.entity_id,
  )
  if (earlier) return `The workflow would trigger itself: its run ${earlier.id} on this record caused this event.`
  return depth > maxChainLength ? `More than ${maxChainLength} workflows would trigger each other.` : null
}

/**
 * Returns a function that gives the chain of runs that caused an event, latest run first. Each
 * query reads one generation of parent runs for all events.
 */
async function chains({ db }: Context, events: readonly Caused[]): Promise<(event: Caused) => Run[]> {
  const known = new Map<number, Run>()
  let wanted = new Set(events.flatMap(({ workflow_run_id: cause }) => cause ?? []))
  for (let depth = 0; wanted.size > 0 && depth <= maxChainLength; depth++) {
    const runs = await db
      .selectFrom('workflow_runs')
      .select(['id', 'workflow_id', 'entity_type', 'entity_id', 'depth', 'parent_run_id'])
      .where('id', 'in', [...wanted])
      .execute()
    for (const run of runs) known.set(run.id, run)
    wanted = new Set(runs.flatMap(({ parent_run_id: id }) => (id === null || known.has(id) ? [] : id)))
  }
  return ({ workflow_run_id: cause }) => {
    const chain: Run[] = []
    for (let run = known.get(cause ?? 0); run; run = known.get(run.parent_run_id ?? 0)) chain.push(run)
    return chain
  }
}
