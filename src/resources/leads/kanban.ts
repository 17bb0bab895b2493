// Returns the board of a pipeline: its stages, and for each stage the totals and one
// page of leads. The number of SQL statements does not grow with the number of stages or leads.
import { type SqlBool, sql } from 'kysely'
import type { Query, Schema } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import { invalid } from '../../kernel/errors.ts'
import type { Handler } from '../../kernel/handler.ts'
import { maxSorted } from '../../kernel/query/id-pages.ts'
import { currencyText } from '../../kernel/values/format.ts'
import { fromBig, scaledSum, sumOf, weighted } from '../../kernel/values/money.ts'
import { loadStages } from '../pipelines/moves.ts'
import type { StageRow } from '../pipelines/stages.ts'
import { leadStatus, statusOfStage } from './change-stage.ts'
import { leads } from './resource.ts'
import { loadStageTotals, type StageTotal } from './stage-totals.ts'

/** The leads of a stage. Both numbers are null when the board is too large to be counted. */
interface Totals {
  count: number | null
  /** The exact sum of the lead values. */
  scaled: bigint | null
}

interface Column extends StageRow, Totals {}

interface Page {
  number: number
  size: number
}

/**
 * The highest number of leads whose values are summed up on a board with filters. The search index
 * finds the leads of `q`, which costs more.
 */
const maxSummed = 30_000

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
 * Returns the totals of each stage. Reads the table lead_totals when it supports the filters of the
 * query. Otherwise sums up the matching leads, unless there are too many.
 */
async function totalsOf(
  ctx: Context,
  query: Query<'kanbanLeads'>,
  stages: readonly StageRow[],
): Promise<Map<number, Totals>> {
  const ids = stages.map(({ id }) => id)
  const sums = (await loadStageTotals(ctx, query, ids)) ?? (await sumsOf(ctx, query, ids))
  const found = new Map(sums?.map(({ stage, count, sum }) => [stage, { count: Number(count), scaled: scaledSum(sum) }]))
  const none: Totals = sums === null ? { count: null, scaled: null } : { count: 0, scaled: 0n }
  return new Map(ids.map((id) => [id, found.get(id) ?? none]))
}

/** Returns the sums of the stages with matching leads; null when too many leads match. */
async function sumsOf(
  ctx: Context,
  query: Query<'kanbanLeads'>,
  stages: readonly number[],
): Promise<StageTotal[] | null> {
  const most = query.q === undefined ? maxSummed : maxSorted
  const matching = (await leads.found(ctx, query))
    .clearSelect()
    .select([stageWithoutIndex.as('stage'), 'leads.lead_value as lead_value'])
    .where(stageWithoutIndex, 'in', [...stages])
    .limit(most + 1)
  const sums = await ctx.db
    .selectFrom(matching.as('matching'))
    .select(['stage', sql<number>`count(*)`.as('count'), sumOf('matching.lead_value').as('sum')])
    .groupBy('stage')
    .execute()
  const total = sums.reduce((total, { count }) => total + Number(count), 0)
  return total > most ? null : (sums as StageTotal[])
}

/**
 * Returns the page of a stage. An index scan reads all leads in their order: about 100 leads for
 * each one that it shows if the stage has 1 % of the leads. The other way reads and sorts all leads
 * of the stage. The order by id needs no choice, because the index on stages supplies it.
 */
function pageOfStage(
  query: Query<'kanbanLeads'>,
  column: Column,
  { limit, offset }: { limit: number; offset: number },
  leadCount: number,
) {
  const { id, count } = column
  const sort = sortInStage(query.sort, column)
  const isById = /^-?id$/.test(sort?.[0] ?? 'id')
  const isIndexScan = !isById && (count === null || count * count > (offset + limit) * leadCount)
  const stage = isIndexScan ? stageWithoutIndex : sql<number>`leads.lead_pipeline_stage_id`
  const part = sql<SqlBool>`${stage} = ${id}`
  return { sort, part, isIndexScan: isIndexScan || count === null, limit, offset }
}

/**
 * Returns the sort keys, except those with one value for all leads of the stage. An index by such a
 * key may list these leads last, and a scan would read all other leads first.
 */
