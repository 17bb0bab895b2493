// Builds the chart of each report, with a description in words. vega-specs.ts defines the shapes of
// charts, and draw.ts draws a chart.
import type { Schema } from '../../../contract/types.ts'
import { toScaled, totalOf } from '../../../kernel/values/money.ts'
import type { Period } from '../period.ts'
import { type BucketUnit, bucketLabel, bucketUnit } from '../period.ts'
import type { StageShare } from '../statistics.ts'
import type { Chart } from './draw.ts'
import { bucketText, type ChartLocale, changeText, countText, moneyText, rangeText } from './texts.ts'
import {
  type Bar,
  barChart,
  barPanels,
  colors,
  emptyChart,
  groupedBarChart,
  lineChart,
  measureText,
  type Panel,
  pairedBars,
  valueAxis,
} from './vega-specs.ts'

export interface ChartContext {
  period: Period
  /** The date of today in the time zone of the installation, YYYY-MM-DD. */
  today: string
  tongue: ChartLocale
}

/**
 * Returns a chart. `words` are sentences that describe the chart for screen readers. `empty` is the
 * sentence to show instead of the chart when there is no data, else null.
 */
function chart(
  { period, tongue }: ChartContext,
  name: string,
  title: string,
  words: readonly string[],
  drawn: { empty: string | null; headline?: string; spec: () => object },
): Chart {
  const subtitle = period.isAll ? 'All that are open now' : rangeText(period.range, tongue)
  const head = { name, title, subtitle }
  if (drawn.empty !== null) return { ...head, headline: null, summary: drawn.empty, spec: emptyChart(drawn.empty) }
  return { ...head, headline: drawn.headline ?? null, summary: words.join(' '), spec: drawn.spec() }
}

/**
 * Returns the days, weeks or months that a chart shows: from the first with data to the last with
 * data, or to that of today if it is later. Those in between without data are zero. A chart thus
 * begins when there is something to see, shows a standstill until today, and no empty future.
 */
export function shownBuckets<Bucket>(
  buckets: readonly Bucket[],
  about: Pick<ChartContext, 'today'>,
  unit: BucketUnit,
  { labelOf, hasData }: { labelOf: (bucket: Bucket) => string; hasData: (bucket: Bucket) => boolean },
): readonly Bucket[] {
  const first = buckets.findIndex(hasData)
  if (first < 0) return buckets
  const last = buckets.findLastIndex(hasData)
  const now = bucketLabel(about.today, unit)
  return buckets.slice(first).filter((bucket, place) => place <= last - first || labelOf(bucket) <= now)
}

const maxBars = 24
const emptyIf = (isEmpty: boolean, sentence: string): string | null => (isEmpty ? sentence : null)
/**
 * Returns one bar per item, at most `maxBars` bars. `joinRest` returns a single bar for all items
 * that do not fit.
 */
function capped<Item>(
  items: readonly Item[],
  present: (item: Item) => Bar,
  joinRest: (rest: readonly Item[]) => Bar,
): Bar[] {
  if (items.length <= maxBars) return items.map(present)
  return [...items.slice(0, maxBars - 1).map(present), joinRest(items.slice(maxBars - 1))]
}

const sumOf = (amounts: readonly number[]): number => totalOf(amounts.map(toScaled))
const describeBars = (all: readonly Bar[]): string[] => all.map(({ name, text }) => `${name}: ${text}.`)

export function overviewChart(figures: Schema<'OverviewStatistics'>, about: ChartContext): Chart {
  const { tongue } = about
  const kinds = [
    ['Average lead value', figures.average_lead_value, 'money'],
    ['Leads', figures.total_leads, 'count'],
    ['Leads per day', figures.average_leads_per_day, 'count'],
    ['Quotes', figures.total_quotes, 'count'],
    ['Persons', figures.total_persons, 'count'],
    ['Organizations', figures.total_organizations, 'count'],
  ] as const
  const panels = kinds.map(([name, { previous, current, change_percent }, measure]): Panel => {
    const unit = measure === 'money' ? `${name} (${tongue.currency})` : name
    return { name: unit, change: changeText(change_percent, tongue), previous, current, measure }
  })
  const words = kinds.map(
    ([name, { previous, current }, measure]) =>
      `${name}: ${measureText(current, measure, tongue)}, before ${measureText(previous, measure, tongue)}.`,
  )
  const isEmpty = panels.every(({ previous, current }) => previous === 0 && current === 0)
  return chart(about, 'overview', 'Created in this period and the one before', words, {
    empty: emptyIf(isEmpty, 'Nothing was created in this period or the one before.'),
    spec: () => pairedBars(panels, tongue),
  })
}

