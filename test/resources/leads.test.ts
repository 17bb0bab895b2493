// Rules of leads that the generated contract tests do not check.
import { describe, expect, it } from 'vitest'
import { useNewServers } from '../support/using.ts'
import { addUser } from '../support/viewers.ts'

const server = useNewServers()

const stage = { new: 1, followUp: 2, prospect: 3, negotiation: 4, won: 5, lost: 6 }

async function created(body: object = {}): Promise<any> {
  const reply = await server.admin.post('/leads', { title: 'Deal', lead_value: 100, ...body })
  expect(reply.status, reply.text).toBe(201)
  server.events()
  return reply.body.data
}

async function product(sku: string, price: number): Promise<any> {
  const { body } = await server.admin.post('/products', { sku, name: sku.toUpperCase(), price })
  server.events()
  return body.data
}

const statusHint = 'Read-only: follows the stage; send lead_pipeline_stage_id.'

describe('createLead', () => {
  it('refuses what only replies have, and says what to send instead', async () => {
    const { status, body } = await server.admin.post('/leads', { title: 'Deal', lead_value: 1, status: 2, source: {} })
    expect([status, body.errors]).toEqual([
      422,
      { status: [statusHint], source: ['Read-only: send lead_source_id, such as {"name":"Web"}.'] },
    ])
    const copy = await server.admin.post('/leads', await created())
    expect([copy.status, copy.body.errors.created_at]).toEqual([422, ['Read-only: the server sets it.']])
  })

  it('names all that is wrong in one answer: what the schema refuses, references and values that are taken', async () => {
    await created({ person: { name: 'Ada', emails: [{ value: 'ada@example.com' }] } })
    const { status, body } = await server.admin.post('/leads', {
      lead_value: 'much',
      lead_source_id: 999,
      user_id: 999,
      tag_ids: [998, 999],
      products: [{ product_id: 999, quantity: 0 }],
      person: { name: 7, emails: [{ value: 'ADA@example.com' }] },
    })
    expect([status, body.errors]).toEqual([
      422,
      {
        title: ['The field is required.'],
        lead_value: ['Must be a number.'],
        'products.0.quantity': ['Must be more than 0.'],
        'person.name': ['Must be a string.'],
        lead_source_id: ['No source has id 999.'],
        user_id: ['No user has id 999.'],
        'tag_ids.0': ['No tag has id 998.'],
        'tag_ids.1': ['No tag has id 999.'],
        'products.0.product_id': ['No product has id 999.'],
        'person.emails.0.value': ['Another person has this value.'],
      },
    ])
    expect((await server.admin.get('/leads')).body.meta.total).toBe(1)
  })

  it('names what is wrong in each entry of a list by its index in the request', async () => {
    const { status, body } = await server.admin.post('/leads', {
      title: 'x',
      lead_value: 1,
      tag_ids: ['none', 998, {}, 999],
      products: [{ product_id: 999, quantity: 1, price: 5 }, { product_id: 1, quantity: 'x' }, 7, { product_id: 997 }],
      person: { name: 'Ada', emails: [{ label: 'work' }, { value: 'ada@example.com' }, { value: 'ada@example.com' }] },
    })
    expect([status, Object.keys(body.errors).sort()]).toEqual([
      422,
      [
        'person.emails.0.value',
        'person.emails.2.value',
        'products.0.product_id',
        'products.1.product_id',
        'products.1.quantity',
        'products.2',
        'products.3.product_id',
        'tag_ids.0',
        'tag_ids.1',
        'tag_ids.2',
        'tag_ids.3',
      ],
    ])
  })

  it('takes the person of another lead as it is shown there', async () => {
    const ada = { name: 'Ada', emails: [{ value: 'ada@example.com' }] }
    const { person } = await created({ person: ada })
    expect(person).toMatchObject({ name: 'Ada', email: 'ada@example.com' })
    expect((await created({ person: person as never })).person).toEqual(person)
  })

  it('needs a title and a value only, and fills in owner, source, type, pipeline and stage', async () => {
    const { status, body } = await server.admin.post('/leads', { title: 'Deal', lead_value: 12.3456 })
    expect(status).toBe(201)
    expect(body.data).toMatchObject({
      lead_value: 12.3456,
      status: 1,
      user: { id: 1, name: 'Example Admin' },
      source: { name: 'Direct' },
      type: { name: 'New Business' },
      pipeline: { name: 'Default Pipeline' },
      stage: { code: 'new' },
      closed_at: null,
      rotten_days: 0,
      is_rotten: false,
    })
    expect(server.events()).toEqual(['lead.create.before', 'lead.create.after'])
  })

  it('creates the person given inline first, with its own pair of events', async () => {
    const { status, body } = await server.admin.post('/leads', {
      title: 'Deal',
      lead_value: 1,
      person: { name: 'Ada Lovelace', emails: [{ value: 'ada@example.com' }], organization_name: 'Analytical Ltd' },
    })
    expect(status).toBe(201)
    expect(body.data).toMatchObject({
      person: { name: 'Ada Lovelace', email: 'ada@example.com' },
      organization: { name: 'Analytical Ltd' },
    })
    expect(server.events().filter((name) => name.endsWith('.after'))).toEqual([
      'contacts.organization.create.after',
      'contacts.person.create.after',
      'lead.create.after',
    ])
  })

  it('names the fields of a refused inline person below `person.` and creates neither', async () => {
    await created({ person: { name: 'Ada', emails: [{ value: 'ada@example.com' }] } })
    const taken = await server.admin.post('/leads', {
      title: 'Deal',
      lead_value: 1,
      person: { name: 'Other', emails: [{ value: 'ADA@example.com' }] },
    })
    expect(taken.status).toBe(409)
    expect(taken.body.conflicts).toMatchObject([{ entity_type: 'persons', field: 'person.emails.0.value' }])
    const missing = await server.admin.post('/leads', { title: 'Deal', lead_value: 1, person: {} })
    expect(missing.body.errors).toEqual({ 'person.name': ['The field is required.'] })
    expect((await server.admin.get('/leads')).body.meta.total).toBe(1)
    expect((await server.admin.get('/contacts/persons')).body.meta.total).toBe(1)
  })

  it('tells what is wrong with the lead and with its inline person together', async () => {
    await created({ person: { name: 'Ada', emails: [{ value: 'ada@example.com' }] } })
    const { status, body } = await server.admin.post('/leads', {
      title: 'Deal',
      lead_value: 1,
      lead_source_id: 99,
      person: { emails: [{ value: 'ada@example.com' }], user_id: 99, organization_name: 'Fresh' },
    })
    expect([status, Object.keys(body.errors).sort()]).toEqual([
      422,
      ['lead_source_id', 'person.emails.0.value', 'person.name', 'person.user_id'],
    ])
    expect(server.events()).toEqual([])
    expect((await server.admin.get('/contacts/organizations')).body.meta.total).toBe(0)
  })

  it('creates a person, and for it an organization, only for a role and a token that may', async () => {
    const person = { name: 'Ada', emails: [{ value: 'ada@example.com' }], organization_name: 'Fresh' }
    const ann = await addUser(server, 'Ann', { permissions: ['leads.create'] })
    for (const [caller, required] of [
      [ann, 'contacts.persons.create'],
      [await server.as(1, ['leads:*']), 'persons:write'],
      [await server.as(1, ['leads:*', 'persons:write']), 'organizations:write'],
    ] as const) {
      const { status, body } = await caller.post('/leads', { title: 'Deal', lead_value: 1, person })
      expect([status, body.required]).toEqual([403, required])
    }
    expect(server.events()).toEqual([])
    const able = await server.as(1, ['leads:*', 'persons:write', 'organizations:write'])
    expect((await able.post('/leads', { title: 'Deal', lead_value: 1, person })).status).toBe(201)
  })

  it('keeps product lines with the price of the product and sums them up', async () => {
    const gtx = await product('gtx', 4821.5)
    const lead = await created({ products: [{ product_id: gtx.id, quantity: 3 }] })
    expect(lead.products).toMatchObject([
      { product_id: gtx.id, quantity: 3, price: 4821.5, amount: 14464.5, name: 'GTX', sku: 'gtx' },
    ])
    expect(lead.products_amount).toBe(14464.5)
    expect(lead.lead_value).toBe(100)
  })

  it('lists every unknown reference at once and writes nothing', async () => {
    const { status, body } = await server.admin.post('/leads', {
      title: 'x',
      lead_value: 1,
      person_id: 99,
      lead_source_id: 99,
      lead_type_id: 99,
      user_id: 99,
      lead_pipeline_stage_id: 99,
      tag_ids: [99],
      products: [{ product_id: 99 }],
    })
    expect(status).toBe(422)
    expect(Object.keys(body.errors).sort()).toEqual([
      'lead_pipeline_stage_id',
      'lead_source_id',
      'lead_type_id',
      'person_id',
      'products.0.product_id',
      'tag_ids.0',
      'user_id',
    ])
    expect(server.events()).toEqual([])
    expect((await server.admin.get('/leads')).body.meta.total).toBe(0)
  })

  it('fires the tag links after its own pair', async () => {
    const tag = (await server.admin.post('/tags', { name: 'VIP' })).body.data
    server.events()
    const { body } = await server.admin.post('/leads', { title: 'Deal', lead_value: 1, tag_ids: [tag.id] })
    expect(body.data.tags).toMatchObject([{ name: 'VIP' }])
    expect(server.events()).toEqual([
      'lead.create.before',
      'leads.tag.create.before',
      'lead.create.after',
      'leads.tag.create.after',
    ])
  })

  it('takes an expected close date in the past and says so, once it changes', async () => {
    const past = { warnings: [{ field: 'expected_close_date', message: 'The date is in the past.' }] }
    const first = await server.admin.post('/leads', { title: 'Deal', lead_value: 1, expected_close_date: '2020-01-01' })
    expect([first.status, first.body.data.expected_close_date, first.body.meta]).toEqual([201, '2020-01-01', past])
    const put = async (body: object) => (await server.admin.put(`/leads/${first.body.data.id}`, body)).body.meta
    expect(await put({ title: 'Same', expected_close_date: '2020-01-01' })).toBeUndefined()
    expect(await put({ expected_close_date: '2020-01-02' })).toEqual(past)
    expect(await put({ expected_close_date: '2030-01-01' })).toBeUndefined()
    const key = { headers: { 'idempotency-key': 'past' } }
    const body = { title: 'Deal', lead_value: 1, expected_close_date: '2020-01-01' }
    const [once, again] = [await server.admin.post('/leads', body, key), await server.admin.post('/leads', body, key)]
    expect([again.text, again.body.meta]).toEqual([once.text, past])
  })
})

