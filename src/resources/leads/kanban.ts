// Returns the board of a pipeline: its stages, and for each stage the totals and one
// page of leads. The number of SQL statements does not grow with the number of stages or leads.
import { sql } from 'kysely'
import type { Query, Schema } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import { invalid } from '../../kernel/errors.ts'
import type { Handler } from '../../kernel/handler.ts'
import { executePruned } from '../../kernel/query/join-plugins.ts'
import type { Rows } from '../../kernel/query/page.ts'
import { currencyText } from '../../kernel/values/format.ts'
import { fromBig, scaledSum, sumOf, weighted } from '../../kernel/values/money.ts'
import { loadStages } from '../pipelines/resource.ts'
import type { StageRow } from '../pipelines/stages.ts'
import { leads } from './resource.ts'
import { filtersLeads, loadStageTotals, type StageTotal } from './stage-totals.ts'

interface Column extends StageRow {
  count: number
  scaled: bigint
}

interface Page {
  number: number
  size: number
}

/**
 * Returns the pipeline of the board and its stages, or only the stage that the query names. Throws
 * 422 for an unknown pipeline and for a stage that the pipeline does not have.
 */
async function boardOf(ctx: Context, query: Query<'kanbanLeads'>) {
  const { pipeline_id: pipelineId, pipeline_stage_id: stageId } = query
  const pipeline = await ctx.db
    .selectFrom('lead_pipelines')
    .select(['id', 'name', 'rotten_days'])
    .where((eb) => (pipelineId === undefined ? eb('is_default', '=', 1) : eb('id', '=', pipelineId)))
    .executeTakeFirst()
  if (!pipeline) throw invalid({ 'query.pipeline_id': [`No pipeline has id ${pipelineId}.`] })
  const stages = await loadStages(ctx, pipeline.id)
  const wanted = stages.filter(({ id }) => stageId === undefined || id === stageId)
  if (wanted.length > 0) return { pipeline, stages: wanted }
  throw invalid({ 'query.pipeline_stage_id': [`The pipeline ${pipeline.name} has no stage with id ${stageId}.`] })
}

/**
 * The stage of a lead as an expression that keeps SQLite from using the index on stages. The stages
 * of a board contain nearly all leads, so another index is faster.
 */
const stageWithoutIndex = sql<number>`(leads.lead_pipeline_stage_id + 0)`

/**
 * Returns the number of leads and the exact sum of their values, by stage. Reads the table
 * lead_totals when it supports the filters of the query. Otherwise counts the matching leads.
 */
async function sumsOf(
  ctx: Context,
  query: object,
  rows: Rows<object>,
  stages: readonly { id: number }[],
): Promise<Map<number, Pick<Column, 'count' | 'scaled'>>> {
  const ids = stages.map(({ id }) => id)
  const chosen = rows
    .clearSelect()
    .clearOrderBy()
    .select([stageWithoutIndex.as('stage'), sql`count(*)`.as('count'), sumOf('leads.lead_value').as('sum')])
    .where(stageWithoutIndex, 'in', ids)
    .groupBy(stageWithoutIndex)
  const sums = (await loadStageTotals(ctx, query, ids)) ?? ((await executePruned(ctx, chosen)) as StageTotal[])
  return new Map(sums.map(({ stage, count, sum }) => [stage, { count: Number(count), scaled: scaledSum(sum) }]))
}

/** Matches the sort keys that have a database index. */
const sorted = /^-?(title|lead_value|status|expected_close_date|closed_at|stage_changed_at|created_at|updated_at)$/

/**
 * Returns whether a page of the stage is found faster through the sort index than by sorting all
 * leads of the stage. The estimate uses the lead counts of the stages. Filters and limited
 * visibility prevent an estimate, and the result is then false.
 */
function isSortIndexFaster(
  ctx: Context,
  query: Query<'kanbanLeads'>,
  columns: readonly Column[],
  count: number,
  page: Page,
) {
  const isWhole = !filtersLeads(query) && !ctx.user?.visibleOwners
  const total = columns.reduce((total, column) => total + column.count, 0)
  return isWhole && sorted.test(query.sort?.[0] ?? '') && count * count > page.number * page.size * total
}

