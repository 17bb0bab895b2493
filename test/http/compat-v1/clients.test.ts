// Calls of real clients of version 1: a workflow node, a plug-in for web forms, and a chat agent.
// The replies must contain the fields that these clients read.
import { beforeEach, describe, expect, it } from 'vitest'
import { adminPassword } from '../../support/app.ts'
import { useServer } from '../../support/using.ts'
import { type Version1, version1 } from '../../support/version1.ts'

const credentials = { email: 'admin@example.com', password: adminPassword, device_name: 'client' }
const server = useServer({ config: { compatV1: true } })

const shown = async (path: string) => (await server.admin.get(path)).body.data

describe('a workflow node', () => {
  let node: Version1
  beforeEach(async () => {
    const { body } = await version1(server, null).post('/login', credentials)
    node = version1(server, body.token)
  })

  it('makes a lead of a person with a product, keeps its products, and adds one', async () => {
    const product = (name: string) => node.post('/products', { name, sku: name, price: 224 })
    const [one, two] = [(await product('one')).body.data, (await product('two')).body.data]
    const found = await node.get(`/products?sku=${one.sku}`)
    expect(Number(found.body.data[0].price)).toBe(224)
    const person = await node.post('/contacts/persons', {
      name: 'Ana',
      emails: [{ value: 'ana@example.com', label: 'work' }],
      contact_numbers: [],
    })
    const { id: personId } = person.body.data
    const line = (id: number, quantity: number) => ({
      product_id: String(id),
      name: 'x',
      quantity,
      price: '224.0000',
      amount: '224.0000',
    })
    const lead = await node.post('/leads', {
      title: 'Offer',
      lead_value: 0,
      lead_pipeline_stage_id: null,
      entity_type: 'leads',
      person_id: String(personId),
      person: { id: String(personId) },
      products: { [`product_${one.id}`]: line(one.id, 2) },
    })
    expect(lead.status, lead.text).toBe(200)
    const { id } = lead.body.data

    const current = (await node.get(`/leads/${id}`)).body.data
    expect(current.person.emails[0].value).toBe('ana@example.com')
    const kept = Object.fromEntries(
      current.lead_products.map((each: any) => [
        `product_${each.product.id}`,
        { ...line(each.product.id, each.quantity), price: Number(each.price).toFixed(4) },
      ]),
    )
    const value = Number(current.lead_value) + 224
    const changed = await node.put(`/leads/${id}`, {
      products: { ...kept, [`product_${two.id}`]: line(two.id, 1) },
      lead_value: value,
    })
    expect(changed.status, changed.text).toBe(200)
    const stored = await shown(`/leads/${id}`)
    expect([stored.lead_value, stored.products.map((each: any) => [each.product_id, each.quantity])]).toEqual([
      224,
      [
        [one.id, 2],
        [two.id, 1],
      ],
    ])
    expect((await node.put(`/leads/${id}`, { products: {} })).body.data.lead_products).toEqual([])
  })

  it('finds a person by address or name, and reads all pages', async () => {
    for (let count = 1; count <= 60; count++)
      await server.admin.post('/contacts/persons', {
        name: `Person ${count}`,
        emails: [{ value: `p${count}@example.com` }],
      })
    const query = new URLSearchParams({
      search: 'p42@example.com',
      searchFields: 'emails:like;name:like',
      searchJoin: 'or',
      limit: '100',
    })
    const found = await node.get(`/contacts/persons/search?${query}`)
    expect(found.body.data.map((each: any) => each.emails[0].value)).toEqual(['p42@example.com'])
    expect((await node.get('/contacts/persons?pagination=0')).body.data).toHaveLength(60)
    const all: unknown[] = []
    for (let page = 1; ; page++) {
      const { data } = (await node.get(`/contacts/persons?limit=50&page=${page}`)).body
      all.push(...data)
      if (data.length < 50) break
    }
    expect(all).toHaveLength(60)
    expect((await node.get('/contacts/organizations?limit=100')).body.data).toEqual([])
  })

  it('reads the stages of all pipelines', async () => {
    const pipelines = (await node.get('/settings/pipelines')).body.data
    const stages = pipelines.flatMap((each: any) => each.stages.map((stage: any) => [stage.id, stage.code, stage.name]))
    expect(stages[0]).toEqual([1, 'new', 'New'])
    expect((await node.get('/settings/pipelines/1')).body.data.stages).toHaveLength(6)
  })

  it('shows the message and the errors of a refused sign-in', async () => {
    const { status, body } = await version1(server, null).post('/login', { ...credentials, password: 'wrong' })
    expect([status, Object.entries(body.errors)]).toEqual([422, [['email', [body.message]]]])
  })
})