describe('updateLead', () => {
  it('names all that is wrong in one answer, once the record and its version are found', async () => {
    const { id } = await created()
    const body = { title: 7, person_id: 999, lead_pipeline_stage_id: 'won', closed_at: '2026-01-01T00:00:00Z' }
    const answer = await server.admin.put(`/leads/${id}`, body)
    expect([answer.status, Object.keys(answer.body.errors)]).toEqual([
      422,
      ['title', 'lead_pipeline_stage_id', 'person_id'],
    ])
    expect((await server.admin.put('/leads/999', body)).status).toBe(404)
    expect((await server.admin.put(`/leads/${id}`, body, { headers: { 'if-match': '"7"' } })).status).toBe(412)
  })

  it('changes what is sent and nothing else', async () => {
    const lead = await created({ description: 'kept' })
    server.clock.advanceMs(1000)
    const { body } = await server.admin.put(`/leads/${lead.id}`, { title: 'Better deal' })
    expect(body.data).toMatchObject({
      title: 'Better deal',
      description: 'kept',
      version: 2,
      lead_value: 100,
      created_at: lead.created_at,
    })
    expect(body.data.updated_at > lead.updated_at).toBe(true)
    expect(server.seen.at(-1)).toMatchObject({
      name: 'lead.update.after',
      changed: ['title'],
      before: { title: 'Deal' },
    })
  })

  it.each(['', '  '])('refuses the title %j, which would leave it without one', async (title) => {
    const lead = await created()
    const { status, body } = await server.admin.put(`/leads/${lead.id}`, { title, lead_value: 7 })
    expect([status, body.errors]).toEqual([422, { title: ['The field is required.'] }])
    expect((await server.admin.get(`/leads/${lead.id}`)).body.data).toEqual(lead)
  })

  it('ignores what only replies have, but says so when there is nothing else', async () => {
    const lead = await created()
    const both = await server.admin.put(`/leads/${lead.id}`, { title: 'Better deal', status: 2 })
    expect([both.status, both.body.data.title, both.body.data.status]).toEqual([200, 'Better deal', 1])
    const { status, body } = await server.admin.put(`/leads/${lead.id}`, { status: 2 })
    expect([status, body.errors]).toEqual([422, { status: [statusHint] }])
    expect((await server.admin.put(`/leads/${lead.id}`, {})).status).toBe(200)
  })

  it('refuses the address that only replies have of a person who is to be created', async () => {
    const lead = await created()
    const person = { name: 'Ada', email: 'ada@example.com' }
    const { status, body } = await server.admin.put(`/leads/${lead.id}`, { person })
    expect([status, body.errors['person.email']]).toEqual([422, ['Read-only: send emails.']])
  })

  it('keeps the version and leaves no log row when nothing changes', async () => {
    const lead = await created()
    const logged = await server.store.db.selectFrom('events').select('id').execute()
    const { status, body } = await server.admin.put(`/leads/${lead.id}`, lead)
    expect(status).toBe(200)
    expect(body.data).toEqual(lead)
    expect(server.seen.map(({ name, changed }) => [name, changed])).toEqual([
      ['lead.update.before', undefined],
      ['lead.update.after', []],
    ])
    expect(await server.store.db.selectFrom('events').select('id').execute()).toEqual(logged)
  })

  it('moves to the first stage of another pipeline, and takes the pipeline of a stage', async () => {
    const other = (await server.admin.post('/pipelines', { name: 'Partners' })).body.data
    const lead = await created()
    const byPipeline = await server.admin.put(`/leads/${lead.id}`, { lead_pipeline_id: other.id })
    expect(byPipeline.body.data).toMatchObject({ pipeline: { name: 'Partners' }, stage: { id: other.stages[0].id } })
    const byStage = await server.admin.put(`/leads/${lead.id}`, { lead_pipeline_stage_id: stage.prospect })
    expect(byStage.body.data).toMatchObject({ lead_pipeline_id: 1, stage: { code: 'prospect' } })
    const both = await server.admin.put(`/leads/${lead.id}`, {
      lead_pipeline_id: other.id,
      lead_pipeline_stage_id: stage.won,
    })
    expect(both.body.errors).toEqual({ lead_pipeline_stage_id: ['This stage belongs to another pipeline.'] })
  })

  it('takes the complete set of product lines: changes, adds and removes', async () => {
    const [a, b, c] = [await product('a', 1), await product('b', 2), await product('c', 3)]
    const lead = await created({ products: [{ product_id: a.id }, { product_id: b.id }] })
    const { body } = await server.admin.put(`/leads/${lead.id}`, {
      products: [{ id: lead.products[0].id, quantity: 5 }, { product_id: c.id }],
    })
    expect(body.data.products.map((line: any) => [line.sku, line.quantity, line.amount])).toEqual([
      ['a', 5, 5],
      ['c', 1, 3],
    ])
    expect(body.data.products[0].id).toBe(lead.products[0].id)
    expect(server.seen.at(-1)?.changed).toEqual(['products', 'products_amount'])
    const emptied = await server.admin.put(`/leads/${lead.id}`, { products: [] })
    expect(emptied.body.data.products).toEqual([])
  })

  it('refuses a product twice and an amount no field can hold', async () => {
    const a = await product('a', 99999999999)
    const { body } = await server.admin.post('/leads', {
      title: 'x',
      lead_value: 1,
      products: [{ product_id: a.id }, { product_id: a.id, quantity: 1000 }],
    })
    expect(Object.keys(body.errors)).toEqual(['products.1.quantity', 'products.1.product_id'])
  })

  it('answers 412 for a stale If-Match and changes nothing', async () => {
    const lead = await created()
    await server.admin.put(`/leads/${lead.id}`, { title: 'Second' })
    server.events()
    const { status, body } = await server.admin.put(
      `/leads/${lead.id}`,
      { title: 'Third' },
      { headers: { 'if-match': '"1"' } },
    )
    expect([status, body.code]).toEqual([412, 'version_mismatch'])
    expect((await server.admin.get(`/leads/${lead.id}`)).body.data.title).toBe('Second')
    expect(server.events()).toEqual([])
  })

  it('looks the record up before it reports the body', async () => {
    expect((await server.admin.put('/leads/99', { title: 5 })).status).toBe(404)
  })
})

