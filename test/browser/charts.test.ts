// The charts of reports in a browser: the SVG is well-formed, all texts are inside the picture, and
// no texts overlap, in a full and in an empty installation.
import type { Page } from 'playwright-core'
import { beforeAll, expect, it } from 'vitest'
import type { TestServer } from '../support/app.ts'
import { facts } from '../support/schema.ts'
import { useOne, useSharedServer } from '../support/using.ts'
import { browserTests, openBrowser } from './chromium.ts'

const { describe } = browserTests

const drawing = facts.filter(([, { produces }]) => produces.includes('image/svg+xml'))
const reports = drawing.map(([, { path }]) => path)
const asked = new Set(drawing.flatMap(([, { method, path }]) => (method === 'post' ? [path] : [])))
/** The queries of a report that has its question in the body. */
const questions = [
  { measure: 'won_value', group_by: 'user', period: 'this_year', compare: true },
  { measure: 'leads_count', group_by: 'month', period: 'this_year' },
]

let page: Page
const browser = useOne(openBrowser)
beforeAll(async () => {
  page = await browser.newPage({ viewport: { width: 1280, height: 900 } })
})

interface Word {
  text: string
  left: number
  right: number
  top: number
  bottom: number
}

/**
 * Returns the texts of a chart with their positions in the browser, and the size of the picture.
 */
async function drawn(svg: string): Promise<{ words: Word[]; width: number; height: number; root: string }> {
  await page.goto(`data:image/svg+xml;base64,${Buffer.from(svg).toString('base64')}`)
  return page.evaluate(() => {
    const { documentElement: root } = document
    const words = Array.from(document.querySelectorAll('text'))
      .filter((each) => each.textContent !== '')
      .map((each) => {
        const { left, right, top, bottom } = each.getBoundingClientRect()
        return { text: each.textContent ?? '', left, right, top, bottom }
      })
    const { width, height } = root.getBoundingClientRect()
    return { words, width, height, root: root.nodeName }
  })
}

// Text boxes are higher than their letters, so an overlap of up to 6 pixels in height is ignored.
const overlap = (one: Word, other: Word): boolean =>
  one.left < other.right && other.left < one.right && one.top + 3 < other.bottom - 3 && other.top + 3 < one.bottom - 3

const month = ''
const months = '?start=2026-01-01&end=2026-06-15'
const years = '?start=2024-06-01&end=2027-05-31'

async function fill({ admin }: TestServer): Promise<void> {
  const names = [
    'Web',
    'A name that is much too long to fit at the side of any chart whatsoever',
    '<b>Trade & fair</b>',
  ]
  const products: number[] = []
  for (const name of names) {
    const sku = `sku-${products.length}`
    products.push((await admin.post('/products', { sku, name, price: 1234.5 })).body.data.id)
    await admin.post('/sources', { name: `${name} again` })
  }
  for (let index = 0; index < 40; index++) {
    const day = String((index % 27) + 1).padStart(2, '0')
    const stage = [1, 2, 3, 4, 5, 6][index % 6] ?? 1
    const closed = stage > 4 ? { closed_at: `2026-02-${day}T10:00:00.000Z` } : {}
    const { status, text } = await admin.post('/leads', {
      title: `Deal ${index}`,
      lead_value: 1000 * (index + 1) ** 2 + 0.5,
      lead_pipeline_stage_id: stage,
      lead_source_id: 1 + (index % 8),
      lead_type_id: 1 + (index % 2),
      expected_close_date: `2026-${String(3 + (index % 10)).padStart(2, '0')}-${day}`,
      person: { name: `Person ${index % 7}, ${names[index % 3]}`, emails: [{ value: `p${index}@example.com` }] },
      products: [{ product_id: products[index % 3], quantity: index + 1 }],
      ...closed,
    })
    if (status !== 201) throw new Error(text)
  }
}

interface Place {
  name: string
  isFull: boolean
  queries: string[]
  config: { locale?: string; currency?: string }
}

const places: Place[] = [
  { name: 'an empty installation', isFull: false, queries: [month], config: {} },
  { name: 'a full installation', isFull: true, queries: [month, months, years], config: {} },
  { name: 'one in German', isFull: true, queries: [years], config: { locale: 'de-DE', currency: 'EUR' } },
  { name: 'one in Japanese', isFull: true, queries: [months], config: { locale: 'ja-JP', currency: 'JPY' } },
]

describe.each(places)('$name', ({ isFull, queries, config }) => {
  const server = useSharedServer({ config })
  beforeAll(async () => {
    if (isFull) await fill(server)
  })

  it.each(reports)('%s is a picture that can be read', async (path) => {
    const headers = { accept: 'image/svg+xml' }
    for (const query of asked.has(path) ? questions : queries) {
      const { status, text } = await (typeof query === 'string'
        ? server.admin.get(`/${path}${query}`, { headers })
        : server.admin.post(`/${path}`, query, { headers }))
      expect(status, text).toBe(200)
      const { words, width, height, root } = await drawn(text)
      expect(root).toBe('svg')
      expect(words.length).toBeGreaterThan(2)
      const outside = words.filter(
        ({ left, right, top, bottom }) => left < 0 || top < 0 || right > width || bottom > height,
      )
      expect.soft([path, query, outside.map((word) => word.text)]).toEqual([path, query, []])
      const pairs = words.flatMap((one, index) =>
        words.slice(index + 1).flatMap((other) => (overlap(one, other) ? [`${one.text} / ${other.text}`] : [])),
      )
      expect.soft([path, query, pairs]).toEqual([path, query, []])
      expect(await page.evaluate(() => performance.getEntriesByType('resource').length)).toBe(0)
    }
  })
})