function sortInStage(sort: Query<'kanbanLeads'>['sort'], { code }: Column): string[] | undefined {
  const isOpen = statusOfStage(code) === leadStatus.open
  const isConstant = isOpen ? /^-?(status|stage_sort_order|closed_at)$/ : /^-?(status|stage_sort_order)$/
  const keys: string[] | undefined = sort?.filter((key) => !isConstant.test(key))
  return keys?.length === 0 ? [sort?.at(-1)?.startsWith('-') ? '-id' : 'id'] : keys
}

/** The highest number of leads that are read together for a board. */
const maxTogether = 5_000

/** Returns the ids of the leads on a page of every stage, in order within a stage. */
async function idsOnBoard(
  ctx: Context,
  query: Query<'kanbanLeads'>,
  columns: readonly Column[],
  page: Page,
  total: number | null,
): Promise<number[]> {
  if (total === 0) return []
  const window = { limit: page.size, offset: (page.number - 1) * page.size }
  if (total !== null && total <= maxTogether) {
    const stage = sql.ref('leads.lead_pipeline_stage_id')
    const part = sql<SqlBool>`${stageWithoutIndex} in (${sql.join(columns.map(({ id }) => id))})`
    return leads.idsPerGroup(ctx, query, { ...window, part, group: stage })
  }
  const leadCount = query.sort === undefined ? 0 : await countAll(ctx)
  const pages = columns
    .filter(({ count }) => count === null || window.offset < count)
    .map((column) => pageOfStage(query, column, window, leadCount))
  return leads.idsOnPages(ctx, query, pages)
}

/** Returns the number of all leads, which an index scan may read. */
async function countAll({ db }: Context): Promise<number> {
  const rows = db.selectFrom('lead_totals').select((eb) => eb.fn.sum<number>('lead_totals.count').as('count'))
  return Number((await rows.executeTakeFirst())?.count ?? 0)
}

/** Returns the sum, or null when one of the numbers is unknown. */
const both = <T extends number | bigint>(sum: T | null, each: T | null): T | null =>
  sum === null || each === null ? null : (((sum as number) + (each as number)) as T)

const orNull = <T, U>(value: T | null, convert: (value: T) => U): U | null => (value === null ? null : convert(value))

function present(ctx: Context, column: Column, page: Page, shown: Schema<'Lead'>[]): Schema<'KanbanStage'> {
  const value = orNull(column.scaled, fromBig)
  const before = (page.number - 1) * page.size
  return {
    id: column.id,
    code: column.code,
    name: column.name,
    probability: column.probability,
    sort_order: column.sort_order,
    lead_value: value,
    formatted_lead_value: orNull(value, (sum) => currencyText(sum, ctx.services.config)),
    weighted_value: orNull(column.scaled, (scaled) => weighted([{ scaled, percent: column.probability }])),
    count: column.count,
    leads: {
      data: shown,
      meta: {
        current_page: page.number,
        from: shown.length > 0 ? before + 1 : null,
        last_page: orNull(column.count, (count) => Math.max(1, Math.ceil(count / page.size))),
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
  const totals = await totalsOf(ctx, query, stages)
  const columns = stages.map((stage): Column => ({ ...stage, ...(totals.get(stage.id) as Totals) }))
  const total = columns.reduce<number | null>((sum, { count }) => both(sum, count), 0)
  const ids = await idsOnBoard(ctx, query, columns, page, total)
  const replies = [...(await leads.getMany(ctx, ids)).values()]
  const shownOf = ({ id }: Column): Schema<'Lead'>[] =>
    replies.filter(({ lead_pipeline_stage_id: stage }) => stage === id)
  return {
    data: columns.map((column) => present(ctx, column, page, shownOf(column))),
    pipeline: { id: pipeline.id, name: pipeline.name, rotten_days: pipeline.rotten_days },
    meta: {
      total,
      lead_value: orNull(
        columns.reduce<bigint | null>((sum, { scaled }) => both(sum, scaled), 0n),
        fromBig,
      ),
    },
  }
}