export function revenueChart({ won_revenue, lost_revenue }: Schema<'RevenueStatistics'>, about: ChartContext): Chart {
  const { tongue } = about
  const kinds = [
    ['Won', won_revenue],
    ['Lost', lost_revenue],
  ] as const
  const names = kinds.map(([name, { change_percent }]) =>
    change_percent === null ? name : `${name} (${changeText(change_percent, tongue)})`,
  )
  const words = kinds.map(
    ([name, { previous, current }]) => `${name}: ${moneyText(current, tongue)}, before ${moneyText(previous, tongue)}.`,
  )
  const series = [
    { name: 'Period before', color: colors.before, values: kinds.map(([, { previous }]) => previous) },
    { name: 'This period', color: colors.plain, values: kinds.map(([, { current }]) => current) },
  ]
  return chart(about, 'revenue-stats', 'Won and lost revenue', words, {
    empty: emptyIf(
      series.every(({ values }) => values.every((value) => value === 0)),
      'Nothing was won or lost in this period or the one before.',
    ),
    headline: `${moneyText(won_revenue.current, tongue)} won`,
    spec: () =>
      groupedBarChart(names, series, valueAxis('Lead value', 'money', tongue), {
        width: 520,
        written: (value) => moneyText(value, tongue),
      }),
  })
}

export function totalLeadsChart(statistics: Schema<'TotalLeadsStatistics'>, about: ChartContext): Chart {
  const { tongue, period } = about
  const unit = bucketUnit(period)
  const { all, won, lost } = statistics
  const places = all.over_time.map(({ label }, place) => ({ label, place }))
  const shown = shownBuckets(places, about, unit, {
    labelOf: ({ label }) => label,
    hasData: ({ place }) => [all, won, lost].some(({ over_time }) => (over_time[place]?.count ?? 0) > 0),
  })
  const kinds = [
    ['Created', all.over_time, colors.plain],
    ['Won', won.over_time, colors.won],
    ['Lost', lost.over_time, colors.lost],
  ] as const
  const panel = (value: 'count' | 'lead_value') =>
    kinds.map(([name, buckets, color]) => ({
      name,
      color,
      values: shown.map(({ place }) => buckets[place]?.[value] ?? 0),
    }))
  const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0)
  const counts = panel('count').map(({ name, values }) => ({ name, count: countText(sum(values), tongue) }))
  const words = counts.map(({ name, count }) => `${name}: ${count} leads.`)
  const names = shown.map(({ label }) => bucketText(label, unit, tongue))
  const panels = () => [
    { series: panel('count'), axis: valueAxis('Leads', 'count', tongue) },
    { series: panel('lead_value'), axis: valueAxis('Lead value', 'money', tongue) },
  ]
  return chart(about, 'total-leads', `Leads by ${unit}`, words, {
    empty: emptyIf(
      kinds.every(([, buckets]) => buckets.every(({ count }) => count === 0)),
      'No leads were created, won or lost in this period.',
    ),
    headline: counts.map(({ name, count }) => `${count} ${name.toLowerCase()}`).join(' · '),
    // A line between few points suggests a course that was never measured.
    spec: () => (names.length <= fewPoints ? barPanels(names, panels()) : lineChart(names, panels())),
  })
}

const fewPoints = 6

export function shareChart(
  shares: readonly Schema<'ReportShare'>[],
  about: ChartContext,
  by: 'source' | 'type',
): Chart {
  const { tongue } = about
  const bar = (name: string, revenue: number): Bar => ({ name, value: revenue, text: moneyText(revenue, tongue) })
  const all = capped(
    shares,
    ({ name, revenue }) => bar(name, revenue),
    (rest) => bar(`${rest.length} others`, sumOf(rest.map(({ revenue }) => revenue))),
  )
  return chart(about, `revenue-by-${by}s`, `Won revenue by ${by}`, describeBars(all), {
    empty: emptyIf(all.length === 0, 'No leads were won in this period.'),
    headline: `${moneyText(sumOf(shares.map(({ revenue }) => revenue)), tongue)} won`,
    spec: () => barChart(all, valueAxis('Won lead value', 'money', tongue)),
  })
}

