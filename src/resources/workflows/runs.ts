// The log of a workflow's runs (DOMAIN 18.3), of records the caller sees, or could see when they were deleted.
import type { Selectable } from 'kysely'
import type { DB } from '../../../db/tables.gen.ts'
import type { Schema } from '../../contract/types.ts'
import { time, value } from '../../kernel/filter.ts'
import type { Handler } from '../../kernel/handler.ts'
import { ledgerPage } from '../../kernel/ledger.ts'
import { visibleAbout } from '../events/scope.ts'
import { workflows } from './resource.ts'
import type { Entry } from './run.ts'

type Run = Schema<'WorkflowRun'>
type Row = Selectable<DB['workflow_runs']>

const fields = {
  state: value('workflow_runs.state'),
  event_id: value('workflow_runs.event_id'),
  entity_id: value('workflow_runs.entity_id'),
  created_at: time('workflow_runs.created_at'),
}

export const listWorkflowRuns: Handler<'listWorkflowRuns'> = async (ctx, { params, query }) => {
  await workflows.locate(ctx, params.id)
  const rows = ctx.db
    .selectFrom('workflow_runs')
    .selectAll()
    .where('workflow_runs.workflow_id', '=', params.id)
    .where(await visibleAbout(ctx, 'workflow_runs'))
  const present = (rows: readonly Row[]): Run[] => rows.map(presentRun)
  return ledgerPage(ctx, rows, query, { fields, sort: { id: 'workflow_runs.id' }, id: 'workflow_runs.id', present })
}

const presentRun = (row: Row): Run => ({
  id: row.id,
  event_id: row.event_id,
  event: row.event,
  entity_type: row.entity_type as Run['entity_type'],
  entity_id: row.entity_id,
  state: row.state as Run['state'],
  reason: row.reason,
  matched_conditions: JSON.parse(row.matched_conditions) as Run['matched_conditions'],
  actions: (JSON.parse(row.actions) as Entry[]).map(({ id, state, error, result }) => ({ id, state, error, result })),
  started_at: row.started_at,
  finished_at: row.finished_at,
  created_at: row.created_at,
})
