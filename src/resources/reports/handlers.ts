// Handlers of reports, made by the function `report`. A handler reads the period and
// computes the metrics of the report. The reply is JSON, or a chart for a client that prefers SVG.
import type { Query, Schema } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import { preferred } from '../../kernel/files/content-negotiation.ts'
import type { Download } from '../../kernel/files/download.ts'
import type { Handlers } from '../../kernel/handler.ts'
import { today } from '../../kernel/values/format.ts'
import {
  type ChartContext,
  forecastChart,
  openChart,
  overviewChart,
  personsChart,
  productsChart,
  revenueChart,
  shareChart,
  totalLeadsChart,
} from './charts/charts.ts'
import type { Chart } from './charts/draw.ts'
import { chartReply, svg } from './charts/reply.ts'
import type { Filter } from './engine.ts'
import { type Period, readForecastPeriod, readOptionalPeriod, readPeriod } from './period.ts'
import { queryReport } from './query.ts'
import { revenueBy, topPersons, topProducts } from './rankings.ts'
import { forecast, openByStage, overview, revenue, totalLeads } from './statistics.ts'

type ReportQuery = Query<'getOverviewReport'>

interface Report<Figures> {
  figures: (ctx: Context, period: Period, filter: Filter) => Promise<Figures>
  chart: (figures: Figures, about: ChartContext) => Chart
  period?: typeof readPeriod
}

interface Reply<Statistics, Range> {
  data: { statistics: Statistics; date_range: Range }
}

const rangeOf = ({ range }: Period): Schema<'ReportRange'> => range

/**
 * Returns the handler of a report. `present` returns the statistics of the JSON reply, which may
 * omit metrics that only the chart needs. `describeRange` returns the `date_range` of the reply.
 */
const report =
  <Figures, Statistics, Range = Schema<'ReportRange'>>(
    { figures, chart, period: readRange = readPeriod }: Report<Figures>,
    present: (figures: Figures) => Statistics,
    describeRange: (period: Period) => Range = rangeOf as (period: Period) => Range,
  ) =>
  async (ctx: Context, { query }: { query: ReportQuery }): Promise<Reply<Statistics, Range> | Download> => {
    const { timezone, locale, currency } = ctx.services.config
    const day = today(ctx.time, timezone)
    const period = readRange(query, day, timezone)
    const { pipeline_id: pipeline, user_id: user } = query
    const filter = { ...(pipeline && { lead_pipeline_id: [pipeline] }), ...(user && { user_id: [user] }) }
    const found = await ctx.services.store.onReplica((db) => figures({ ...ctx, db }, period, filter))
    if (preferred(ctx, ['application/json', svg]) !== svg)
      return { data: { statistics: present(found), date_range: describeRange(period) } }
    return chartReply(ctx, chart(found, { period, today: day, tongue: { locale, currency } }))
  }

const unchanged = <Statistics>(figures: Statistics): Statistics => figures

const shares = (by: 'source' | 'type') =>
  report(
    {
      figures: (ctx, period, filter) => revenueBy(ctx, period, filter, by),
      chart: (found, about) => shareChart(found, about, by),
    },
    unchanged,
  )

export const handlers = {
  queryReport,
  getOverviewReport: report({ figures: overview, chart: overviewChart }, unchanged),
  getRevenueStatsReport: report({ figures: revenue, chart: revenueChart }, unchanged),
  getTotalLeadsReport: report({ figures: totalLeads, chart: totalLeadsChart }, unchanged),
  getRevenueBySourcesReport: shares('source'),
  getRevenueByTypesReport: shares('type'),
  getTopSellingProductsReport: report({ figures: topProducts, chart: productsChart }, unchanged),
  getTopPersonsReport: report({ figures: topPersons, chart: personsChart }, unchanged),
  getOpenLeadsByStagesReport: report(
    { figures: openByStage, chart: openChart, period: readOptionalPeriod },
    (stages) => stages.map(({ id, name, count, lead_value }) => ({ id, name, count, lead_value })),
    ({ isAll, range }) => (isAll ? null : range),
  ),
  getForecastReport: report({ figures: forecast, chart: forecastChart, period: readForecastPeriod }, unchanged),
} satisfies Partial<Handlers>
