// Reports: exact figures of the visible records by days in the time zone of the
// installation, and their charts.
import { describe, expect, it } from 'vitest'
import type { Caller } from '../support/app.ts'
import { deal } from '../support/deals.ts'
import { isPostgres } from '../support/engine.ts'
import { statementsOf } from '../support/statements.ts'
import { useServer } from '../support/using.ts'
import { addUser } from '../support/viewers.ts'

const stage = { new: 1, followUp: 2, prospect: 3, negotiation: 4, won: 5, lost: 6 }
const types = [
  'overview',
  'revenue-stats',
  'total-leads',
  'revenue-by-sources',
  'revenue-by-types',
  'top-selling-products',
  'top-persons',
  'open-leads-by-stages',
  'forecast',
]

const server = useServer({ config: { timezone: 'Pacific/Auckland' } })

const lead = (body?: object) => deal(server, body)

const won = (closed_at: string, lead_value: number, body: object = {}) =>
  lead({ lead_pipeline_stage_id: stage.won, closed_at, lead_value, ...body })

async function report(path: string, caller: Caller = server.admin): Promise<any> {
  const { status, body, text } = await caller.get(`/reports/${path}`)
  expect(status, text).toBe(200)
  return body.data
}

const statistics = async (path: string, caller?: Caller): Promise<any> => (await report(path, caller)).statistics

async function chart(path: string, accept = 'image/svg+xml'): Promise<string> {
  const { status, headers, text } = await server.admin.get(`/reports/${path}`, { headers: { accept } })
  expect([status, headers['content-type']]).toEqual([200, 'image/svg+xml'])
  return text
}

describe('the period of a report', () => {
  it('is the last 30 days of the installation, and the 30 before them', async () => {
    // In Auckland, this is 2 March.
    server.clock.set('2026-03-01T11:30:00.000Z')
    expect((await report('overview')).date_range).toEqual({
      start: '2026-02-01',
      end: '2026-03-02',
      previous_start: '2026-01-02',
      previous_end: '2026-01-31',
    })
  })

  it('is the requested period, with as many days before it; one end alone is completed', async () => {
    expect((await report('revenue-stats?start=2024-02-01&end=2024-02-29')).date_range).toEqual({
      start: '2024-02-01',
      end: '2024-02-29',
      previous_start: '2024-01-03',
      previous_end: '2024-01-31',
    })
    expect((await report('overview?end=2026-01-30')).date_range).toMatchObject({
      start: '2026-01-01',
      end: '2026-01-30',
    })
    expect((await report('overview?start=2026-02-20')).date_range).toMatchObject({
      start: '2026-02-20',
      end: '2026-03-01',
    })
    expect((await report('overview?start=2023-01-01&end=2026-01-01')).date_range.previous_start).toBe('2019-12-31')
  })

  it('is refused when it ends before it begins, is longer than three years, or leaves the calendar', async () => {
    for (const [query, field, sentence] of [
      ['start=2026-02-02&end=2026-02-01', 'query.end', 'Must be 2026-02-02 or later.'],
      ['start=2026-03-02', 'query.start', 'Must be 2026-03-01 or earlier.'],
      ['start=2023-01-01&end=2026-01-02', 'query.end', 'A report covers at most 3 years.'],
      ['start=2021-01-01', 'query.start', 'A report covers at most 3 years.'],
      [
        'start=0001-01-01&end=0001-01-01',
        'query.end',
        'The period and the one before it must lie within the years 1 to 9999.',
      ],
    ] as const) {
      for (const type of types.slice(0, 2)) {
        const { status, body } = await server.admin.get(`/reports/${type}?${query}`)
        expect.soft([query, status, body.errors]).toEqual([query, 422, { [field]: [sentence] }])
      }
    }
    const edges = ['0001-01-01', '0001-02-01', '0002-06-01', '9996-12-31', '9998-12-31', '9999-12-31']
    for (const type of types)
      for (const query of edges.flatMap((day) => [`start=${day}`, `end=${day}`, `start=${day}&end=${day}`]))
        expect.soft([200, 422]).toContain((await server.admin.get(`/reports/${type}?${query}`)).status)
    for (const query of ['start=tomorrow', 'pipeline_id=x', 'user_id=0', 'from=2026-01-01'])
      expect.soft([query, (await server.admin.get(`/reports/overview?${query}`)).status]).toEqual([query, 422])
  })

  it('of a forecast begins like any other and reaches a year ahead', async () => {
    expect((await report('forecast')).date_range).toMatchObject({ start: '2026-01-31', end: '2027-03-01' })
    expect((await report('forecast?start=2026-06-01')).date_range).toMatchObject({
      start: '2026-06-01',
      end: '2027-06-01',
    })
    // The period ends with the last valid year.
    expect((await report('forecast?start=9999-06-02')).date_range.end).toBe('9999-12-31')
    expect((await report('forecast?end=2026-01-15')).date_range).toMatchObject({
      start: '2025-12-17',
      end: '2026-01-15',
    })
    expect((await report('forecast?start=2026-02-01&end=2026-02-01')).statistics).toHaveLength(1)
  })
})

