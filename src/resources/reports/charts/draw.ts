// Draws a chart as SVG with Vega-Lite, in a subprocess (draw.entry.ts). Vega-Lite needs no DOM, and
// always draws the same SVG for the same data. ECharts was not chosen: it takes 67 MB on disk
// instead of 25 MB, and its element ids change from chart to chart (measured).
import * as vega from 'vega'
import { compile, type Config as Look, type TopLevelSpec } from 'vega-lite'
import { escapeHtml } from '../../../kernel/values/format.ts'
import { shortCount, shortMoney, textWidth } from './texts.ts'

export interface Chart {
  /** The file name of the chart without extension, and the prefix of the element ids in the SVG. */
  name: string
  title: string
  subtitle: string
  /** The figure that readers look for first, above the chart; null for a chart without one. */
  headline: string | null
  /** The content of the chart in words, for screen readers. */
  summary: string
  spec: object
}

// The types of Vega lack `textMetrics`. A server must replace `textMetrics.width`, because a server
// has no canvas to measure text.
const { textMetrics } = vega as unknown as { textMetrics: { width(item: TextItem, text: unknown): number } }

interface TextItem {
  fontSize?: number
  fontWeight?: string | number
  /** The width in pixels at which Vega cuts the text off. */
  limit?: number
}

textMetrics.width = ({ fontSize = 11, fontWeight, limit = 0 }, text) => {
  const width = textWidth(String(text ?? ''), fontSize, fontWeight === 'bold' || Number(fontWeight) >= 600)
  return limit > 0 ? Math.min(width, limit) : width
}

// The axis labels of vega-specs.ts call these functions with the locale and currency of the
// installation.
vega.expressionFunction('accordMoney', (value: number, locale: string, currency: string) =>
  shortMoney(value, { locale, currency }),
)
vega.expressionFunction('accordCount', (value: number, locale: string) => shortCount(value, { locale }))

const ink = '#1f2933'
const faint = '#52606d'
const line = '#e4e7eb'

const look: Look = {
  background: '#ffffff',
  padding: 20,
  font: 'Helvetica, Arial, sans-serif',
  // Vega adds no ARIA attributes to single elements, because `drawSvg` adds a title and a
  // description of the whole SVG.
  aria: false,
  view: { stroke: null },
  title: {
    anchor: 'start',
    frame: 'bounds',
    fontSize: 18,
    fontWeight: 600,
    color: ink,
    subtitleFontSize: 13,
    subtitleColor: faint,
    subtitlePadding: 6,
    offset: 18,
  },
  axis: {
    labelFontSize: 12,
    labelColor: faint,
    labelLimit: 230,
    titleFontSize: 12,
    titleFontWeight: 600,
    titleColor: faint,
    titlePadding: 10,
    gridColor: line,
    domainColor: '#9aa5b1',
    tickColor: '#9aa5b1',
  },
  legend: { orient: 'top', title: null, labelFontSize: 12, labelColor: ink, symbolSize: 120, columnPadding: 18 },
  header: { labelFontSize: 13, labelFontWeight: 600, labelColor: ink, title: null, labelPadding: 8 },
  text: { fontSize: 12, color: ink },
}

/** Returns the chart below its headline. Vega takes parameters at the top only. */
function headed({ params, ...spec }: { params?: unknown }, headline: string | null): object {
  if (headline === null) return { ...(params !== undefined && { params }), ...spec }
  const figure = { type: 'text', text: headline, align: 'left', x: 0, fontSize: 28, fontWeight: 600 }
  const above = { data: { values: [{}] }, width: textWidth(headline, 28, true), height: 30, mark: figure }
  const resolve = { legend: { color: 'independent', shape: 'independent' } }
  const layout = { align: 'none', bounds: 'full', spacing: 14, resolve }
  return { ...(params !== undefined && { params }), ...layout, vconcat: [above, spec] }
}

/** Matches characters that XML does not allow, but names of records may contain. */
const notAllowedInXml = /[^\t\n\r\u{20}-\u{d7ff}\u{e000}-\u{fffd}\u{10000}-\u{10ffff}]/gu

export async function drawSvg({ name, title, subtitle, headline, summary, spec }: Chart): Promise<string> {
  const whole = { ...headed(spec, headline), title: { text: title, subtitle }, config: look } as TopLevelSpec
  const quiet = vega.logger(vega.None)
  const view = new vega.View(vega.parse(compile(whole, { logger: quiet }).spec), { renderer: 'none', logger: quiet })
  try {
    const svg = await view.toSVG()
    const head = `<title id="${name}-title">${escapeHtml(title)}</title><desc id="${name}-desc">${escapeHtml([subtitle, headline, summary].filter(Boolean).join('. '))}</desc>`
    return svg
      .replace('<svg ', `<svg role="img" aria-labelledby="${name}-title ${name}-desc" `)
      .replace(/^<svg [^>]*>/, (opening) => opening + head)
      .replaceAll(notAllowedInXml, '\ufffd')
  } finally {
    view.finalize()
  }
}
