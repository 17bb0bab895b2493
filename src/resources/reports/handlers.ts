// Reports (DOMAIN 22.2): one function for all of them reads the period, asks for the figures, and answers them as JSON or, to a
// caller who prefers it, as a chart.
import type { Query, Schema } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import { preferred } from '../../kernel/files/content-negotiation.ts'
import { type Download, download } from '../../kernel/files/download.ts'
import { draw } from '../../kernel/files/drawing.ts'
import type { Handlers } from '../../kernel/handler.ts'
import { programAt } from '../../kernel/runtime/offload.ts'
import { today } from '../../kernel/values/format.ts'
import { textTag } from '../../kernel/write/etag.ts'
import {
  type ChartContext,
  forecastChart,
  openChart,
  overAllChart,
  personsChart,
  productsChart,
  revenueChart,
  shareChart,
  totalLeadsChart,
} from './charts/charts.ts'
import type * as DrawEntry from './charts/draw.entry.ts'
import type { Chart } from './charts/draw.ts'
import { type Period, readForecastPeriod, readOptionalPeriod, readPeriod } from './period.ts'
import { revenueBy, topPersons, topProducts } from './rankings.ts'
import { forecast, openByStage, overAll, revenue, totalLeads } from './statistics.ts'

type Asked = Query<'getOverAllReport'>

interface Report<Figures> {
  figures: (ctx: Context, period: Period, asked: Asked) => Promise<Figures>
  chart: (figures: Figures, about: ChartContext) => Chart
  period?: typeof readPeriod
}

interface Reply<Statistics, Range> {
  data: { statistics: Statistics; date_range: Range }
}

const svg = 'image/svg+xml'
const drawChart = programAt<typeof DrawEntry>(import.meta.url, './charts/draw.entry')

const rangeOf = ({ range }: Period): Schema<'ReportRange'> => range

/** `present` is for reports whose chart needs more than their reply has. */
const report =
  <Figures, Statistics, Range = Schema<'ReportRange'>>(
    { figures, chart, period: readRange = readPeriod }: Report<Figures>,
    present: (figures: Figures) => Statistics,
    told: (period: Period) => Range = rangeOf as (period: Period) => Range,
  ) =>
  async (ctx: Context, { query }: { query: Asked }): Promise<Reply<Statistics, Range> | Download> => {
    const { timezone, locale, currency } = ctx.services.config
    const period = readRange(query, today(ctx.time, timezone), timezone)
    const found = await figures(ctx, period, query)
    if (preferred(ctx, ['application/json', svg]) !== svg)
      return { data: { statistics: present(found), date_range: told(period) } }
    const wanted = chart(found, { period, tongue: { locale, currency } })
    const body = await draw(ctx, drawChart, wanted)
    return download({
      mediaType: svg,
      body,
      name: `${wanted.name}.svg`,
      disposition: 'inline',
      etag: textTag(body),
      // Names of records stand in it: should one ever be markup, it runs nothing.
      headers: { 'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'; sandbox" },
    })
  }

const same = <Statistics>(figures: Statistics): Statistics => figures

export const handlers = {
  getOverAllReport: report({ figures: overAll, chart: overAllChart }, same),
  getRevenueStatsReport: report({ figures: revenue, chart: revenueChart }, same),
  getTotalLeadsReport: report({ figures: totalLeads, chart: totalLeadsChart }, same),
  getRevenueBySourcesReport: report(
    {
      figures: (ctx, period, asked) => revenueBy(ctx, period, asked, 'lead_sources'),
      chart: (shares, about) => shareChart(shares, about, 'source'),
    },
    same,
  ),
  getRevenueByTypesReport: report(
    {
      figures: (ctx, period, asked) => revenueBy(ctx, period, asked, 'lead_types'),
      chart: (shares, about) => shareChart(shares, about, 'type'),
    },
    same,
  ),
  getTopSellingProductsReport: report({ figures: topProducts, chart: productsChart }, same),
  getTopPersonsReport: report({ figures: topPersons, chart: personsChart }, same),
  getOpenLeadsByStatesReport: report(
    { figures: openByStage, chart: openChart, period: readOptionalPeriod },
    (stages) => stages.map(({ id, name, total, lead_value }) => ({ id, name, total, lead_value })),
    ({ isAll, range }) => (isAll ? null : range),
  ),
  getForecastReport: report({ figures: forecast, chart: forecastChart, period: readForecastPeriod }, same),
} satisfies Partial<Handlers>
