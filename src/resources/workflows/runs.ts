// The log of a workflow's runs (DOMAIN 18.3), of records the caller sees, or could see when they were deleted.
import { type RawBuilder, type Selectable, type SqlBool, sql } from 'kysely'
import type { DB } from '../../../db/tables.gen.ts'
import type { Schema } from '../../contract/types.ts'
import { type Context, may } from '../../kernel/context.ts'
import { time, value } from '../../kernel/filter.ts'
import type { Handler } from '../../kernel/handler.ts'
import { ledgerPage } from '../../kernel/ledger.ts'
import { visible } from '../../kernel/visibility.ts'
import { resources } from './occasion.ts'
import { workflows } from './resource.ts'
import type { Entry } from './run.ts'
import type { Entity } from './subjects.ts'

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
  const sights = await Promise.all((Object.keys(resources) as Entity[]).map((entity) => sightOf(ctx, entity)))
  const rows = ctx.db
    .selectFrom('workflow_runs')
    .selectAll()
    .where('workflow_runs.workflow_id', '=', params.id)
    .where(sql<SqlBool>`(${sql.join(sights, sql` or `)})`)
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

/** Runs on records of one kind that the caller may know of. */
async function sightOf(ctx: Context, entity: Entity): Promise<RawBuilder<SqlBool>> {
  const { lists, matching, events } = resources[entity]
  if (!may(ctx, lists)) return sql<SqlBool>`1 = 0`
  const isOfKind = sql<SqlBool>`workflow_runs.entity_type = ${entity}`
  if (!ctx.user?.visibleOwners) return isOfKind
  const seen = (await matching(ctx, {})).clearSelect().clearOrderBy().select(`${entity}.id`)
  // As it was last: a record can be deleted, restored and deleted again.
  const seenLast = sql<SqlBool>`not exists (select 1 from ${sql.table(entity)} as present where present.id = workflow_runs.entity_id)
    and exists (select 1 from events as deletion where deletion.id =
      (select max(later.id) from events as later where later.entity_type = ${entity} and later.entity_id = workflow_runs.entity_id
        and later.name = ${`${events.delete}.after`}) and ${visible(ctx, 'deletion.owner_id')})`
  return sql<SqlBool>`(${isOfKind} and (workflow_runs.entity_id in (${seen}) or (${seenLast})))`
}