describe('moveLead', () => {
  it('closes the lead when it reaches won, and reopens it when it leaves', async () => {
    const lead = await created()
    server.clock.advanceMs(60_000)
    const won = await server.admin.put(`/leads/${lead.id}/stage`, { lead_pipeline_stage_id: stage.won })
    expect(won.body.data).toMatchObject({
      status: 2,
      closed_at: '2026-03-01T09:31:00.000Z',
      stage_changed_at: '2026-03-01T09:31:00.000Z',
      rotten_days: 0,
    })
    expect(server.events()).toEqual(['lead.update.before', 'lead.update.after', 'lead.won'])
    const open = await server.admin.put(`/leads/${lead.id}/stage`, { lead_pipeline_stage_id: stage.followUp })
    expect(open.body.data).toMatchObject({ status: 1, closed_at: null })
  })

  it('takes the closing time and the reason that are given, and drops the reason when the lead is won', async () => {
    const lead = await created()
    const lost = await server.admin.put(`/leads/${lead.id}/stage`, {
      lead_pipeline_stage_id: stage.lost,
      closed_at: '2026-01-15 10:00',
      lost_reason: 'Too dear',
    })
    expect(lost.body.data).toMatchObject({ status: 3, closed_at: '2026-01-15T10:00:00.000Z', lost_reason: 'Too dear' })
    const edited = await server.admin.put(`/leads/${lead.id}`, { lost_reason: 'Too late' })
    expect(edited.body.data).toMatchObject({ lost_reason: 'Too late', closed_at: '2026-01-15T10:00:00.000Z' })
    const won = await server.admin.put(`/leads/${lead.id}/stage`, { lead_pipeline_stage_id: stage.won })
    expect(won.body.data).toMatchObject({ status: 2, lost_reason: null, closed_at: '2026-03-01T09:30:00.000Z' })
  })

  it('refuses a reason outside a lost stage, a closing time in an open one, and one in the future', async () => {
    const lead = await created()
    const move = (body: object) =>
      server.admin.put(`/leads/${lead.id}/stage`, body).then(({ body }) => Object.keys(body.errors ?? {}))
    expect(await move({ lead_pipeline_stage_id: stage.won, lost_reason: 'x' })).toEqual(['lost_reason'])
    expect(await move({ lead_pipeline_stage_id: stage.prospect, closed_at: '2026-01-15T10:00:00Z' })).toEqual([
      'closed_at',
    ])
    expect(await move({ lead_pipeline_stage_id: stage.won, closed_at: '2026-03-01T09:32:00Z' })).toEqual(['closed_at'])
    expect((await server.admin.get(`/leads/${lead.id}`)).body.data).toMatchObject({
      version: 1,
      stage: { code: 'new' },
    })
    expect(server.events()).toEqual([])
  })

  it('refuses a stage of another pipeline', async () => {
    const other = (await server.admin.post('/pipelines', { name: 'Partners' })).body.data
    const lead = await created()
    const { status, body } = await server.admin.put(`/leads/${lead.id}/stage`, {
      lead_pipeline_stage_id: other.stages[0].id,
    })
    expect(status).toBe(422)
    expect(Object.keys(body.errors)).toEqual(['lead_pipeline_stage_id'])
  })

  it('answers 404 for a lead the caller may not see, as if it did not exist', async () => {
    const lead = await created()
    const other = (
      await server.admin.post('/settings/users', {
        name: 'Bob',
        email: 'bob@example.com',
        role_id: 1,
        view_permission: 'individual',
        password: 'long enough',
        password_confirmation: 'long enough',
      })
    ).body.data
    const bob = await server.as(other.id)
    server.events()
    const { status, body } = await bob.put(`/leads/${lead.id}/stage`, { lead_pipeline_stage_id: stage.won })
    expect([status, body.detail]).toEqual([404, `No lead has id ${lead.id}.`])
    expect((await bob.get('/leads')).body.meta.total).toBe(0)
    expect(server.events()).toEqual([])
  })
})

