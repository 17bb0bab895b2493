// The board of leads.
import { sql } from 'kysely'
import { beforeEach, describe, expect, it } from 'vitest'
import { type Caller, start } from '../support/app.ts'
import { deal } from '../support/deals.ts'
import { isPostgres } from '../support/engine.ts'
import { statementsOf } from '../support/statements.ts'
import { useServer } from '../support/using.ts'
import { addUser } from '../support/viewers.ts'

const stage = { new: 1, followUp: 2, prospect: 3, negotiation: 4, won: 5, lost: 6 }

const server = useServer()

const lead = (body?: object) => deal(server, body)

async function board(query = '', caller: Caller = server.admin): Promise<any> {
  const { status, body, text } = await caller.get(`/leads/kanban${query}`)
  expect(status, text).toBe(200)
  return body
}

const column = (body: any, id: number) => body.data.find((each: any) => each.id === id)
const titles = (body: any, id: number): string[] => column(body, id).leads.data.map((each: any) => each.title)

describe('kanbanLeads', () => {
  it('shows every stage of the default pipeline in order, also the empty ones', async () => {
    server.events()
    const body = await board()
    expect(Object.keys(body)).toEqual(['data', 'pipeline', 'meta'])
    expect(body.data.map(({ code }: any) => code)).toEqual([
      'new',
      'follow-up',
      'prospect',
      'negotiation',
      'won',
      'lost',
    ])
    expect(column(body, stage.followUp)).toEqual({
      id: 2,
      code: 'follow-up',
      name: 'Follow Up',
      probability: 25,
      sort_order: 2,
      lead_value: 0,
      formatted_lead_value: '$0.00',
      weighted_value: 0,
      count: 0,
      leads: { data: [], meta: { current_page: 1, from: null, last_page: 1, per_page: 10, to: null, total: 0 } },
    })
    expect(body.pipeline).toEqual({ id: 1, name: 'Default Pipeline', rotten_days: 30 })
    expect(body.meta).toEqual({ total: 0, lead_value: 0 })
    expect(server.events()).toEqual([])
  })

  it('sums all leads of a stage exactly, whatever the page shows, and weights them with its probability', async () => {
    for (const value of [0.1, 0.2, 1234.5678]) await lead({ lead_value: value, lead_pipeline_stage_id: stage.followUp })
    await lead({ lead_value: 99_999_999_999.9999, lead_pipeline_stage_id: stage.won })
    await lead({ lead_value: 99_999_999_999.9999, lead_pipeline_stage_id: stage.won })
    const body = await board('?per_page=1')
    expect(column(body, stage.followUp)).toMatchObject({
      count: 3,
      lead_value: 1234.8678,
      // A quarter of it is 308.71695.
      weighted_value: 308.717,
      formatted_lead_value: '$1,234.87',
      leads: { meta: { current_page: 1, from: 1, last_page: 3, per_page: 1, to: 1, total: 3 } },
    })
    expect(column(body, stage.followUp).leads.data).toHaveLength(1)
    expect(column(body, stage.won)).toMatchObject({
      lead_value: 199_999_999_999.9998,
      weighted_value: 199_999_999_999.9998,
    })
    expect(body.meta).toEqual({ total: 5, lead_value: 200_000_001_234.8676 })
  })

  it('shows a lead as the list does, with its product lines and tags', async () => {
    const { body: product } = await server.admin.post('/products', { sku: 'gtx', name: 'GTX', price: 5 })
    const { body: tag } = await server.admin.post('/tags', { name: 'VIP' })
    await lead({ products: [{ product_id: product.data.id }], tag_ids: [tag.data.id] })
    const [listed] = (await server.admin.get('/leads')).body.data
    expect(listed.products).toHaveLength(1)
    expect(column(await board(), stage.new).leads.data).toEqual([listed])
  })

  it('loads more of one column with pipeline_stage_id and page', async () => {
    for (const title of ['One', 'Two', 'Three', 'Four', 'Five']) await lead({ title })
    await lead({ lead_pipeline_stage_id: stage.won })
    const body = await board(`?pipeline_stage_id=${stage.new}&page=2&per_page=2`)
    expect(body.data.map(({ id }: any) => id)).toEqual([stage.new])
    expect(titles(body, stage.new)).toEqual(['Three', 'Two'])
    expect(column(body, stage.new).leads.meta).toEqual({
      current_page: 2,
      from: 3,
      last_page: 3,
      per_page: 2,
      to: 4,
      total: 5,
    })
    expect(column(body, stage.new)).toMatchObject({ count: 5, lead_value: 500 })
    expect(body.meta).toEqual({ total: 5, lead_value: 500 })
    const beyond = await board('?page=9007199254740991&per_page=100')
    expect(column(beyond, stage.new)).toMatchObject({ count: 5, leads: { data: [], meta: { from: null, to: null } } })
  })

  it('takes every filter of the list, words and sort; sums follow the filter', async () => {
    await lead({ title: 'Beta', lead_value: 5 })
    await lead({ title: 'alpha', lead_value: 7 })
    await lead({ title: 'Gamma', lead_value: 900 })
    await lead({ title: 'Alpha won', lead_value: 3, lead_pipeline_stage_id: stage.won })
    const cheap = await board('?lead_value[lt]=100&sort=title')
    expect(titles(cheap, stage.new)).toEqual(['alpha', 'Beta'])
    expect(cheap.meta).toEqual({ total: 3, lead_value: 15 })
    const found = await board('?q=alpha')
    expect([titles(found, stage.new), titles(found, stage.won)]).toEqual([['alpha'], ['Alpha won']])
    expect(found.meta).toEqual({ total: 2, lead_value: 10 })
    expect(titles(await board('?sort=-lead_value'), stage.new)).toEqual(['Gamma', 'alpha', 'Beta'])
    expect((await board('?status=2')).meta.total).toBe(1)
    const unknown = await server.admin.get('/leads/kanban?lead_valu[lt]=1')
    expect([unknown.status, Object.keys(unknown.body.errors)]).toEqual([422, ['query.lead_valu[lt]']])
  })

  it('takes the parameters of listLeads but for those of a list', async () => {
    const { facts } = await import('../support/schema.ts')
    const names = (id: string) => Object.keys(facts.find(([each]) => each === id)?.[1].query ?? {})
    const own = ['cursor', 'count', 'include', 'fields']
    expect(
      names('listLeads')
        .filter((name) => !names('kanbanLeads').includes(name))
        .sort(),
    ).toEqual(own.sort())
  })

  it('shows the requested pipeline, and answers 422 for an unknown one or a stage of another', async () => {
    const { body } = await server.admin.post('/pipelines', { name: 'Partners', rotten_days: 7 })
    const other = body.data
    await lead()
    await lead({ lead_pipeline_id: other.id, lead_value: 8 })
    const shown = await board(`?pipeline_id=${other.id}`)
    expect(shown.pipeline).toEqual({ id: other.id, name: 'Partners', rotten_days: 7 })
    expect(shown.meta).toEqual({ total: 1, lead_value: 8 })
    for (const [query, field, sentence] of [
      ['?pipeline_id=999', 'query.pipeline_id', 'No pipeline has id 999.'],
      [
        `?pipeline_id=${other.id}&pipeline_stage_id=1`,
        'query.pipeline_stage_id',
        'The pipeline Partners has no stage with id 1.',
      ],
      ['?pipeline_stage_id=999', 'query.pipeline_stage_id', 'The pipeline Default Pipeline has no stage with id 999.'],
    ] as const) {
      const refused = await server.admin.get(`/leads/kanban${query}`)
      expect([refused.status, refused.body.errors]).toEqual([422, { [field]: [sentence] }])
    }
    expect((await server.admin.get('/leads/kanban?pipeline_id=x')).status).toBe(422)
  })

  it('counts and sums only leads the caller may see', async () => {
    const ben = await addUser(server, 'Ben', { view: 'individual' })
    await lead({ lead_value: 1000 })
    await lead({ lead_value: 7, user_id: ben.id, title: 'His' })
    const body = await board('', ben)
    expect(titles(body, stage.new)).toEqual(['His'])
    expect(column(body, stage.new)).toMatchObject({ count: 1, lead_value: 7, weighted_value: 0.7 })
    expect(body.meta).toEqual({ total: 1, lead_value: 7 })
  })

  it('needs the permission to list leads; to look at one is not enough', async () => {
    const ann = await addUser(server, 'Ann', { permissions: ['leads.view'] })
    expect((await ann.get('/leads/kanban')).status).toBe(403)
    const bob = await addUser(server, 'Bob', { permissions: ['leads'] })
    expect((await bob.get('/leads/kanban')).status).toBe(200)
  })

  it('is the fixed word, not the lead called kanban', async () => {
    expect((await server.admin.get('/leads/kanban')).status).toBe(200)
    expect((await server.admin.delete('/leads/kanban')).status).toBe(405)
  })
})