describe('every report', () => {
  it('answers zeros or nothing in an empty installation, fires no event, and is not there under another name', async () => {
    server.events()
    for (const type of types) {
      const text = JSON.stringify(await statistics(type))
      expect.soft([type, text.replaceAll(/"(label|month)":"[^"]*"/g, '').match(/[1-9]/)]).toEqual([type, null])
    }
    expect(server.events()).toEqual([])
    expect((await server.admin.get('/reports/profit')).status).toBe(404)
    expect((await server.admin.post('/reports/overview', {})).status).toBe(405)
  })

  it('needs the permission dashboard and the ability reports:read', async () => {
    const ann = await addUser(server, 'Ann', { permissions: ['leads', 'leads.view'] })
    const bob = await addUser(server, 'Bob', { permissions: ['dashboard'] })
    const narrow = await server.as(1, ['leads:read'])
    for (const type of types) {
      expect.soft([type, (await ann.get(`/reports/${type}`)).status]).toEqual([type, 403])
      expect.soft([type, (await bob.get(`/reports/${type}`)).status]).toEqual([type, 200])
      expect.soft([type, (await narrow.get(`/reports/${type}`)).body.required]).toEqual([type, 'reports:read'])
    }
  })

  it.runIf(!isPostgres)(
    'runs as many statements over much as over little, as JSON and as a chart',
    async () => {
      const counts = async (): Promise<number[]> => {
        const all: number[] = []
        for (const type of types)
          for (const accept of ['application/json', 'image/svg+xml'])
            all.push((await statementsOf(() => server.admin.get(`/reports/${type}`, { headers: { accept } }))).length)
        return all
      }
      const add = async (source: string) => {
        const { body } = await server.admin.post('/sources', { name: source })
        const { body: product } = await server.admin.post('/products', { sku: source, name: source, price: 5 })
        const person = { name: source, emails: [{ value: `${source}@example.com` }] }
        const about = { lead_source_id: body.data.id, products: [{ product_id: product.data.id }], person }
        await won('2026-02-10T10:00:00.000Z', 5, about)
        await lead({ expected_close_date: '2026-05-01' })
      }
      await add('A')
      await counts()
      const before = await counts()
      for (const source of ['B', 'C', 'D']) await add(source)
      await counts()
      const after = await counts()
      expect(after).toEqual(before)
      expect(Math.max(...after)).toBeLessThan(8)
      // Draws 72 charts.
    },
    60_000,
  )

  it('counts only what the caller may see, of the pipeline and owner asked for', async () => {
    const ben = await addUser(server, 'Ben', { view: 'individual' })
    const { body: other } = await server.admin.post('/pipelines', { name: 'Partners' })
    const wonThere = other.data.stages.find(({ code }: { code: string }) => code === 'won').id
    const at = '2026-02-10T10:00:00.000Z'
    await won(at, 1000)
    await won(at, 7, { user_id: ben.id })
    await won(at, 50, { lead_pipeline_id: other.data.id, lead_pipeline_stage_id: wonThere })
    await lead({ user_id: ben.id, expected_close_date: '2026-04-01', lead_value: 30 })
    await lead({ expected_close_date: '2026-04-01', lead_value: 40 })
    const revenue = async (query: string, caller?: Caller) =>
      (await statistics(`revenue-stats${query}`, caller)).won_revenue.current
    expect([await revenue(''), await revenue('', ben)]).toEqual([1057, 7])
    expect([await revenue(`?user_id=${ben.id}`), await revenue('?user_id=1', ben)]).toEqual([7, 0])
    expect([await revenue(`?pipeline_id=${other.data.id}`), await revenue('?pipeline_id=999')]).toEqual([50, 0])
    expect((await statistics('overview', ben)).total_leads.current).toBe(2)
    expect((await statistics('revenue-by-sources', ben)).map(({ revenue }: any) => revenue)).toEqual([7])
    expect((await statistics('open-leads-by-stages', ben)).map(({ count }: any) => count)).toEqual([1])
    expect((await statistics(`open-leads-by-stages?user_id=${ben.id}`)).map(({ count }: any) => count)).toEqual([1])
    expect((await statistics('forecast', ben)).find(({ month }: any) => month === '2026-04').lead_value).toBe(30)
    expect(
      (await statistics('total-leads', ben)).won.over_time.reduce((sum: number, { count }: any) => sum + count, 0),
    ).toBe(1)
  })
})

describe('getOverviewReport', () => {
  it('counts what was created in the period and the one before, with exact averages and the change in percent', async () => {
    server.clock.set('2026-01-10T00:00:00.000Z')
    await lead({ lead_value: 1 })
    await lead({ lead_value: 2 })
    server.clock.set('2026-02-10T00:00:00.000Z')
    for (const value of [0.1, 0.2, 0.2]) await lead({ lead_value: value })
    await server.admin.post('/contacts/organizations', { name: 'Analytical Ltd' })
    server.clock.set('2026-03-01T11:30:00.000Z')
    expect(await statistics('overview')).toEqual({
      average_lead_value: { previous: 1.5, current: 0.1667, change_percent: -88.8889 },
      total_leads: { previous: 2, current: 3, change_percent: 50 },
      average_leads_per_day: { previous: 0.0667, current: 0.1, change_percent: 50 },
      total_quotes: { previous: 0, current: 0, change_percent: null },
      total_persons: { previous: 0, current: 0, change_percent: null },
      total_organizations: { previous: 0, current: 1, change_percent: null },
    })
  })
})

describe('getRevenueStatsReport', () => {
  it('sums won and lost values by closing time, exactly, to the last millisecond of the last day in the time zone', async () => {
    const period = 'revenue-stats?start=2026-02-01&end=2026-02-02'
    // Midnight in Auckland is 11:00 UTC of the previous day.
    await won('2026-01-31T10:59:59.999Z', 1)
    await won('2026-01-31T11:00:00.000Z', 0.1)
    await won('2026-02-02T10:59:59.999Z', 0.2)
    await won('2026-02-02T11:00:00.000Z', 4)
    await lead({
      lead_pipeline_stage_id: stage.lost,
      closed_at: '2026-02-01T00:00:00.000Z',
      lead_value: 99_999_999_999.9999,
    })
    await lead({ lead_pipeline_stage_id: stage.lost, closed_at: '2026-02-01T00:00:00.000Z', lead_value: 0.0001 })
    expect(await statistics(period)).toEqual({
      won_revenue: { previous: 1, current: 0.3, change_percent: -70 },
      lost_revenue: { previous: 0, current: 100_000_000_000, change_percent: null },
    })
  })
})

describe('getTotalLeadsReport', () => {
  const labels = async (query: string): Promise<string[]> =>
    (await statistics(`total-leads?${query}`)).all.over_time.map(({ label }: any) => label)

  it('goes by day up to 31 days, by ISO week up to 26 weeks, else by month, without a gap', async () => {
    expect(await labels('start=2026-01-01&end=2026-01-31')).toEqual(
      Array.from({ length: 31 }, (_, day) => `2026-01-${String(day + 1).padStart(2, '0')}`),
    )
    const weeks = await labels('start=2025-12-25&end=2026-01-25')
    expect(weeks).toEqual(['2025-W52', '2026-W01', '2026-W02', '2026-W03', '2026-W04'])
    expect(await labels('start=2026-01-01&end=2026-07-01')).toHaveLength(27)
    expect(await labels('start=2026-01-01&end=2026-07-02')).toEqual(
      Array.from({ length: 7 }, (_, month) => `2026-0${month + 1}`),
    )
    expect(await labels('start=2023-01-31&end=2026-01-30')).toHaveLength(37)
  })

  it('puts each lead into its day in the time zone, also where the clocks change', async () => {
    // On 5 April the clocks are set back. The day has 25 hours, from 11:00 UTC to 12:00 UTC of the
    // next day.
    for (const at of [
      '2026-04-04T10:59:59.999Z',
      '2026-04-04T11:00:00.000Z',
      '2026-04-05T11:59:59.999Z',
      '2026-04-05T12:00:00.000Z',
    ]) {
      server.clock.set(at)
      await lead({ lead_value: 0.1 })
    }
    const { all } = await statistics('total-leads?start=2026-04-04&end=2026-04-06')
    expect(all.over_time).toEqual([
      { label: '2026-04-04', count: 1, lead_value: 0.1 },
      { label: '2026-04-05', count: 2, lead_value: 0.2 },
      { label: '2026-04-06', count: 1, lead_value: 0.1 },
    ])
  })

  it('counts all leads by creation and closed ones by closing time', async () => {
    await won('2026-02-10T00:00:00.000Z', 5)
    await lead({ lead_pipeline_stage_id: stage.lost, closed_at: '2026-02-11T00:00:00.000Z', lead_value: 3 })
    await lead()
    const { all, won: gained, lost } = await statistics('total-leads')
    const some = ({ over_time }: any) => over_time.filter(({ count }: any) => count > 0)
    expect(some(all)).toEqual([{ label: '2026-03-01', count: 3, lead_value: 108 }])
    expect(some(gained)).toEqual([{ label: '2026-02-10', count: 1, lead_value: 5 }])
    expect(some(lost)).toEqual([{ label: '2026-02-11', count: 1, lead_value: 3 }])
    const weekly = await statistics('total-leads?start=2026-01-01&end=2026-03-01')
    expect(some(weekly.won)).toEqual([{ label: '2026-W07', count: 1, lead_value: 5 }])
  })
})

describe('getRevenueBySourcesReport and getRevenueByTypesReport', () => {
  it('rank what won leads brought in; sources that brought nothing are left out', async () => {
    const at = '2026-02-10T00:00:00.000Z'
    await won(at, 0.1, { lead_source_id: 1 })
    await won(at, 0.2, { lead_source_id: 1 })
    await won(at, 99_999_999_999.9999, { lead_source_id: 2, lead_type_id: 2 })
    await won(at, 99_999_999_999.9999, { lead_source_id: 3, lead_type_id: 2 })
    await won(at, 0.0001, { lead_source_id: 3 })
    await won('2025-02-10T00:00:00.000Z', 500, { lead_source_id: 4 })
    await lead({ lead_source_id: 5 })
    const sources = await statistics('revenue-by-sources')
    expect(sources.map(({ id, revenue }: any) => [id, revenue])).toEqual([
      [3, 100_000_000_000],
      [2, 99_999_999_999.9999],
      [1, 0.3],
    ])
    expect(Object.keys(sources[0])).toEqual(['id', 'name', 'revenue'])
    expect((await statistics('revenue-by-types')).map(({ id, revenue }: any) => [id, revenue])).toEqual([
      [2, 199_999_999_999.9998],
      [1, 0.3001],
    ])
  })
})

describe('getTopSellingProductsReport', () => {
  it('ranks five products by their lines on won leads, also a deleted one under the name it was sold by', async () => {
    const ids: number[] = []
    for (const sku of ['a', 'b', 'c', 'd', 'e', 'f'])
      ids.push((await server.admin.post('/products', { sku, name: sku.toUpperCase(), price: 10 })).body.data.id)
    const products = ids.map((product_id, index) => ({ product_id, quantity: index + 1, price: 0.7 }))
    await won('2026-02-10T00:00:00.000Z', 1, { products })
    await won('2026-02-11T00:00:00.000Z', 1, { products: [{ product_id: ids[1], quantity: 10, price: 1 }] })
    await lead({ products: [{ product_id: ids[0], quantity: 1000, price: 10 }] })
    await server.store.db
      .deleteFrom('products')
      .where('id', '=', ids[5] ?? 0)
      .execute()
    expect(await statistics('top-selling-products')).toEqual([
      { id: ids[1], name: 'B', price: 10, revenue: 11.4, quantity: 12 },
      { id: null, name: 'F', price: null, revenue: 4.2, quantity: 6 },
      { id: ids[4], name: 'E', price: 10, revenue: 3.5, quantity: 5 },
      { id: ids[3], name: 'D', price: 10, revenue: 2.8, quantity: 4 },
      { id: ids[2], name: 'C', price: 10, revenue: 2.1, quantity: 3 },
    ])
  })
})

describe('getTopPersonsReport', () => {
  it('ranks five persons; without the right to read persons it shows what a reference shows', async () => {
    const ben = await addUser(server, 'Ben', { view: 'individual' })
    const emails = [
      { value: 'ada@example.com', label: 'work' },
      { value: 'ada@home.example', label: 'home' },
    ]
    const { body } = await server.admin.post('/contacts/persons', { name: 'Ada Lovelace', emails })
    await won('2026-02-10T00:00:00.000Z', 0.1, { person_id: body.data.id, user_id: ben.id })
    await won('2026-02-10T00:00:00.000Z', 0.2, { person_id: body.data.id, user_id: ben.id })
    for (const name of ['A', 'B', 'C', 'D', 'E'])
      await won('2026-02-10T00:00:00.000Z', 5, { person: { name, emails: [{ value: `${name}@example.com` }] } })
    const all = await statistics('top-persons')
    expect(all.map(({ name, revenue }: any) => [name, revenue])).toEqual(
      ['A', 'B', 'C', 'D', 'E'].map((name) => [name, 5]),
    )
    expect(await statistics(`top-persons?user_id=${ben.id}`)).toEqual([
      { id: body.data.id, name: 'Ada Lovelace', emails, revenue: 0.3 },
    ])
    expect(await statistics('top-persons', ben)).toMatchObject([{ emails }])
    const reader = await server.as(ben.id, ['reports:read'])
    expect(await statistics('top-persons', reader)).toEqual([
      { id: body.data.id, name: 'Ada Lovelace', emails: emails.slice(0, 1), revenue: 0.3 },
    ])
  })
})

describe('getOpenLeadsByStagesReport', () => {
  it('counts and sums leads that are open, by stage in the order of the pipeline', async () => {
    await lead({ lead_pipeline_stage_id: stage.negotiation, lead_value: 0.1 })
    await lead({ lead_pipeline_stage_id: stage.negotiation, lead_value: 0.2 })
    await lead({ lead_value: 7 })
    await won('2026-02-10T00:00:00.000Z', 5)
    expect(await statistics('open-leads-by-stages')).toEqual([
      { id: stage.new, name: 'New', count: 1, lead_value: 7 },
      { id: stage.negotiation, name: 'Negotiation', count: 2, lead_value: 0.3 },
    ])
    expect(await statistics('open-leads-by-stages?start=2026-01-01&end=2026-01-31')).toEqual([])
    server.clock.set('2026-12-31T00:00:00.000Z')
    const { data } = (await server.admin.get('/reports/open-leads-by-stages')).body
    expect([data.statistics.map(({ count }: any) => count), data.date_range]).toEqual([[1, 2], null])
    expect(await statistics('open-leads-by-stages?end=2026-12-31')).toEqual([])
    const svg = await server.admin.get('/reports/open-leads-by-stages', { headers: { accept: 'image/svg+xml' } })
    expect(svg.text).toContain('All that are open now')
  })
})

describe('getForecastReport', () => {
  it('weights open leads of each month with the probability of their stage, rounded once', async () => {
    await lead({ expected_close_date: '2026-03-31', lead_value: 0.0001, lead_pipeline_stage_id: stage.followUp })
    await lead({ expected_close_date: '2026-03-31', lead_value: 0.0002, lead_pipeline_stage_id: stage.negotiation })
    await lead({ expected_close_date: '2026-05-01', lead_value: 4821.5, lead_pipeline_stage_id: stage.prospect })
    await won('2026-02-10T00:00:00.000Z', 5, { expected_close_date: '2026-03-31' })
    await lead()
    const months = await statistics('forecast')
    expect(months.map(({ month }: any) => month)).toEqual([
      ...['2026-01', '2026-02', '2026-03', '2026-04', '2026-05', '2026-06', '2026-07', '2026-08'],
      ...['2026-09', '2026-10', '2026-11', '2026-12', '2027-01', '2027-02', '2027-03'],
    ])
    expect(months.filter(({ count }: any) => count > 0)).toEqual([
      // 0.000025 + 0.00015
      { month: '2026-03', count: 2, lead_value: 0.0003, weighted_value: 0.0002 },
      { month: '2026-05', count: 1, lead_value: 4821.5, weighted_value: 2410.75 },
    ])
  })
})

describe('a report as a chart', () => {
  it('comes to those who prefer image/svg+xml, and JSON to all others', async () => {
    const kind = async (accept: string) =>
      String((await server.admin.get('/reports/forecast', { headers: { accept } })).headers['content-type']).split(
        ';',
      )[0]
    for (const accept of [
      'image/svg+xml',
      'image/*',
      'application/json;q=0.5, image/svg+xml',
      'text/html, image/svg+xml;q=0.1',
    ])
      expect.soft([accept, await kind(accept)]).toEqual([accept, 'image/svg+xml'])
    for (const accept of [
      'application/json',
      '*/*',
      'text/plain',
      'image/svg+xml;q=0.5, application/json',
      'image/svg+xml;q=0, */*',
      'image/png',
    ])
      expect.soft([accept, await kind(accept)]).toEqual([accept, 'application/json'])
    const { headers } = await server.admin.get('/reports/forecast')
    expect(headers.vary).toMatch(/^Accept,/)
  })

  it('is drawn for every report, says in words what it shows, and refers to nothing outside', async () => {
    await won('2026-02-10T00:00:00.000Z', 1234.5)
    await lead({ expected_close_date: '2026-04-01' })
    for (const type of types) {
      const svg = await chart(type)
      expect
        .soft(svg)
        .toMatch(
          new RegExp(
            `^<svg role="img" aria-labelledby="${type}-title ${type}-desc" [^>]*><title id="${type}-title">[^<]+</title><desc id="${type}-desc">[^<]+</desc>`,
          ),
        )
      const outside = svg
        .replaceAll(/xmlns(:xlink)?="[^"]*"/g, '')
        .match(/https?:|href=|url\(|<(script|style|image|foreignObject|use)\b/)
      expect.soft([type, outside]).toEqual([type, null])
      expect.soft([type, (await chart(type)) === svg]).toEqual([type, true])
    }
    expect(await chart('revenue-by-sources')).toContain('Direct: $1,234.50.')
  })

  it('shows names as names, whatever they look like', async () => {
    const name = `<script>alert('x')</script> & "friends" \ufffe\ud800`
    await server.store.db.updateTable('lead_sources').set({ name }).where('id', '=', 1).execute()
    await won('2026-02-10T00:00:00.000Z', 5, { lead_source_id: 1 })
    const svg = await chart('revenue-by-sources')
    expect(svg).toContain('&lt;script&gt;alert')
    expect(svg).not.toContain('<script')
    expect(svg).not.toMatch(/[\ufffe\uffff]/)
  })

  it('says so where there is nothing to draw', async () => {
    expect(await chart('revenue-by-sources')).toContain('>No leads were won in this period.</text>')
    expect(await chart('forecast')).toContain('>No open lead is expected to close in this period.</text>')
  })

  it('is refused like the report is, and answers 304 to those who know it', async () => {
    const headers = { accept: 'image/svg+xml' }
    const refused = await server.admin.get('/reports/forecast?start=2026-02-02&end=2026-02-01', { headers })
    expect([refused.status, refused.body.code]).toEqual([422, 'validation_failed'])
    expect((await server.anonymous.get('/reports/forecast', { headers })).status).toBe(401)
    const first = await server.admin.get('/reports/forecast', { headers })
    const again = await server.admin.get('/reports/forecast', {
      headers: { ...headers, 'if-none-match': String(first.headers.etag) },
    })
    expect([again.status, again.text, again.headers.etag]).toEqual([304, '', first.headers.etag])
    expect(first.headers['content-disposition']).toBe('inline; filename=forecast.svg')
  })

  it('puts many sources together at its end', async () => {
    const at = '2026-02-10T00:00:00.000Z'
    for (let index = 0; index < 30; index++) {
      const { body } = await server.admin.post('/sources', { name: `Source ${index}` })
      await won(at, index < 7 ? 0.1 : 100 + index, { lead_source_id: body.data.id })
    }
    expect(await statistics('revenue-by-sources')).toHaveLength(30)
    const svg = await chart('revenue-by-sources')
    expect(svg).toContain('>7 others</text>')
    expect(svg).toContain('7 others: $0.70.')
  })
})
