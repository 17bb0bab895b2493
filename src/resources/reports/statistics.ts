// Computes the metrics and time series of reports. Each report has one function,
// which runs a fixed number of SQL statements.
import type { Schema } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import { fromSum, scaledSum, weighted } from '../../kernel/values/money.ts'
import { leadStatus } from '../leads/change-stage.ts'
import { leadTotals } from '../pipelines/lead-totals.ts'
import {
  type Average,
  averageFigure,
  type Counted,
  countedRecords,
  type Filter,
  figure,
  outcomes,
  type SectionSum,
  scaledCount,
  sumsBySection,
} from './engine.ts'
import { sumsByGroup } from './groups.ts'
import { bucketUnit, type Period, periodBounds, previousStart, splitPeriod } from './period.ts'

/** Returns the figures of the preceding period and of the period. */
async function compared(ctx: Context, source: Counted, period: Period, filter: Filter): Promise<SectionSum[]> {
  const [from, to] = periodBounds(period)
  return sumsBySection(ctx, source, filter, { begins: [previousStart(period), from], to })
}

export async function overview(ctx: Context, period: Period, filter: Filter): Promise<Schema<'OverviewStatistics'>> {
  const ofOwner = filter.user_id && { user_id: filter.user_id }
  const created = async (source: Counted, filter: Filter): Promise<Schema<'ReportFigure'>> => {
    const [before, now] = (await compared(ctx, source, period, filter)).map(({ count }) => scaledCount(count))
    return figure(before ?? 0n, now ?? 0n)
  }
  const leads = await compared(ctx, countedRecords.leads, period, filter)
  const [before = 0n, now = 0n] = leads.map(({ count }) => scaledCount(count))
  const value = (section: number): Average => {
    const { sum = '0|0', count = 0 } = leads[section] ?? {}
    return { of: scaledSum(sum), among: BigInt(count) }
  }
  const days = BigInt(period.days)
  return {
    average_lead_value: averageFigure(value(0), value(1)),
    total_leads: figure(before, now),
    average_leads_per_day: averageFigure({ of: before, among: days }, { of: now, among: days }),
    total_quotes: await created(countedRecords.quotes, { ...ofOwner }),
    total_persons: await created(countedRecords.persons, { ...ofOwner }),
    total_organizations: await created(countedRecords.organizations, { ...ofOwner }),
  }
}

export async function revenue(ctx: Context, period: Period, filter: Filter): Promise<Schema<'RevenueStatistics'>> {
  const closed = async (kind: 'won' | 'lost'): Promise<Schema<'ReportFigure'>> => {
    const [before, now] = await compared(ctx, outcomes(kind), period, filter)
    return figure(scaledSum(before?.sum ?? '0|0'), scaledSum(now?.sum ?? '0|0'))
  }
  return { won_revenue: await closed('won'), lost_revenue: await closed('lost') }
}

export async function totalLeads(
  ctx: Context,
  period: Period,
  filter: Filter,
): Promise<Schema<'TotalLeadsStatistics'>> {
  const [, to] = periodBounds(period)
  const buckets = splitPeriod(period, bucketUnit(period))
  const begins = buckets.map((bucket) => bucket.from)
  const overTime = async (source: Counted): Promise<Schema<'ReportOverTime'>> => ({
    over_time: (await sumsBySection(ctx, source, filter, { begins, to })).map(({ section, count, sum }) => ({
      label: buckets[section]?.label ?? '',
      count,
      lead_value: fromSum(sum),
    })),
  })
  return {
    all: await overTime(countedRecords.leads),
    won: await overTime(outcomes('won')),
    lost: await overTime(outcomes('lost')),
  }
}

/**
 * The open leads of a stage, with the name of the pipeline. Stages of several pipelines may have
 * the same name.
 */
export interface StageShare extends Schema<'ReportStage'> {
  pipeline: string
}

export async function openByStage(ctx: Context, period: Period, filter: Filter): Promise<StageShare[]> {
  const stages = ctx.db
    .selectFrom('lead_pipeline_stages as stage')
    .innerJoin('lead_pipelines as pipeline', 'pipeline.id', 'stage.lead_pipeline_id')
    .select(['stage.id', 'stage.name', 'pipeline.name as pipeline'])
    .orderBy('pipeline.id')
    .orderBy('stage.sort_order')
  const selection = { filter, bounds: periodBounds(period) }
  const sums = period.isAll
    ? await openTotals(ctx, filter).execute()
    : (await sumsByGroup(ctx, countedRecords.open, 'stage', selection)).map((row) => ({
        ...row,
        stage: Number(row.key),
      }))
  const byStage = new Map(sums.map((each) => [each.stage, each]))
  return (await stages.execute()).flatMap(({ id, name, pipeline }) => {
    const found = byStage.get(id)
    return found ? [{ id, name, pipeline, count: Number(found.count), lead_value: fromSum(found.sum) }] : []
  })
}

/** Selects the sums of all open leads by stage, from the kept totals. */
const openTotals = (ctx: Context, { lead_pipeline_id: pipelines, user_id: users }: Filter) =>
  leadTotals(ctx)
    .where('lead_totals.status', '=', leadStatus.open)
    .$if(users !== undefined, (rows) => rows.where('lead_totals.owner_id', 'in', users ?? []))
    .$if(pipelines !== undefined, (rows) =>
      rows.where('lead_totals.stage_id', 'in', (eb) =>
        eb
          .selectFrom('lead_pipeline_stages')
          .select('id')
          .where('lead_pipeline_id', 'in', pipelines ?? []),
      ),
    )

export async function forecast(ctx: Context, period: Period, filter: Filter): Promise<Schema<'ReportMonth'>[]> {
  const month = ctx.services.store.dialect.monthOf('leads.expected_close_date')
  const bounds = [period.range.start, period.range.end] as const
  const rows = await sumsByGroup(ctx, countedRecords.expected, month, { filter, bounds, isWeighted: true })
  return splitPeriod(period, 'month').map(({ label }) => {
    const parts = rows
      .filter(({ key }) => key === label)
      .map(({ sum, probability, count }) => ({ scaled: scaledSum(sum), percent: probability, count }))
    return {
      month: label,
      count: parts.reduce((total, { count }) => total + count, 0),
      lead_value: weighted(parts.map(({ scaled }) => ({ scaled, percent: 100 }))),
      weighted_value: weighted(parts),
    }
  })
}
