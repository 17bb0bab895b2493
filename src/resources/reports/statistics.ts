// Computes the metrics and time series of reports. Each report has one function,
// which runs a fixed number of SQL statements.
import type { Schema } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import { visible } from '../../kernel/query/visibility.ts'
import { fromSum, scaledSum, sumOf, weighted } from '../../kernel/values/money.ts'
import { leadStatus } from '../leads/change-stage.ts'
import { leadTotals } from '../pipelines/lead-totals.ts'
import {
  type Average,
  averageFigure,
  figure,
  filteredLeads,
  isReportOfOwners,
  type ReportFilters,
  scaledCount,
  sumsBySection,
  withoutIndex,
} from './counted-leads.ts'
import { bucketUnit, type Period, periodBounds, previousStart, splitPeriod } from './period.ts'

/**
 * Returns the counts of visible records that were created in the preceding period and in the
 * period. The unit of the counts is ten-thousandths.
 */
async function created(
  ctx: Context,
  table: 'quotes' | 'persons' | 'organizations',
  period: Period,
  { user_id }: ReportFilters,
): Promise<[bigint, bigint]> {
  const [from, to] = periodBounds(period)
  const { all, now } = await ctx.db
    .selectFrom(table)
    .select(({ fn }) => [
      fn.countAll<number>().as('all'),
      fn.countAll<number>().filterWhere('created_at', '>=', from).as('now'),
    ])
    .where(visible(ctx, `${table}.user_id`))
    .where('created_at', '>=', previousStart(period))
    .where('created_at', '<=', to)
    .$if(user_id !== undefined, (rows) => rows.where('user_id', '=', user_id ?? 0))
    .executeTakeFirstOrThrow()
  return [scaledCount(Number(all) - Number(now)), scaledCount(Number(now))]
}

export async function overview(
  ctx: Context,
  period: Period,
  filters: ReportFilters,
): Promise<Schema<'OverviewStatistics'>> {
  const [from, to] = periodBounds(period)
  const sections = [previousStart(period), from]
  const leads = await createdLeads(ctx, filters, sections, to)
  const [before = 0n, now = 0n] = leads.map(({ count }) => scaledCount(Number(count)))
  const value = (section: number): Average => {
    const { sum = '0|0', count = 0 } = leads[section] ?? {}
    return { of: scaledSum(sum), among: BigInt(count) }
  }
  const days = BigInt(period.days)
  return {
    average_lead_value: averageFigure(value(0), value(1)),
    total_leads: figure(before, now),
    average_leads_per_day: averageFigure({ of: before, among: days }, { of: now, among: days }),
    total_quotes: figure(...(await created(ctx, 'quotes', period, filters))),
    total_persons: figure(...(await created(ctx, 'persons', period, filters))),
    total_organizations: figure(...(await created(ctx, 'organizations', period, filters))),
  }
}

/** Returns the counts and value sums of new leads for each section of time. */
const createdLeads = (ctx: Context, filters: ReportFilters, begins: readonly string[], to: string) =>
  sumsBySection(filteredLeads(ctx, filters), { column: 'leads.created_at', begins, to }, isReportOfOwners(ctx, filters))

/** Returns the counts and value sums of won or lost leads for each section of time. */
const closed = (ctx: Context, filters: ReportFilters, status: number, begins: readonly string[], to: string) =>
  sumsBySection(
    filteredLeads(ctx, filters).where(withoutIndex('status'), '=', status),
    { column: 'leads.closed_at', begins, to },
    isReportOfOwners(ctx, filters),
  )

export async function revenue(
  ctx: Context,
  period: Period,
  filters: ReportFilters,
): Promise<Schema<'RevenueStatistics'>> {
  const [from, to] = periodBounds(period)
  const compared = async (status: number): Promise<Schema<'ReportFigure'>> => {
    const [before, now] = await closed(ctx, filters, status, [previousStart(period), from], to)
    return figure(scaledSum(before?.sum ?? '0|0'), scaledSum(now?.sum ?? '0|0'))
  }
  return { won_revenue: await compared(leadStatus.won), lost_revenue: await compared(leadStatus.lost) }
}

