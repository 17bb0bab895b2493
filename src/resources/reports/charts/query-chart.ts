// The chart of POST /reports/query: a bar for each row, and beside it one of the period before.
import type { Schema } from '../../../contract/types.ts'
import { shownBuckets } from './charts.ts'
import type { Chart } from './draw.ts'
import { bucketText, type ChartLocale, countText, moneyText, percentText, rangeText } from './texts.ts'
import { barChart, colors, emptyChart, groupedBarChart, valueAxis } from './vega-specs.ts'

type Data = Schema<'ReportQueryData'>
type Row = Data['rows'][number]

/** The most bars of a chart. The rows that follow are left out, which the subtitle says. */
const maxBars = 40

const textOf = (value: number | null, { unit }: Data, tongue: ChartLocale): string => {
  if (value === null) return '–'
  if (unit === 'money') return moneyText(value, tongue)
  if (unit === 'percent') return percentText(value, tongue)
  const text = countText(value, tongue)
  return unit === 'days' ? `${text} days` : text
}

/** Returns the rows to draw, with the names of days and months as charts write them. */
function rowsOf({ group_by, rows, total }: Data, { tongue, today }: QueryChartContext): Row[] {
  if (!group_by) return [total]
  const unit = timeUnits.find((each) => group_by.endsWith(each))
  if (unit === undefined) return rows
  const hasData = ({ value, previous }: Row): boolean => (value ?? 0) !== 0 || (previous ?? 0) !== 0
  return shownBuckets(rows, { today }, unit, { labelOf: ({ key }) => key ?? '', hasData }).map((row) =>
    row.key === row.label ? { ...row, label: bucketText(row.label, unit, tongue) } : row,
  )
}

const timeUnits = ['day', 'week', 'month'] as const

interface QueryChartContext {
  tongue: ChartLocale
  /** The date of today in the time zone of the installation, YYYY-MM-DD. */
  today: string
}

export function queryChart(data: Data, title: string, about: QueryChartContext): Chart {
  const { tongue } = about
  const all = rowsOf(data, about)
  const rows = all.slice(0, maxBars)
  const name = 'report'
  const days = data.period && rangeText({ start: data.period.from, end: data.period.to }, tongue)
  const cut = rows.length < all.length ? `, the first ${maxBars} of ${all.length}` : ''
  const subtitle = `${days ?? 'All that are open now'}${cut}`
  const heading = data.group_by ? `${title} by ${data.group_by.replaceAll('_', ' ')}` : title
  if (rows.length === 0) {
    const sentence = 'Nothing was counted in this period.'
    return { name, title: heading, subtitle, headline: null, summary: sentence, spec: emptyChart(sentence) }
  }
  const summary = rows.map(({ label, value }) => `${label}: ${textOf(value, data, tongue)}.`).join(' ')
  const measure = data.unit === 'money' ? 'money' : 'count'
  const unit = data.unit === 'percent' ? `${title} (%)` : title
  const axis = valueAxis(unit, measure, tongue)
  const names = rows.map(({ label }) => label)
  const values = (of: 'value' | 'previous') => rows.map((row) => row[of] ?? 0)
  const before = { name: 'Period before', color: colors.before, values: values('previous') }
  const now = { name: 'This period', color: colors.plain, values: values('value') }
  const spec = data.compared
    ? groupedBarChart(names, [before, now], axis)
    : barChart(
        rows.map(({ label, value }) => ({ name: label, value: value ?? 0, text: textOf(value, data, tongue) })),
        axis,
      )
  return { name, title: heading, subtitle, headline: textOf(data.total.value, data, tongue), summary, spec }
}