describe('kanbanLeads over 100,000 leads', () => {
  beforeEach(async () => {
    const stages = Array.from({ length: 47 }, (_, index) => ({ name: `Stage ${index}`, probability: 50 }))
    const { status, text } = await server.admin.post('/pipelines', { name: 'Wide', stages })
    expect(status, text).toBe(201)
    // Inserts the leads directly, because the API would take minutes.
    await sql`
      insert into leads (title, title_key, lead_value, status, stage_changed_at, user_id, lead_source_id, lead_type_id,
        lead_pipeline_id, lead_pipeline_stage_id, created_at, updated_at)
      with recursive numbers(n) as (select 1 union all select n + 1 from numbers where n < 100000)
      select 'Lead ' || n, 'lead ' || n, 10000 * (n % 100), 1, ${start}, 1, 1, 1,
        lead_pipeline_stages.lead_pipeline_id, lead_pipeline_stages.id, ${start}, ${start}
      from numbers join lead_pipeline_stages
        on lead_pipeline_stages.id = 1 + n % (select max(id) from lead_pipeline_stages)
    `.execute(server.store.db)
  })

  // Not on PostgreSQL, where the watch for commits of other processes also runs statements.
  it.runIf(!isPostgres)(
    'runs as many statements as over few, whatever the number of stages and of leads on a page',
    async () => {
      const { data: pipelines } = (await server.admin.get('/pipelines?name=Wide')).body
      const wide = pipelines[0]
      expect(wide.stages).toHaveLength(50)
      await board()
      const counts: number[] = []
      for (const query of [
        `?pipeline_id=1&per_page=1`,
        `?pipeline_id=1&pipeline_stage_id=1&per_page=50`,
        `?pipeline_id=${wide.id}&per_page=1`,
        `?pipeline_id=${wide.id}&per_page=20`,
      ])
        counts.push((await statementsOf(() => board(query))).length)
      expect(counts).toEqual(counts.map(() => counts[0]))
      expect(counts[0]).toBeLessThan(12)
      const whole = await board(`?pipeline_id=${wide.id}&per_page=20`)
      expect(whole.data.every(({ leads }: any) => leads.data.length === 20)).toBe(true)
      expect(whole.meta.total + (await board()).meta.total).toBe(100_000)

      const ids = Array.from({ length: 100 }, (_, index) => index + 1).join()
      const lists = ['user_id', 'lead_source_id', 'lead_type_id', 'lead_pipeline_id', 'tag_id[not]', 'product_id[not]']
      const long = [...lists, 'person_id[not]'].map((name) => `&${name}=${ids}`).join('')
      // More than 30,000 leads match these filters, so they are not summed up.
      const uncounted = await board(`?pipeline_id=${wide.id}&per_page=20${long}`)
      const shown = ({ data }: any) => data.map(({ leads }: any) => leads.data)
      expect(shown(uncounted)).toEqual(shown(whole))
      expect(uncounted.meta).toEqual({ total: null, lead_value: null })
      expect(uncounted.data[0]).toMatchObject({ count: null, lead_value: null, weighted_value: null })
    },
  )
})
