// The list of a workflow's runs. A caller sees the runs on visible records, and the
// runs on deleted records that were visible to the caller at their deletion.
import type { Selectable } from 'kysely'
import type { DB } from '../../../db/tables.gen.ts'
import type { Schema } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import type { Handler } from '../../kernel/handler.ts'
import { timeField, valueField } from '../../kernel/query/filter.ts'
import { recordPage } from '../../kernel/query/page.ts'
import { listableTypes } from '../events/event-visibility.ts'
import { visibleReferences } from '../events/visible-references.ts'
import { workflows } from './resource.ts'
import type { RunAction } from './run.ts'

type Run = Schema<'WorkflowRun'>
type Row = Selectable<DB['workflow_runs']>

const fields = {
  state: valueField('workflow_runs.state'),
  event_id: valueField('workflow_runs.event_id'),
  entity_id: valueField('workflow_runs.entity_id'),
  created_at: timeField('workflow_runs.created_at'),
}

export const listWorkflowRuns: Handler<'listWorkflowRuns'> = async (ctx, { params, query }) => {
  await workflows.assertVisible(ctx, params.id)
  const rows = ctx.db
    .selectFrom('workflow_runs')
    .selectAll()
    .where('workflow_runs.workflow_id', '=', params.id)
    .where(await visibleReferences(ctx, 'workflow_runs'))
  const present = async (rows: readonly Row[]): Promise<Run[]> => {
    const visible = await inSight(ctx, rows)
    return rows.map((row) => presentRun(row, visible))
  }
  return recordPage(ctx, rows, query, { fields, sort: { id: 'workflow_runs.id' }, id: 'workflow_runs.id', present })
}

/** Returns the workflows of runs, by the id of the run. Lacks deleted workflows. */
export async function workflowsOf({ db }: Context, runIds: readonly number[]) {
  if (runIds.length === 0) return new Map<number, { id: number; name: string }>()
  const rows = await db
    .selectFrom('workflow_runs')
    .innerJoin('workflows', 'workflows.id', 'workflow_runs.workflow_id')
    .select(['workflow_runs.id as run_id', 'workflows.id', 'workflows.name'])
    .where('workflow_runs.id', 'in', [...new Set(runIds)])
    .execute()
  return new Map(rows.map(({ run_id, id, name }) => [run_id, { id, name }]))
}

const entriesOf = ({ actions }: Row): RunAction[] => JSON.parse(actions) as RunAction[]

/**
 * The record type to which each key of an action result refers. A caller who sees a run may not be
 * allowed to see the records in its results.
 */
const namedBy: Readonly<Record<string, string>> = {
  lead_id: 'leads',
  lead_ids: 'leads',
  person_id: 'persons',
  quote_id: 'quotes',
  activity_id: 'activities',
  email_ids: 'emails',
  tag_id: 'tags',
}

type InSight = (key: string, id: number) => boolean

/**
 * Returns a function that tests whether the caller sees a record in an action result. Runs one
 * query per record type for all runs of the page.
 */
async function inSight(ctx: Context, rows: readonly Row[]): Promise<InSight> {
  const open = new Set(listableTypes(ctx))
  const named = new Map<string, number[]>()
  for (const { result } of rows.flatMap(entriesOf))
    for (const [key, value] of Object.entries(result ?? {})) {
      const type = namedBy[key]
      if (type !== undefined && open.has(type))
        named.set(type, [...(named.get(type) ?? []), ...([value ?? []].flat() as number[])])
    }
  const seen = new Map<string, ReadonlySet<number>>()
  for (const [type, ids] of named)
    seen.set(type, (await ctx.services.resources.get(type)?.visibleIds(ctx, ids)) ?? new Set())
  return (key, id) => seen.get(namedBy[key] ?? '')?.has(id) ?? false
}

/**
 * Returns the result without the ids of records that are deleted or that the caller may not see.
 */
const resultOf = (result: RunAction['result'], isSeen: InSight): RunAction['result'] =>
  result &&
  Object.fromEntries(
    Object.entries(result).map(([key, value]) => {
      if (namedBy[key] === undefined) return [key, value]
      if (Array.isArray(value)) return [key, value.filter((id) => isSeen(key, id))]
      return [key, typeof value === 'number' && isSeen(key, value) ? value : null]
    }),
  )

const presentRun = (row: Row, isSeen: InSight): Run => ({
  id: row.id,
  event_id: row.event_id,
  event: row.event,
  entity_type: row.entity_type as Run['entity_type'],
  entity_id: row.entity_id,
  state: row.state as Run['state'],
  reason: row.reason,
  matched_conditions: JSON.parse(row.matched_conditions) as Run['matched_conditions'],
  actions: entriesOf(row).map(({ id, state, error, result }) => ({
    id,
    state,
    error,
    result: resultOf(result, isSeen),
  })),
  started_at: row.started_at,
  finished_at: row.finished_at,
  created_at: row.created_at,
})