describe('moveLead to a stage of another pipeline', () => {
  it('answers 404 and 412 before it looks at the stage', async () => {
    const lead = await created()
    const path = `/leads/${lead.id}/stage`
    const foreign = { lead_pipeline_stage_id: 999 }
    const stale = { headers: { 'if-match': '"9"' } }
    expect((await server.admin.put(path, foreign, stale)).status).toBe(412)
    const ann = await addUser(server, 'Ann', { view: 'individual' })
    expect((await ann.put(path, foreign, stale)).status).toBe(404)
    expect((await server.admin.put(path, foreign)).status).toBe(422)
    expect(server.events()).toEqual([])
  })
})

describe('massUpdateLeads', () => {
  it('moves each lead on its own and says which were not', async () => {
    const [a, b] = [await created(), await created()]
    const { status, body } = await server.admin.post('/leads/mass-update', {
      ids: [a.id, b.id, 99, a.id],
      value: stage.won,
    })
    expect(status).toBe(200)
    expect(body.data).toEqual({
      processed: [a.id, b.id],
      failed: [{ id: 99, status: 404, code: 'not_found', detail: 'No lead has id 99.' }],
    })
    expect(body.message).toBe('2 leads updated.')
    expect(server.events()).toEqual([
      'lead.update.before',
      'lead.update.after',
      'lead.won',
      'lead.update.before',
      'lead.update.after',
      'lead.won',
    ])
  })

  it('changes no lead when one fails and the call is atomic', async () => {
    const a = await created()
    const { status, body } = await server.admin.post('/leads/mass-update', {
      ids: [a.id, 99],
      changes: { title: 'New' },
      atomic: true,
    })
    expect([status, body.code]).toEqual([422, 'mass_failed'])
    expect((await server.admin.get(`/leads/${a.id}`)).body.data.title).toBe('Deal')
    expect(server.events().filter((name) => name.endsWith('.after'))).toEqual([])
  })

  it('wants either a value or changes', async () => {
    const a = await created()
    expect((await server.admin.post('/leads/mass-update', { ids: [a.id] })).status).toBe(422)
  })
})

