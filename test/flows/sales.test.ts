// Loads the data of a sales team through the API and compares the server's figures with the files.
// Uses a small data set, and the whole data set of 8,800 opportunities if it is beside the
// repository.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { adminPassword } from '../support/app.ts'
import { type Listening, listeningServer } from '../support/listening.ts'
import { type Api, must, signIn } from './sales/api.ts'
import { besideTheRepository, missingIn, readSales, type Sales, salesOf } from './sales/data.ts'
import { expectedFigures, listFigures, pipelineFigures } from './sales/figures.ts'
import { AlreadyLoaded, type Loaded, loadSales } from './sales/load.ts'
import { byMonth, ranked, revenueIn, wonIn } from './sales/reports.ts'
import { smallTexts } from './sales/small.ts'

interface DataSet {
  name: string
  read: () => Sales
}

const dataSets: DataSet[] = [
  { name: 'the small data set', read: () => salesOf(smallTexts()) },
  ...(missingIn(besideTheRepository).length === 0
    ? [{ name: 'the whole data set', read: () => readSales(besideTheRepository) }]
    : []),
]

describe.each(dataSets)('$name', ({ name, read }) => {
  let server: Listening
  let api: Api
  let sales: Sales
  let loaded: Loaded
  const steps: string[] = []
  beforeAll(async () => {
    sales = read()
    server = await listeningServer()
    api = await signIn({ url: server.url, email: 'admin@example.com', password: adminPassword })
    loaded = await loadSales(api, sales, (step) => {
      if (steps.at(-1) !== step) steps.push(step)
    })
  }, 1_200_000)
  afterAll(() => server.close())

  it('becomes one lead per opportunity, with its team, accounts and products', () => {
    expect(loaded.counts).toMatchObject({
      leads: sales.opportunities.length,
      organizations: sales.accounts.length,
      persons: sales.accounts.length,
      products: sales.products.length,
    })
    expect(steps).toEqual(['attributes', 'groups', 'users', 'organizations', 'persons', 'products', 'leads', 'moves'])
    if (name === 'the whole data set')
      expect(loaded.counts).toMatchObject({ leads: 8800, organizations: 85, users: 41, groups: 3, products: 7 })
  })

  it('has the figures of the files in the pipeline, stage by stage', async () => {
    const figures = Object.fromEntries(
      (await pipelineFigures(api, loaded.pipelineId)).map(({ code, leads, value }) => [code, { leads, value }]),
    )
    expect(figures).toEqual(expectedFigures(sales))
    if (name === 'the whole data set') {
      expect(Object.values(figures).map(({ leads }) => leads)).toEqual([500, 1589, 4238, 2473])
      expect(figures.won?.value).toBe(10_005_534)
    }
  })

  it('has the same figures in the lists of leads, filtered and read page by page', async () => {
    for (const [code, figures] of Object.entries(expectedFigures(sales)))
      expect(await listFigures(api, loaded.pipelineId, code)).toEqual(figures)
    for (const [status, codes] of [
      [1, ['new', 'engaging']],
      [2, ['won']],
      [3, ['lost']],
    ] as const) {
      const { meta } = await must(
        api.GET('/api/admin/leads', {
          params: { query: { lead_pipeline_id: [loaded.pipelineId], status: [status], per_page: 1 } },
        }),
      )
      expect(meta.total).toBe(
        sales.opportunities.filter(({ stage }) => (codes as readonly string[]).includes(stage)).length,
      )
    }
  })

  it('closes every won and lost lead on its day and keeps the others open', async () => {
    const [deal] = sales.opportunities.filter(({ stage }) => stage === 'won')
    const { data } = await must(api.GET('/api/admin/leads', { params: { query: { q: deal?.id ?? '' } } }))
    expect(data).toMatchObject([
      {
        status: 2,
        closed_at: `${deal?.closedOn}T00:00:00.000Z`,
        lead_value: deal?.closeValue,
        products_amount: deal?.closeValue,
      },
    ])
    const day = { 'closed_at[gte]': deal?.closedOn ?? '', 'closed_at[lte]': deal?.closedOn ?? '', per_page: 1 }
    const { meta } = await must(api.GET('/api/admin/leads', { params: { query: day } }))
    expect(meta.total).toBe(sales.opportunities.filter(({ closedOn }) => closedOn === deal?.closedOn).length)
    const open = await must(
      api.GET('/api/admin/leads', { params: { query: { status: [1], 'closed_at[null]': false, per_page: 1 } } }),
    )
    expect(open.meta.total).toBe(0)
  })

  it('gives an opportunity without an account no person, and every other the contact of its account', async () => {
    const orphans = sales.opportunities.filter(({ account }) => account === null).length
    const { meta } = await must(
      api.GET('/api/admin/leads', { params: { query: { 'person_id[null]': true, per_page: 1 } } }),
    )
    expect(meta.total).toBe(orphans)
    const { data } = await must(
      api.GET('/api/admin/contacts/organizations', { params: { query: { name: ['Acme Corporation'] } } }),
    )
    expect(data).toMatchObject([
      {
        persons_count: 1,
        leads_count: sales.opportunities.filter(({ account }) => account === 'Acme Corporation').length,
        address: { country: 'US' },
      },
    ])
  })

  it('has the sector, employees and revenue of every account as custom attributes, by which organizations can be found', async () => {
    const attributes = await must(
      api.GET('/api/admin/settings/attributes', {
        params: { query: { entity_type: ['organizations'], code: ['sector'] } },
      }),
    )
    const options = attributes.data[0]?.options ?? []
    expect(options.map(({ name }) => name).sort()).toEqual(
      [...new Set(sales.accounts.map(({ sector }) => sector))].sort(),
    )
    for (const { id, name: sector } of options) {
      const query = { 'custom_attributes[sector]': String(id), per_page: 100 }
      const { data } = await must(api.GET('/api/admin/contacts/organizations', { params: { query: query as object } }))
      const found = data.map(({ name, custom_attributes }) => ({ name, ...custom_attributes }))
      const meant = sales.accounts.filter((account) => account.sector === sector)
      expect(found.sort((one, other) => one.name.localeCompare(other.name))).toEqual(
        meant
          .map(({ name, employees, revenue }) => ({ name, sector: id, employees: String(employees), revenue }))
          .sort((one, other) => one.name.localeCompare(other.name)),
      )
    }
  })

  it('has reports that agree with the files: revenue by quarter, by month, by product and by customer', async () => {
    const pipeline_id = loaded.pipelineId
    const quarters = [
      { start: '2017-01-01', end: '2017-03-31', months: ['2017-01', '2017-02', '2017-03'] },
      { start: '2017-04-01', end: '2017-06-30', months: ['2017-04', '2017-05', '2017-06'] },
      { start: '2017-07-01', end: '2017-09-30', months: ['2017-07', '2017-08', '2017-09'] },
      { start: '2017-10-01', end: '2017-12-31', months: ['2017-10', '2017-11', '2017-12'] },
    ]
    for (const { start, end } of quarters) {
      const query = { start, end, pipeline_id }
      const { data } = await must(api.GET('/api/admin/reports/revenue-stats', { params: { query } }))
      const { previous_start, previous_end } = data.date_range
      const before = revenueIn(sales, { start: previous_start, end: previous_end })
      expect(data.statistics.won_revenue).toMatchObject({ previous: before, current: revenueIn(sales, query) })
      const deals = wonIn(sales, query)
      const products = await must(api.GET('/api/admin/reports/top-selling-products', { params: { query } }))
      expect(products.data.statistics.map(({ name, revenue, quantity }) => ({ name, revenue, quantity }))).toEqual(
        ranked(deals, ({ product }) => product.name).slice(0, 5),
      )
      const customers = await must(api.GET('/api/admin/reports/top-persons', { params: { query } }))
      const accounts = ranked(deals, ({ account }) => account).slice(0, 5)
      expect(customers.data.statistics.map(({ revenue }) => revenue)).toEqual(accounts.map(({ revenue }) => revenue))
      const sources = await must(api.GET('/api/admin/reports/revenue-by-sources', { params: { query } }))
      expect(sources.data.statistics.map(({ revenue }) => revenue)).toEqual(
        deals.length > 0 ? [revenueIn(sales, query)] : [],
      )
    }
    const months = quarters.flatMap((quarter) => quarter.months)
    const query = { start: '2017-01-01', end: '2017-12-31', pipeline_id }
    const { data } = await must(api.GET('/api/admin/reports/total-leads', { params: { query } }))
    expect(data.statistics.won.over_time).toEqual(byMonth(sales, 'won', months))
    expect(data.statistics.lost.over_time).toEqual(byMonth(sales, 'lost', months))
    if (name === 'the whole data set') expect(revenueIn(sales, query)).toBe(10_005_534)
  })

  it('has reports that agree with the files on open leads and on leads created today', async () => {
    const query = { pipeline_id: loaded.pipelineId }
    const stages = await must(api.GET('/api/admin/reports/open-leads-by-stages', { params: { query } }))
    const expected = expectedFigures(sales)
    expect(
      stages.data.statistics.map(({ name, count, lead_value }) => ({ name, leads: count, value: lead_value })),
    ).toEqual([
      { name: 'Prospecting', ...expected.new },
      { name: 'Engaging', ...expected.engaging },
    ])
    const { data } = await must(api.GET('/api/admin/reports/overview', { params: { query } }))
    const value = Object.values(expected).reduce((total, stage) => total + stage.value, 0)
    expect(data.statistics).toMatchObject({
      total_leads: { previous: 0, current: sales.opportunities.length, change_percent: null },
      average_lead_value: { current: Math.round((value / sales.opportunities.length) * 10_000) / 10_000 },
      total_organizations: { current: sales.accounts.length },
      total_persons: { current: sales.accounts.length },
    })
    const ahead = await must(api.GET('/api/admin/reports/forecast', { params: { query } }))
    expect(ahead.data.statistics.every(({ count }) => count === 0)).toBe(true)
  })

  it('tells what was repaired', () => {
    expect(Object.keys(Object.fromEntries(sales.repairs))).toEqual(
      expect.arrayContaining(['"GTXPro" read as "GTX Pro"', '"Philipines" read as "Philippines"']),
    )
  })

  it('is refused a second time, before anything is written', async () => {
    await expect(loadSales(api, sales, () => undefined)).rejects.toThrow(AlreadyLoaded)
    const { meta } = await must(api.GET('/api/admin/leads', { params: { query: { per_page: 1 } } }))
    expect(meta.total).toBe(sales.opportunities.length)
  })
})

describe('salesOf', () => {
  it('refuses what it cannot make sense of, with the file and the row', () => {
    const texts = smallTexts()
    const broken = (from: string, to: string) => () => salesOf({ ...texts, pipeline: texts.pipeline.replace(from, to) })
    expect(broken('Moses Frase', 'Nobody')).toThrow(
      'sales_pipeline.csv, row 1 after the header: sales_agent Nobody is in no team.',
    )
    expect(broken('3/1/2017', '2017-03-01')).toThrow('close_date 2017-03-01 is not a date M/D/YYYY')
    expect(broken('GTXPro', 'GTXtra')).toThrow('product GTXtra is unknown')
  })
})