/**
 * Returns the lead ids of one page of every stage, with a UNION of one SELECT per stage. Each
 * SELECT repeats all filters. The stages are split over several statements when one statement would
 * have too many parameters.
 */
async function idsOnPage(
  ctx: Context,
  query: Query<'kanbanLeads'>,
  rows: Rows<object>,
  columns: readonly Column[],
  page: Page,
): Promise<number[]> {
  const stageOf = (count: number) =>
    isSortIndexFaster(ctx, query, columns, count, page) ? stageWithoutIndex : sql<number>`leads.lead_pipeline_stage_id`
  const parts = columns
    .filter(({ count }) => (page.number - 1) * page.size < count)
    .map(({ id, count }) =>
      ctx.db
        .selectFrom(
          rows
            .clearSelect()
            .select('leads.id as id')
            .where(stageOf(count), '=', id)
            .limit(page.size)
            .offset((page.number - 1) * page.size)
            .as('page'),
        )
        .select(sql<number>`page.id`.as('id')),
    )
  const parameters = parts[0]?.compile().parameters.length ?? 0
  const most = Math.max(1, Math.floor(ctx.services.store.dialect.maxParameters / Math.max(1, parameters)))
  const ids: number[] = []
  for (let at = 0; at < parts.length; at += most) {
    const found = await parts
      .slice(at, at + most)
      .reduce((all, each) => all.unionAll(each))
      .execute()
    ids.push(...found.map(({ id }) => id))
  }
  return ids
}

function present(ctx: Context, column: Column, page: Page, shown: Schema<'Lead'>[]): Schema<'KanbanStage'> {
  const value = fromBig(column.scaled)
  const before = (page.number - 1) * page.size
  return {
    id: column.id,
    code: column.code,
    name: column.name,
    probability: column.probability,
    sort_order: column.sort_order,
    lead_value: value,
    formatted_lead_value: currencyText(value, ctx.services.config),
    weighted_value: weighted([{ scaled: column.scaled, percent: column.probability }]),
    count: column.count,
    leads: {
      data: shown,
      meta: {
        current_page: page.number,
        from: shown.length > 0 ? before + 1 : null,
        last_page: Math.max(1, Math.ceil(column.count / page.size)),
        per_page: page.size,
        to: shown.length > 0 ? before + shown.length : null,
        total: column.count,
      },
    },
  }
}

export const kanbanLeads: Handler<'kanbanLeads'> = async (ctx, { query }) => {
  const { pipeline, stages } = await boardOf(ctx, query)
  const page = { number: query.page ?? 1, size: query.per_page ?? 10 }
  const rows = await leads.query(ctx, query)
  const sums = await sumsOf(ctx, query, rows, stages)
  const columns = stages.map((stage): Column => ({ ...stage, ...(sums.get(stage.id) ?? { count: 0, scaled: 0n }) }))
  const ids = await idsOnPage(ctx, query, rows, columns, page)
  const shown = ids.length === 0 ? [] : await leadsInOrder(ctx, query, ids)
  return {
    data: columns.map((column) =>
      present(
        ctx,
        column,
        page,
        shown.filter(({ lead_pipeline_stage_id: stage }) => stage === column.id),
      ),
    ),
    pipeline: { id: pipeline.id, name: pipeline.name, rotten_days: pipeline.rotten_days },
    meta: {
      total: columns.reduce((total, { count }) => total + count, 0),
      lead_value: fromBig(columns.reduce((total, { scaled }) => total + scaled, 0n)),
    },
  }
}

/**
 * Returns the leads with these ids in the order of the query. The ids are unordered, because a
 * UNION does not keep the order.
 */
async function leadsInOrder(ctx: Context, query: object, ids: readonly number[]): Promise<Schema<'Lead'>[]> {
  const all = { ...query, page: 1, per_page: ids.length, count: 'none' }
  const { data } = await leads.list(ctx, all, (rows) => rows.where('leads.id', 'in', ids))
  return data
}