describe('listLeads', () => {
  it('filters by stage code, status, value range, words and rot', async () => {
    const cheap = await created({ title: 'Cheap deal', lead_value: 5, lead_pipeline_stage_id: stage.won })
    const dear = await created({
      title: 'Dear deal for Äpfel',
      lead_value: 500.25,
      person: { name: 'Grace Hopper', emails: [{ value: 'grace@navy.example' }] },
    })
    const ids = async (query: string) =>
      (await server.admin.get(`/leads?${query}`)).body.data.map(({ id }: { id: number }) => id)
    expect(await ids('stage_code=won')).toEqual([cheap.id])
    expect(await ids('status[not]=2')).toEqual([dear.id])
    expect(await ids('lead_value[gt]=5&lead_value[lte]=500.25')).toEqual([dear.id])
    expect(await ids('q=deal%20äpfel')).toEqual([dear.id])
    expect(await ids('q=navy')).toEqual([dear.id])
    expect(await ids('person_id[null]=true')).toEqual([cheap.id])
    expect(await ids('created_at[gte]=2026-03-01&created_at[lte]=2026-03-01&sort=lead_value')).toEqual([
      cheap.id,
      dear.id,
    ])
    expect(await ids('sort=person_name')).toEqual([dear.id, cheap.id])
    expect(await ids('sort=-person_name')).toEqual([dear.id, cheap.id])
    server.clock.set('2026-04-02T09:30:00.000Z')
    expect(await ids('is_rotten=1')).toEqual([dear.id])
    expect(await ids('is_rotten=false')).toEqual([cheap.id])
    expect((await server.admin.get(`/leads/${dear.id}`)).body.data).toMatchObject({ rotten_days: 2, is_rotten: true })
  })

  it('puts full resources in the place of references, and only where asked', async () => {
    const lead = await created({
      person: { name: 'Grace', emails: [{ value: 'grace@navy.example' }], organization_name: 'Navy' },
    })
    const { body } = await server.admin.get(`/leads?include=person,organization,source,type,pipeline`)
    expect(body.data[0].person).toMatchObject({ leads_count: 1, emails: [{ value: 'grace@navy.example' }] })
    expect(body.data[0].organization).toMatchObject({ persons_count: 1 })
    expect(body.data[0].source).toMatchObject({ leads_count: 1 })
    expect(body.data[0].pipeline.stages).toHaveLength(6)
    expect(body.data[0].user).toEqual({ id: 1, name: 'Example Admin', email: 'admin@example.com', image_url: null })
    const shown = await server.admin.get(`/leads/${lead.id}?include=user,stage`)
    expect(shown.body.data.user).toMatchObject({ role: { name: 'Administrator' } })
    expect(shown.body.data.stage).toMatchObject({ leads_count: 1, code: 'new' })
  })

  it('keeps every reference that the role or the token may not show in full', async () => {
    await created({ person: { name: 'Ada', emails: [{ value: 'ada@example.com' }], organization_name: 'Fresh' } })
    const names = 'user,person,organization,pipeline,stage'
    const full = (await server.admin.get(`/leads?include=${names}`)).body.data[0]
    const plain = (await server.admin.get('/leads')).body.data[0]
    expect(full.stage).toHaveProperty('leads_count')
    const ann = await addUser(server, 'Ann', { permissions: ['leads', 'leads.view'] })
    for (const caller of [ann, await server.as(1, ['leads:read'])])
      expect((await caller.get(`/leads?include=${names}`)).body.data).toEqual([plain])
    const some = await server.as(1, ['leads:read', 'persons:read'])
    expect((await some.get(`/leads?include=${names}`)).body.data).toEqual([{ ...plain, person: full.person }])
  })

  it('keeps only the fields that are named, and says which one it does not know', async () => {
    const { id } = await created()
    const { body } = await server.admin.get('/leads?fields=id,title')
    expect(body.data).toEqual([{ id, title: 'Deal' }])
    const wrong = await server.admin.get('/leads?fields=id,titel')
    expect(wrong.body.errors).toEqual({ 'query.fields': ['Unknown field titel. Did you mean `title`?'] })
  })

  it('refuses an unknown sort key, an unknown filter and a page size of a thousand', async () => {
    const { status, body } = await server.admin.get('/leads?sort=titel&stage=1&per_page=1000')
    expect(status).toBe(422)
    expect(Object.keys(body.errors).sort()).toEqual(['query.per_page', 'query.sort', 'query.stage'])
  })
})

