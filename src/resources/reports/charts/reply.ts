// Answers a request with a chart.
import type { Context } from '../../../kernel/context.ts'
import { type Download, download } from '../../../kernel/files/download.ts'
import { draw } from '../../../kernel/files/drawing.ts'
import { programAt } from '../../../kernel/runtime/offload.ts'
import type * as DrawEntry from './draw.entry.ts'
import type { Chart } from './draw.ts'

export const svg = 'image/svg+xml'

const drawChart = programAt<typeof DrawEntry>(import.meta.url, './draw.entry')

export const chartReply = async (ctx: Context, chart: Chart): Promise<Download> =>
  download({
    mediaType: svg,
    body: await draw(ctx, drawChart, chart),
    name: `${chart.name}.svg`,
    disposition: 'inline',
    // The SVG contains names of records. If a browser interpreted such a name as markup, this
    // policy would keep scripts from running.
    headers: { 'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'; sandbox" },
  })
