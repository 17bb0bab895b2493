// The chart of POST /reports/query: a bar for each row, and beside it one of the period before.
import type { Schema } from '../../../contract/types.ts'
import type { Chart } from './draw.ts'
import { type ChartLocale, countText, moneyText, rangeText } from './texts.ts'
import { barChart, colors, emptyChart, groupedBarChart, valueAxis } from './vega-specs.ts'

type Data = Schema<'ReportQueryData'>

/** The most bars of a chart. The rows that follow are left out, which the subtitle says. */
const maxBars = 40

const textOf = (value: number | null, { unit }: Data, tongue: ChartLocale): string => {
  if (value === null) return '–'
  if (unit === 'money') return moneyText(value, tongue)
  const text = countText(value, tongue)
  return unit === 'percent' ? `${text} %` : unit === 'days' ? `${text} days` : text
}

export function queryChart(data: Data, title: string, { locale, currency }: ChartLocale): Chart {
  const tongue = { locale, currency }
  const all = data.group_by ? data.rows : [data.total]
  const rows = all.slice(0, maxBars)
  const name = 'report'
  const days = data.period && rangeText({ start: data.period.from, end: data.period.to }, tongue)
  const cut = rows.length < all.length ? `, the first ${maxBars} of ${all.length}` : ''
  const subtitle = `${days ?? 'All that are open now'}${cut}`
  const heading = data.group_by ? `${title} by ${data.group_by.replaceAll('_', ' ')}` : title
  if (rows.length === 0) {
    const sentence = 'Nothing was counted in this period.'
    return { name, title: heading, subtitle, summary: sentence, spec: emptyChart(sentence) }
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
  return { name, title: heading, subtitle, summary, spec }
}
