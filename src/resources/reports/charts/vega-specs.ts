// Chart shapes as Vega-Lite specifications. They are plain data: names of records appear as values,
// never in expressions.
import { type ChartLocale, countText, moneyText, textWidth } from './texts.ts'

/** These colors can be distinguished with color blindness and in grayscale. */
export const colors = { plain: '#2f6fb2', won: '#1b9e77', lost: '#d9663a', before: '#8496a9', weighted: '#17406b' }

const plotWidth = 720

export type Measure = 'money' | 'count'

export const measureText = (value: number, measure: Measure, tongue: ChartLocale): string =>
  measure === 'money' ? moneyText(value, tongue) : countText(value, tongue)

/** Returns an axis of amounts or of counts. */
export const valueAxis = (title: string, measure: Measure, { locale, currency }: ChartLocale): object => ({
  title: measure === 'money' ? `${title} (${currency})` : title,
  labelExpr:
    measure === 'money'
      ? `accordMoney(datum.value, ${JSON.stringify(locale)}, ${JSON.stringify(currency)})`
      : `accordCount(datum.value, ${JSON.stringify(locale)})`,
  tickCount: 6,
  labelFlush: false,
  ...(measure === 'count' && { tickMinStep: 1 }),
})

/**
 * Names at the positions 0, 1, 2 … of an axis. Names alone cannot be positions, because two records
 * may share one.
 */
const nameAxis = { title: null, labelExpr: 'names[datum.value]', ticks: false, domain: false, labelPadding: 8 }

export interface Bar {
  name: string
  value: number
  text: string
}

/** Returns one horizontal bar per name in the given order, with its text at the end of the bar. */
export const barChart = (all: readonly Bar[], axis: object): object => ({
  params: [{ name: 'names', value: all.map(({ name }) => name) }],
  data: { values: all.map((bar, place) => ({ place, value: bar.value, text: bar.text })) },
  width: 560,
  height: { step: 40 },
  encoding: {
    y: {
      field: 'place',
      type: 'ordinal',
      sort: null,
      axis: nameAxis,
      scale: { paddingInner: 0.35, paddingOuter: 0.2 },
    },
    x: { field: 'value', type: 'quantitative', axis: { ...axis, domain: false, ticks: false } },
  },
  layer: [
    { mark: { type: 'bar', color: colors.plain } },
    { mark: { type: 'text', align: 'left', dx: 8 }, encoding: { text: { field: 'text' } } },
  ],
})

export interface Series {
  name: string
  color: string
  values: readonly number[]
}

const placeAxis = {
  title: null,
  labelExpr: 'names[datum.value]',
  labelAngle: 0,
  labelOverlap: false,
  labelPadding: 7,
  grid: false,
}

/** Keeps every n-th label, so that the labels fit into the width, and empties the others. */
function thinned(names: readonly string[], width: number): string[] {
  const widest = Math.max(...names.map((name) => textWidth(name, 12, false)))
  const step = Math.ceil(((widest + 14) * names.length) / width)
  return names.map((name, place) => (place % step === 0 ? name : ''))
}

const longData = (series: readonly Series[]): object => ({
  values: series.flatMap(({ name, values }) => values.map((value, place) => ({ place, series: name, value }))),
})

const colorEncoding = (series: readonly Series[]): object => ({
  field: 'series',
  type: 'nominal',
  sort: null,
  scale: { domain: series.map(({ name }) => name), range: series.map(({ color }) => color) },
})

const shapes = ['circle', 'square', 'triangle-up']

/** Returns line charts over the same positions, one panel below the other, with one legend. */
export const lineChart = (
  names: readonly string[],
  panels: readonly { series: readonly Series[]; axis: object }[],
): object => ({
  params: [{ name: 'names', value: thinned(names, plotWidth) }],
  spacing: 28,
  vconcat: panels.map(({ series, axis }) => ({
    data: longData(series),
    width: plotWidth,
    height: 210,
    encoding: {
      x: { field: 'place', type: 'ordinal', axis: placeAxis, scale: { type: 'point', padding: 0.4 } },
      y: { field: 'value', type: 'quantitative', axis: { ...axis, domain: false, ticks: false } },
      color: colorEncoding(series),
    },
    layer: [
      { mark: { type: 'line', strokeWidth: 2.2, strokeJoin: 'round' } },
      {
        mark: { type: 'point', filled: true, size: names.length > 31 ? 22 : 44, opacity: 1 },
        encoding: { shape: { field: 'series', scale: { domain: series.map(({ name }) => name), range: shapes } } },
      },
    ],
  })),
})

/** Returns grouped bars at each position. */
export const groupedBarChart = (
  names: readonly string[],
  series: readonly Series[],
  axis: object,
  { width = plotWidth, written }: { width?: number; written?: (value: number) => string } = {},
): object => ({
  params: [{ name: 'names', value: thinned(names, width) }],
  data: {
    values: series.flatMap(({ name, values }) =>
      values.map((value, place) => ({ place, series: name, value, text: written?.(value) ?? '' })),
    ),
  },
  width,
  height: 300,
  encoding: {
    x: { field: 'place', type: 'ordinal', axis: { ...placeAxis, ticks: false }, scale: { paddingInner: 0.3 } },
    xOffset: {
      field: 'series',
      type: 'nominal',
      sort: null,
      scale: { domain: series.map(({ name }) => name), paddingInner: 0.08 },
    },
    y: { field: 'value', type: 'quantitative', axis: { ...axis, domain: false, ticks: false } },
    color: colorEncoding(series),
  },
  layer: [
    { mark: { type: 'bar' } },
    ...(written
      ? [{ mark: { type: 'text', dy: -8 }, encoding: { text: { field: 'text' }, color: { value: '#1f2933' } } }]
      : []),
  ],
})

export interface Panel {
  name: string
  /** The change between the two values as text. */
  change: string
  previous: number
  current: number
  measure: Measure
}

const periods = ['Before', 'Period']

/** Returns small pairs of bars, each pair with its own scale, for figures of different kinds. */
export const pairedBars = (panels: readonly Panel[], tongue: ChartLocale): object => ({
  columns: 3,
  spacing: { row: 30, column: 48 },
  concat: panels.map(({ name, change, previous, current, measure }) => ({
    title: {
      text: name,
      subtitle: change,
      fontSize: 13,
      subtitleFontSize: 12,
      subtitlePadding: 3,
      offset: 8,
      frame: 'group',
    },
    data: {
      values: [previous, current].map((value, place) => ({
        period: periods[place],
        value,
        text: measureText(value, measure, tongue),
      })),
    },
    width: 190,
    height: 130,
    encoding: {
      x: {
        field: 'period',
        type: 'nominal',
        sort: null,
        axis: { title: null, labelAngle: 0, ticks: false },
        scale: { paddingInner: 0.25 },
      },
      y: {
        field: 'value',
        type: 'quantitative',
        axis: null,
        // Leaves room for the numbers, also when both values are zero.
        scale: { domain: [0, Math.max(previous, current) * 1.2 || 1] },
      },
    },
    layer: [
      {
        mark: { type: 'bar' },
        encoding: {
          color: { field: 'period', legend: null, scale: { domain: periods, range: [colors.before, colors.plain] } },
        },
      },
      { mark: { type: 'text', dy: -9, fontWeight: 600 }, encoding: { text: { field: 'text' } } },
    ],
  })),
})

/** Returns a chart that shows a sentence instead of data. */
export const emptyChart = (sentence: string): object => ({
  data: { values: [{}] },
  width: plotWidth,
  height: 160,
  mark: { type: 'text', text: sentence, fontSize: 15, color: '#52606d' },
})
