// Draws the cost of each kind of request over the number of leads, in one chart per kind with both
// servers. Both axes are logarithmic. A horizontal line means that the cost does not depend on the
// number of leads.
import type { Row } from './report.ts'

const [width, height, columns, edge] = [230, 150, 4, 38]
const colors = { accord: '#1f77b4', limit: '#999999' } as const

const log = Math.log10
const short = (leads: number): string => (leads >= 1e6 ? `${leads / 1e6}M` : `${leads / 1e3}k`)

export function draw(rows: readonly Row[]): string {
  const kinds = [...new Set(rows.map(({ kind }) => kind))]
  const costs = rows.flatMap(({ costs: { accord, limit } }) => [accord.cpuMs, limit.cpuMs])
  const [low, high] = [Math.floor(log(Math.min(...costs))), Math.ceil(log(Math.max(...costs)))]
  const numbers = [...new Set(rows.map(({ leads }) => leads))].sort((one, other) => one - other)
  const [from = 1, to = 1] = [numbers[0], numbers.at(-1)]
  const span = Math.max(1e-9, log(to) - log(from))
  const x = (leads: number): number => edge + ((log(leads) - log(from)) / span) * (width - edge - 16)
  const y = (ms: number): number => height - 24 - ((log(ms) - low) / (high - low)) * (height - 48)
  const field = (kind: string, index: number): string => {
    const own = rows.filter((row) => row.kind === kind).sort((one, other) => one.leads - other.leads)
    const ticks = Array.from({ length: high - low + 1 }, (_, step) => 10 ** (low + step))
    const parts = [
      `<text x="${edge}" y="14" font-weight="bold">${kind}</text>`,
      ...ticks.map(
        (ms) =>
          `<line x1="${edge}" x2="${width - 12}" y1="${y(ms).toFixed(1)}" y2="${y(ms).toFixed(1)}" stroke="#e5e5e5"/><text x="${edge - 4}" y="${(y(ms) + 3).toFixed(1)}" text-anchor="end">${ms}</text>`,
      ),
      ...numbers.map(
        (leads) => `<text x="${x(leads).toFixed(1)}" y="${height - 8}" text-anchor="middle">${short(leads)}</text>`,
      ),
      ...(['limit', 'accord'] as const).flatMap((name) => {
        const points = own.map(({ leads, costs: found }) => [x(leads), y(found[name].cpuMs)] as const)
        const line = points.map(([left, top]) => `${left.toFixed(1)},${top.toFixed(1)}`).join(' ')
        return [
          `<polyline points="${line}" fill="none" stroke="${colors[name]}" stroke-width="1.5"/>`,
          ...points.map(
            ([left, top]) => `<circle cx="${left.toFixed(1)}" cy="${top.toFixed(1)}" r="2.5" fill="${colors[name]}"/>`,
          ),
        ]
      }),
    ]
    const [left, top] = [(index % columns) * width, 24 + Math.floor(index / columns) * height]
    return `<g transform="translate(${left} ${top})">${parts.join('')}</g>`
  }
  const wide = columns * width
  const high2 = 24 + Math.ceil(kinds.length / columns) * height
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${wide} ${high2}" width="${wide}" height="${high2}" font-family="sans-serif" font-size="9">`,
    '<title>What a request costs against the number of leads</title>',
    `<rect width="${wide}" height="${high2}" fill="white"/>`,
    `<text x="8" y="16" font-size="11">Milliseconds of processor for a request against the number of leads: <tspan fill="${colors.accord}">accord</tspan>, <tspan fill="${colors.limit}">limit</tspan></text>`,
    ...kinds.map(field),
    '</svg>\n',
  ].join('\n')
}