describe('attachLeadProduct', () => {
  it('adds a line, changes it when the product is there, and fires nothing when nothing changes', async () => {
    const gtx = await product('gtx', 10)
    const lead = await created()
    const path = `/leads/${lead.id}/products`
    const added = await server.admin.post(path, { product_id: gtx.id, quantity: 2 })
    expect(added.body.data).toMatchObject({ quantity: 2, amount: 20 })
    expect(server.events()).toEqual(['leads.product.create.before', 'leads.product.create.after'])
    await server.admin.post(path, { product_id: gtx.id, price: 4 })
    expect(server.events()).toEqual(['leads.product.update.before', 'leads.product.update.after'])
    await server.admin.post(path, { product_id: gtx.id, price: 4, quantity: 2 })
    expect(server.events()).toEqual([])
    expect((await server.admin.get(`/leads/${lead.id}`)).body.data).toMatchObject({ products_amount: 8, version: 3 })
    expect((await server.admin.get(path)).body.data).toHaveLength(1)
  })

  it('has a quantity with decimals, as an item of a quote has, and rounds its amount as printed', async () => {
    const gtx = await product('gtx', 9.99)
    const lead = await created({ products: [{ product_id: gtx.id, quantity: 0.25 }] })
    expect(lead).toMatchObject({ products_amount: 2.5, products: [{ quantity: 0.25, amount: 2.5 }] })
    const path = `/leads/${lead.id}/products`
    const most = { product_id: gtx.id, price: 0.01, quantity: 99_999_999_999.9999 }
    expect((await server.admin.post(path, most)).body.data).toMatchObject({
      quantity: most.quantity,
      amount: 1_000_000_000,
    })
    for (const quantity of [0, -1, 1e11, 0.00001])
      expect(Object.keys((await server.admin.post(path, { ...most, quantity })).body.errors)).toEqual(['quantity'])
  })

  it('keeps name and SKU of a product that is deleted', async () => {
    const gtx = await product('gtx', 10)
    const lead = await created({ products: [{ product_id: gtx.id }] })
    await server.admin.delete(`/products/${gtx.id}`)
    expect((await server.admin.get(`/leads/${lead.id}`)).body.data.products).toMatchObject([
      { product_id: null, product: null, name: 'GTX', sku: 'gtx' },
    ])
  })
})