describe('a plug-in for web forms', () => {
  it('signs in with a plain form, lists what a lead needs, and sends an entry', async () => {
    const anonymous = version1(server, null)
    const stale = await version1(server, 'expired').get('/settings/sources?pagination=0')
    expect(stale.status).toBe(401)
    const { body: signedIn } = await anonymous.urlencoded('POST', '/login', credentials)
    const plugin = version1(server, signedIn.token)
    const choices = async (path: string) => (await plugin.get(`${path}?pagination=0`)).body.data
    const [[source], [type], [pipeline]] = [
      await choices('/settings/sources'),
      await choices('/settings/types'),
      await choices('/settings/pipelines'),
    ]
    const organization = await plugin.post('/contacts/organizations', { name: 'Acme' })
    const lead = await plugin.post('/leads', {
      title: 'Contact form (Entry #7)',
      description: 'Name: Ada',
      lead_value: 0,
      lead_source_id: source.id,
      lead_type_id: type.id,
      lead_pipeline_stage_id: pipeline.stages[0].id,
      person: {
        name: 'Ada',
        emails: [{ value: 'ada@example.com', label: 'work' }],
        contact_numbers: [{ value: '+1 (202) 555-0101', label: 'work' }],
        organization_id: organization.body.data.id,
      },
    })
    expect(lead.status, lead.text).toBe(200)
    const stored = await shown(`/leads/${lead.body.data.id}`)
    expect([stored.person.name, stored.organization.name]).toEqual(['Ada', 'Acme'])
    const again = await plugin.post('/contacts/organizations', { name: 'Acme' })
    expect([again.status, again.body.errors.name]).toEqual([422, [expect.any(String)]])
  })
})

describe('a chat agent', () => {
  it('finds the person, books and cancels an appointment, and tags the lead', async () => {
    const options = [{ name: 'Public' }, { name: 'Private' }]
    const { body } = await server.admin.post('/settings/attributes', {
      code: 'insurance',
      name: 'Insurance',
      type: 'select',
      entity_type: 'leads',
      options,
    })
    const [, insurance] = body.data.options
    const agent = version1(server, server.admin.token)
    await agent.post('/contacts/persons', {
      name: 'Client',
      emails: [{ value: '591700@chat.example.com', label: 'work' }],
      entity_type: 'persons',
    })
    const [person] = (
      await agent.get('/contacts/persons/search?search=591700@chat.example.com&searchFields=emails:like')
    ).body.data
    const lead = (
      await agent.post('/leads', {
        title: 'Appointment',
        lead_value: '0',
        person: { id: person.id, name: person.name },
        entity_type: 'leads',
      })
    ).body.data
    await agent.put(`/leads/attributes/edit/${lead.id}`, { insurance: [insurance.id] })
    expect((await shown(`/leads/${lead.id}`)).custom_attributes.insurance).toBe(insurance.id)

    const meeting = await agent.post('/activities', {
      title: 'Appointment',
      type: 'meeting',
      lead_id: lead.id,
      schedule_from: '2026-04-01 10:00:00',
      schedule_to: '2026-04-01 10:30:00',
      participants: { users: [1], persons: [person.id] },
    })
    expect(meeting.status, meeting.text).toBe(200)
    const timeline = (await agent.get(`/leads/${lead.id}/activities`)).body.data
    const open = timeline.filter((each: any) => each.type === 'meeting' && !each.is_done)
    expect(open.map((each: any) => each.id)).toEqual([meeting.body.data.id])
    expect((await agent.delete(`/activities/${open[0].id}`)).status).toBe(200)
    expect((await agent.put(`/leads/stage/edit/${lead.id}`, { lead_pipeline_stage_id: [6] })).status).toBe(200)
    expect((await shown(`/leads/${lead.id}`)).status).toBe(3)
    const tag = (await agent.post('/settings/tags', { name: 'hot', color: '#FF0000' })).body.data
    expect((await agent.post(`/leads/${lead.id}/tags`, { tag_id: tag.id })).status).toBe(200)
    expect((await agent.get(`/leads/${lead.id}`)).body.data.tags).toMatchObject([{ name: 'hot' }])
  })
})
