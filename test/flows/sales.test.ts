// A sales team's two years come into a real server through the API, and the server then says what the files say. With the data
// set beside the repository that is 8,800 opportunities; a small one with the same dirt in it is loaded everywhere.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { adminPassword } from '../support/app.ts'
import { type Listening, listeningServer } from '../support/listening.ts'
import { type Api, must, signIn } from './sales/api.ts'
import { besideTheRepository, missingIn, readSales, type Sales, salesOf, type Texts } from './sales/data.ts'
import { expectedFigures, listFigures, pipelineFigures } from './sales/figures.ts'
import { AlreadyLoaded, type Loaded, loadSales } from './sales/load.ts'

/** 32 opportunities, every stage, with the spellings, gaps and dates of the real files. */
function smallTexts(): Texts {
  const stages = ['Won', 'Lost', 'Engaging', 'Prospecting']
  const lines = Array.from({ length: 32 }, (_, index) => {
    const stage = stages[index % 4] ?? ''
    const isClosed = index % 4 < 2
    const account = index % 8 > 5 ? '' : ['Acme Corporation', 'Cancity'][index % 2]
    const product = ['GTXPro', 'GTX Basic', 'MG Special'][index % 3]
    const agent = ['Moses Frase', 'Vicki Laflamme'][index % 2]
    const engaged = stage === 'Prospecting' ? '' : `${(index % 12) + 1}/${index % 28 || 1}/2016`
    const value = stage === 'Won' ? 100.25 * (index + 1) : 0
    return [
      `OPP${index}`,
      agent,
      product,
      account,
      stage,
      engaged,
      isClosed ? `3/${(index % 3) + 1}/2017` : '',
      isClosed ? value : '',
    ].join(',')
  })
  return {
    accounts:
      'account,sector,year_established,revenue,employees,office_location,subsidiary_of\nAcme Corporation,technolgy,1996,1100.04,2822,United States,\nCancity,retail,2001,718.62,2448,Philipines,\n',
    products: 'product,series,sales_price\nGTX Basic,GTX,550\nGTX Pro,GTX,4821\nMG Special,MG,55\n',
    teams:
      'sales_agent,manager,regional_office\nMoses Frase,Dustin Brinkmann,Central\nVicki Laflamme,Celia Rouche,West\n',
    pipeline: `opportunity_id,sales_agent,product,account,deal_stage,engage_date,close_date,close_value\n${lines.join('\n')}\n`,
  }
}

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
  }, 600_000)
  afterAll(() => server.close())

  it('becomes one lead per opportunity, with its team, accounts and products', () => {
    expect(loaded.counts).toMatchObject({
      leads: sales.opportunities.length,
      organizations: sales.accounts.length,
      persons: sales.accounts.length,
      products: sales.products.length,
    })
    expect(steps).toEqual(['groups', 'users', 'organizations', 'persons', 'products', 'leads', 'moves'])
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
    expect(broken('3/1/2017', '2017-03-01')).toThrow('close_date 2017-03-01 is no date M/D/YYYY')
    expect(broken('GTXPro', 'GTXtra')).toThrow('product GTXtra is unknown')
  })
})