describe('updateLeadProduct and detachLeadProduct', () => {
  it('change and remove the line, and answer 404 for a product that is not on the lead', async () => {
    const gtx = await product('gtx', 10)
    const lead = await created({ products: [{ product_id: gtx.id }] })
    const path = `/leads/${lead.id}/products/${gtx.id}`
    expect((await server.admin.put(path, { quantity: 7 })).body.data.amount).toBe(70)
    server.events()
    expect((await server.admin.delete(path)).status).toBe(200)
    expect(server.events()).toEqual(['leads.product.delete.before', 'leads.product.delete.after'])
    expect((await server.admin.delete(path)).status).toBe(404)
    expect((await server.admin.put(path, { quantity: 1 })).status).toBe(404)
  })
})

describe('deleteLead', () => {
  it('deletes the lead with its lines and leaves its last state in the event log', async () => {
    const gtx = await product('gtx', 10)
    const lead = await created({ products: [{ product_id: gtx.id }] })
    expect((await server.admin.delete(`/leads/${lead.id}`)).body).toEqual({ message: 'Lead deleted.' })
    expect((await server.admin.get(`/leads/${lead.id}`)).status).toBe(404)
    const row = await server.store.db
      .selectFrom('events')
      .selectAll()
      .where('name', '=', 'lead.delete.after')
      .executeTakeFirstOrThrow()
    expect(row).toMatchObject({ entity_type: 'leads', entity_id: lead.id, actor_id: 1, after: null })
    expect(JSON.parse(row.before ?? '')).toMatchObject({ title: 'Deal', products: [{ sku: 'gtx' }] })
  })
})