export async function totalLeads(
  ctx: Context,
  period: Period,
  filters: ReportFilters,
): Promise<Schema<'TotalLeadsStatistics'>> {
  const [, to] = periodBounds(period)
  const buckets = splitPeriod(period, bucketUnit(period))
  const begins = buckets.map((bucket) => bucket.from)
  const overTime = (rows: Awaited<ReturnType<typeof sumsBySection>>): Schema<'ReportOverTime'> => ({
    over_time: rows.map(({ section, count, sum }) => ({
      label: buckets[section]?.label ?? '',
      count: Number(count),
      lead_value: fromSum(sum),
    })),
  })
  return {
    all: overTime(await createdLeads(ctx, filters, begins, to)),
    won: overTime(await closed(ctx, filters, leadStatus.won, begins, to)),
    lost: overTime(await closed(ctx, filters, leadStatus.lost, begins, to)),
  }
}

/**
 * The open leads of a stage, with the name of the pipeline. Stages of several pipelines may have
 * the same name.
 */
export interface StageShare extends Schema<'ReportStage'> {
  pipeline: string
}

export async function openByStage(ctx: Context, period: Period, filters: ReportFilters): Promise<StageShare[]> {
  const stages = ctx.db
    .selectFrom('lead_pipeline_stages as stage')
    .innerJoin('lead_pipelines as pipeline', 'pipeline.id', 'stage.lead_pipeline_id')
    .select(['stage.id', 'stage.name', 'pipeline.name as pipeline'])
    .orderBy('pipeline.id')
    .orderBy('stage.sort_order')
  const sums = await (period.isAll ? openTotals(ctx, filters) : openLeads(ctx, period, filters)).execute()
  const byStage = new Map(sums.map((each) => [each.stage, each]))
  return (await stages.execute()).flatMap(({ id, name, pipeline }) => {
    const found = byStage.get(id)
    return found ? [{ id, name, pipeline, count: Number(found.count), lead_value: fromSum(found.sum) }] : []
  })
}

/** Selects the sums of all open leads by stage, from the kept totals. */
const openTotals = (ctx: Context, { pipeline_id, user_id }: ReportFilters) =>
  leadTotals(ctx)
    .where('lead_totals.status', '=', leadStatus.open)
    .$if(user_id !== undefined, (rows) => rows.where('lead_totals.owner_id', '=', user_id ?? 0))
    .$if(pipeline_id !== undefined, (rows) =>
      rows.where('lead_totals.stage_id', 'in', (eb) =>
        eb
          .selectFrom('lead_pipeline_stages')
          .select('id')
          .where('lead_pipeline_id', '=', pipeline_id ?? 0),
      ),
    )

/** Selects the sums of the open leads that were created in the period, by stage. */
function openLeads(ctx: Context, period: Period, filters: ReportFilters) {
  const [from, to] = periodBounds(period)
  const stage = withoutIndex('lead_pipeline_stage_id')
  return filteredLeads(ctx, filters)
    .select((eb) => [stage.as('stage'), eb.fn.countAll<number>().as('count'), sumOf('leads.lead_value').as('sum')])
    .where(withoutIndex('status'), '=', leadStatus.open)
    .where('leads.created_at', '>=', from)
    .where('leads.created_at', '<=', to)
    .groupBy(stage)
}

export async function forecast(ctx: Context, period: Period, filters: ReportFilters): Promise<Schema<'ReportMonth'>[]> {
  const month = ctx.services.store.dialect.monthOf('leads.expected_close_date')
  const stage = withoutIndex('lead_pipeline_stage_id')
  const sums = filteredLeads(ctx, filters)
    .select((eb) => [
      month.as('month'),
      stage.as('stage'),
      eb.fn.countAll<number>().as('count'),
      sumOf('leads.lead_value').as('sum'),
    ])
    .where(withoutIndex('status'), '=', leadStatus.open)
    .where('leads.expected_close_date', '>=', period.range.start)
    .where('leads.expected_close_date', '<=', period.range.end)
    .groupBy([month, stage])
  const rows = await ctx.db
    .selectFrom(sums.as('sums'))
    .innerJoin('lead_pipeline_stages as stage', 'stage.id', 'sums.stage')
    .select(['sums.month', 'stage.probability', 'sums.count', 'sums.sum'])
    .execute()
  return splitPeriod(period, 'month').map(({ label }) => {
    const parts = rows
      .filter((row) => row.month === label)
      .map(({ sum, probability, count }) => ({ scaled: scaledSum(sum), percent: probability, count: Number(count) }))
    return {
      month: label,
      count: parts.reduce((total, { count }) => total + count, 0),
      lead_value: weighted(parts.map(({ scaled }) => ({ scaled, percent: 100 }))),
      weighted_value: weighted(parts),
    }
  })
}