/** Returns the revenue of a ranking, which says of how many records it is, as others may follow. */
function ofBest(ranked: readonly { revenue: number }[], [one, many]: [string, string], tongue: ChartLocale): string {
  const revenue = moneyText(sumOf(ranked.map((each) => each.revenue)), tongue)
  return `${revenue} from ${countText(ranked.length, tongue)} ${ranked.length === 1 ? one : many}`
}

export function productsChart(products: readonly Schema<'ReportProduct'>[], about: ChartContext): Chart {
  const { tongue } = about
  const all = products.map(({ name, revenue, quantity }) => ({
    name,
    value: revenue,
    text: `${moneyText(revenue, tongue)} · ${countText(quantity, tongue)} sold`,
  }))
  return chart(about, 'top-selling-products', 'Best-selling products', describeBars(all), {
    empty: emptyIf(all.length === 0, 'No products were sold in this period.'),
    headline: ofBest(products, ['product', 'products'], tongue),
    spec: () => barChart(all, valueAxis('Revenue on won leads', 'money', tongue)),
  })
}

export function personsChart(persons: readonly Schema<'ReportPerson'>[], about: ChartContext): Chart {
  const { tongue } = about
  const all = persons.map(({ name, revenue }) => ({ name, value: revenue, text: moneyText(revenue, tongue) }))
  return chart(about, 'top-persons', 'Best customers', describeBars(all), {
    empty: emptyIf(all.length === 0, 'No leads of a person were won in this period.'),
    headline: ofBest(persons, ['person', 'persons'], tongue),
    spec: () => barChart(all, valueAxis('Won lead value', 'money', tongue)),
  })
}

export function openChart(stages: readonly StageShare[], about: ChartContext): Chart {
  const { tongue } = about
  const pipelines = new Set(stages.map(({ pipeline }) => pipeline))
  const bar = (name: string, count: number, value: number): Bar => ({
    name,
    value: count,
    text: `${countText(count, tongue)} · ${moneyText(value, tongue)}`,
  })
  const all = capped(
    stages,
    ({ name, pipeline, count, lead_value }) =>
      bar(pipelines.size > 1 ? `${pipeline}: ${name}` : name, count, lead_value),
    (rest) => {
      const count = rest.reduce((sum, stage) => sum + stage.count, 0)
      return bar(`${rest.length} others`, count, sumOf(rest.map(({ lead_value }) => lead_value)))
    },
  )
  const total = stages.reduce((sum, { count }) => sum + count, 0)
  return chart(about, 'open-leads-by-stages', 'Open leads by stage', describeBars(all), {
    headline: `${countText(total, tongue)} open · ${moneyText(sumOf(stages.map((stage) => stage.lead_value)), tongue)}`,
    empty: emptyIf(all.length === 0, about.period.isAll ? 'No lead is open.' : 'No lead of this period is open.'),
    spec: () => barChart(all, valueAxis('Open leads', 'count', tongue)),
  })
}

export function forecastChart(all: readonly Schema<'ReportMonth'>[], about: ChartContext): Chart {
  const { tongue } = about
  const hasData = ({ count }: Schema<'ReportMonth'>): boolean => count > 0
  const months = shownBuckets(all, about, 'month', { labelOf: ({ month }) => month, hasData })
  const values = months.map(({ lead_value }) => lead_value)
  const weighted = months.map(({ weighted_value }) => weighted_value)
  const series = [
    { name: 'Lead value', color: colors.before, values },
    { name: 'Weighted by probability', color: colors.weighted, values: weighted },
  ]
  const words = months
    .filter(hasData)
    .map(
      ({ month, lead_value, weighted_value }) =>
        `${bucketText(month, 'month', tongue)}: ${moneyText(lead_value, tongue)}, weighted ${moneyText(weighted_value, tongue)}.`,
    )
  const names = months.map(({ month }) => bucketText(month, 'month', tongue))
  return chart(about, 'forecast', 'Expected revenue of open leads', words, {
    empty: emptyIf(words.length === 0, 'No open lead is expected to close in this period.'),
    headline: `${moneyText(sumOf(weighted), tongue)} weighted, of ${moneyText(sumOf(values), tongue)}`,
    spec: () => groupedBarChart(names, series, valueAxis('Lead value', 'money', tongue)),
  })
}
