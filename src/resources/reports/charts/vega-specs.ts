// Vega-Lite specifications of the chart shapes. Names of records appear only as data values and
// never in expressions, so that Vega cannot execute a name.
import { type ChartLocale, countText, moneyText, textWidth } from './texts.ts'

/**
 * The colors of bars and lines. They are distinguishable with color blindness and in a grayscale
 * print.
 */
export const colors = { plain: '#2f6fb2', won: '#1b9e77', lost: '#d9663a', before: '#8496a9', weighted: '#17406b' }

const plotWidth = 720

export type Measure = 'money' | 'count'

export const measureText = (value: number, measure: Measure, tongue: ChartLocale): string =>
  measure === 'money' ? moneyText(value, tongue) : countText(value, tongue)

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
 * An axis that shows the name of each bar at the positions 0, 1, 2 and so on. Names cannot be
 * positions, because two records may have the same name.
 */
const nameAxis = { title: null, labelExpr: 'names[datum.value]', ticks: false, domain: false, labelPadding: 8 }

export interface Bar {
  name: string
  value: number
  text: string
}

/**
 * Returns a chart with one horizontal bar per entry, in the given order. The text of an entry is at
 * the end of its bar.
 */
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

/**
 * Keeps every n-th label and empties the others, so that the kept labels fit into `width` (pixels).
 */
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

/** A chart of several series, with a y-axis of its own. */
interface SeriesPanel {
  series: readonly Series[]
  axis: object
}

/** Returns panels, stacked vertically, with the same positions on the x-axis. */
const stacked = (
  names: readonly string[],
  panels: readonly SeriesPanel[],
  drawn: (panel: SeriesPanel) => object,
): object => ({
  params: [{ name: 'names', value: thinned(names, plotWidth) }],
  spacing: 28,
  vconcat: panels.map((panel) => ({ data: longData(panel.series), width: plotWidth, height: 210, ...drawn(panel) })),
})

/** Returns one line chart per panel. All panels share one legend. */
export const lineChart = (names: readonly string[], panels: readonly SeriesPanel[]): object =>
  stacked(names, panels, ({ series, axis }) => ({
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
  }))

/** Returns the panels of `lineChart` with groups of bars, for few positions. */
export const barPanels = (names: readonly string[], panels: readonly SeriesPanel[]): object =>
  stacked(names, panels, ({ series, axis }) => ({ encoding: groupedBars(series, axis), mark: { type: 'bar' } }))

/** The positions of groups of bars, one bar per series. */
const groupedBars = (series: readonly Series[], axis: object) => ({
  x: { field: 'place', type: 'ordinal', axis: { ...placeAxis, ticks: false }, scale: { paddingInner: 0.3 } },
  xOffset: {
    field: 'series',
    type: 'nominal',
    sort: null,
    scale: { domain: series.map(({ name }) => name), paddingInner: 0.08 },
  },
  y: { field: 'value', type: 'quantitative', axis: { ...axis, domain: false, ticks: false } },
  color: colorEncoding(series),
})

/**
 * Returns a chart with a group of bars at each position, one bar per series. `written` returns the
 * text above a bar.
 */
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
  encoding: groupedBars(series, axis),
  layer: [
    { mark: { type: 'bar' } },
    ...(written
      ? [{ mark: { type: 'text', dy: -8 }, encoding: { text: { field: 'text' }, color: { value: '#1f2933' } } }]
      : []),
  ],
})

export interface Panel {
  name: string
  /** The change from `previous` to `current`, as text. */
  change: string
  previous: number
  current: number
  measure: Measure
}

const periods = ['Before', 'Period']

/**
 * Returns one small chart per panel with a bar for the previous and the current value. Each panel
 * has its own scale, because the metrics have different units.
 */
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
        // The factor leaves room for the numbers above the bars. Without `|| 1`, the scale would be
        // empty when both values are zero.
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
