// Calls every route of version 1 and checks the stored data through the canonical API.
import { beforeAll, describe, expect, it } from 'vitest'
import { adminPassword } from '../../support/app.ts'
import { file, form } from '../../support/form.ts'
import { pixel } from '../../support/pictures.ts'
import { useSharedServer } from '../../support/using.ts'
import { rowNames, type Version1, version1 } from '../../support/version1.ts'

let v1: Version1
const answered = new Set<string>()
const server = useSharedServer({ config: { compatV1: true } })
beforeAll(() => {
  v1 = version1(server, server.admin.token, answered)
})

let count = 0
/** Returns a unique text. */
const fresh = (word: string): string => `${word} ${++count}`
const shown = async (path: string) => (await server.admin.get(path)).body.data

async function created(path: string, body: object): Promise<any> {
  const reply = await v1.post(path, body)
  expect(reply.status, `${path} ${reply.text}`).toBe(200)
  return reply.body.data
}
const address = { address: '123 Main St', country: 'US', state: 'CA', city: 'Los Angeles', postcode: '90001' }
const mail = () => [{ value: `person${++count}@example.com`, label: 'work' }]
const aPerson = () => created('/contacts/persons', { name: fresh('Person'), emails: mail() })
const aLead = (more: object = {}) => created('/leads', { title: fresh('Lead'), lead_value: '100', ...more })
const aProduct = () =>
  created('/products', {
    name: fresh('Product'),
    sku: `sku-${++count}`,
    quantity: '1',
    price: '25',
    entity_type: 'products',
  })
const aTemplate = () => created('/settings/email-templates', { name: fresh('Template'), subject: 'Hi', content: 'Hi' })
const aTag = () => created('/settings/tags', { name: fresh('Tag'), color: '#FEBF00' })

interface Kind {
  path: string
  /** The path in the canonical API. */
  at: string
  body: () => Record<string, unknown> | Promise<Record<string, unknown>>
  change: Record<string, unknown>
  /** The canonical fields after the change. */
  stored: Record<string, unknown>
}

const kinds: Kind[] = [
  {
    path: '/contacts/organizations',
    at: '/contacts/organizations',
    body: () => ({ name: fresh('Amazon'), address, entity_type: 'organizations' }),
    change: { address: { city: 'Boston' } },
    stored: { address: { ...address, city: 'Boston' } },
  },
  {
    path: '/contacts/persons',
    at: '/contacts/persons',
    body: () => ({
      name: fresh('John Doe'),
      emails: mail(),
      contact_numbers: [
        { value: 9315981404 + count, label: 'work' },
        { value: null, label: 'home' },
      ],
      organization_id: '',
      entity_type: 'persons',
    }),
    change: { job_title: 'Director', contact_numbers: [] },
    stored: { job_title: 'Director', contact_numbers: [] },
  },
  {
    path: '/products',
    at: '/products',
    body: () => ({ name: 'lorem', description: '', sku: fresh('lorem'), quantity: '1', price: '25' }),
    change: { price: '30.5000', quantity: '2' },
    stored: { price: 30.5, quantity: 2 },
  },
  {
    path: '/settings/tags',
    at: '/tags',
    body: () => ({ name: fresh('Active'), color: '#FEBF00' }),
    change: { color: '#FEE2E2' },
    stored: { color: '#FEE2E2' },
  },
  {
    path: '/settings/sources',
    at: '/sources',
    body: () => ({ name: fresh('via phone') }),
    change: { name: 'by phone' },
    stored: { name: 'by phone' },
  },
  {
    path: '/settings/types',
    at: '/types',
    body: () => ({ name: fresh('Freelancing') }),
    change: { name: 'Consulting' },
    stored: { name: 'Consulting' },
  },
  {
    path: '/settings/attributes',
    at: '/settings/attributes',
    body: () => ({
      code: `tax_${++count}`,
      name: 'Tax',
      type: 'select',
      entity_type: 'quotes',
      lookup_type: '',
      validation: '',
      is_required: '0',
      is_unique: '0',
      quick_add: '1',
      is_user_defined: '1',
      option_type: 'options',
      options: { option_0: { name: 'Low', sort_order: 1 }, option_1: { name: 'High', isDelete: 'true' } },
    }),
    change: { name: 'Tax rate' },
    stored: { name: 'Tax rate', options: [{ name: 'Low', sort_order: 1 }] },
  },
  {
    path: '/settings/groups',
    at: '/settings/groups',
    body: () => ({ name: fresh('Group'), description: 'A group' }),
    change: { description: 'Sales' },
    stored: { description: 'Sales' },
  },
  {
    path: '/settings/roles',
    at: '/settings/roles',
    body: () => ({ name: fresh('Manager'), description: 'M', permission_type: 'custom', permissions: ['dashboard'] }),
    change: { permissions: ['dashboard', 'leads'] },
    stored: { permissions: ['dashboard', 'leads'] },
  },
  {
    path: '/settings/users',
    at: '/settings/users',
    body: async () => ({
      name: 'John Doe',
      email: `john${++count}@example.com`,
      status: '1',
      password: 'a long enough secret',
      confirm_password: 'a long enough secret',
      role_id: '1',
      groups: [String((await created('/settings/groups', { name: fresh('Team') })).id)],
      view_permission: 'global',
    }),
    change: { status: '0', password: '', confirm_password: '' },
    stored: { is_active: false, view_permission: 'global' },
  },
  {
    path: '/settings/email-templates',
    at: '/settings/email-templates',
    body: () => ({ name: fresh('Updated'), subject: 'Activity updated: {%activities.title%}', content: '<p>x</p>' }),
    change: { subject: 'News' },
    stored: { subject: 'News' },
  },
  {
    path: '/settings/workflows',
    at: '/settings/workflows',
    body: async () => ({
      name: fresh('Flow'),
      description: 'Lorem',
      entity_type: 'leads',
      event: 'lead.create.after',
      condition_type: 'and',
      conditions: [{ value: ['1'], operator: '==', attribute: 'lead_source_id', attribute_type: 'select' }],
      actions: [
        { id: 'add_tag', value: 'New' },
        { id: 'send_email_to_person', value: String((await aTemplate()).id) },
      ],
    }),
    change: { description: 'Ipsum' },
    stored: {
      description: 'Ipsum',
      conditions: [{ attribute: 'lead_source_id', operator: '==', value: [1] }],
      actions: [
        { id: 'add_tag', value: 'New' },
        { id: 'send_email_to_person', value: expect.any(Number) },
      ],
    },
  },
  {
    path: '/settings/webhooks',
    at: '/settings/webhooks',
    body: () => ({
      name: fresh('Hook'),
      entity_type: 'leads',
      description: 'test',
      method: 'post',
      end_point: 'https://example.com/hook?title={%leads.title%}',
      query_params: [{ key: 'lead_title', value: '{%leads.title%}' }],
      headers: [],
      payload_type: 'default',
      raw_payload_type: '',
    }),
    change: { description: 'changed' },
    stored: { description: 'changed', raw_payload_type: null },
  },
  {
    path: '/settings/web-forms',
    at: '/settings/web-forms',
    body: () => ({
      title: fresh('Form'),
      description: 'd',
      submit_button_label: 'Submit Now',
      submit_success_action: 'message',
      submit_success_content: 'Thanks',
      create_lead: 'on',
      background_color: '#F7F8F9',
      attributes: {
        attribute_0: { attribute_id: '1', name: 'Title', sort_order: 1, placeholder: null, is_required: true },
      },
    }),
    change: { submit_button_label: 'Send' },
    stored: { submit_button_label: 'Send', create_lead: true },
  },
  {
    path: '/settings/marketing/events',
    at: '/settings/marketing/events',
    body: () => ({ name: fresh('Fair'), description: 'A fair', date: '2026-06-01' }),
    change: { date: '2026-07-01' },
    stored: { date: '2026-07-01' },
  },
  {
    path: '/settings/marketing/campaigns',
    at: '/settings/marketing/campaigns',
    body: async () => ({
      name: fresh('Campaign'),
      subject: 'News',
      marketing_template_id: '1',
      marketing_event_id: String(
        (await created('/settings/marketing/events', { name: fresh('E'), description: 'd' })).id,
      ),
      status: '0',
    }),
    change: { status: '1' },
    stored: { is_active: true },
  },
  {
    path: '/settings/warehouses',
    at: '/settings/warehouses',
    body: () => ({
      name: fresh('Warehouse'),
      entity_type: 'warehouses',
      contact_name: 'Jhon Doe',
      description: '',
      contact_emails: mail(),
      contact_numbers: [{ value: `1234567${++count}`, label: 'work' }],
      contact_address: address,
    }),
    change: { description: 'Big' },
    stored: { description: 'Big' },
  },
  {
    path: '/leads',
    at: '/leads',
    body: () => ({
      title: 'Leads via phone',
      description: 'Leads comes via phone call.',
      lead_value: '55446',
      lead_pipeline_stage_id: 1,
      lead_source_id: '1',
      lead_type_id: '1',
      user_id: '1',
      expected_close_date: '2026-05-25',
      entity_type: 'leads',
    }),
    change: { lead_value: '10.5', expected_close_date: '2026-06-01T00:00:00.000000Z', user_id: '' },
    stored: { lead_value: 10.5, expected_close_date: '2026-06-01', user_id: null },
  },
]

describe('the five routes of a kind of record', () => {
  it.each(kinds)('$path', async ({ path, at, body, change, stored }) => {
    const sent = await body()
    const { id } = await created(path, sent)
    const record = await shown(`${at}/${id}`)
    expect(record).toMatchObject(sent.name ? { id, name: sent.name } : { id })
    const changed = await v1.put(`${path}/${id}`, change)
    expect([changed.status, changed.body?.data?.id, typeof changed.body?.message], changed.text).toEqual([
      200,
      id,
      'string',
    ])
    expect(await shown(`${at}/${id}`)).toMatchObject(stored)
    const view = path === '/settings/warehouses' ? `${path}/view/${id}` : `${path}/${id}`
    const single = await v1.get(view)
    expect([single.status, single.body?.data?.id], single.text).toEqual([200, id])
    const listed = await v1.get(`${path}?limit=100&id=${id}`)
    expect(listed.body.data.map((each: any) => each.id)).toEqual([id])
    expect(listed.body.data[0]).toEqual(single.body.data)
    const gone = await v1.delete(`${path}/${id}`)
    expect([gone.status, gone.body]).toEqual([
      200,
      { data: { message: gone.body.message }, message: gone.body.message },
    ])
    expect((await server.admin.get(`${at}/${id}`)).status).toBe(404)
  })

  it.each([
    ['/leads', ['lead_products'], ['products']],
    ['/contacts/persons', ['user', 'sales_owner'], []],
    ['/products', ['on_hand'], ['available']],
    ['/settings/webhooks', ['end_point'], ['url']],
    ['/settings/marketing/campaigns', ['marketing_template_id', 'marketing_template'], ['email_template']],
  ])('%s, with the names of version 1', async (path, own, canonical) => {
    const record = await created(path, (await kinds.find((each) => each.path === path)?.body()) ?? {})
    const listed = await v1.get(`${path}?id=${record.id}`)
    for (const names of [record, ...listed.body.data].map(Object.keys)) {
      expect(names).toEqual(expect.arrayContaining(own))
      expect(names.filter((name) => canonical.includes(name))).toEqual([])
    }
  })

  it('/settings/pipelines, whose stages are a map', async () => {
    const stages = {
      stage_1: { code: 'new', name: 'New', sort_order: 1, probability: 100 },
      stage_2: { code: 'test', name: 'test', sort_order: 2, probability: 100 },
      stage_99: { code: 'won', name: 'Won', sort_order: 3, probability: 100 },
      stage_100: { code: 'lost', name: 'Lost', sort_order: 4, probability: 0 },
    }
    const pipeline = await created('/settings/pipelines', { name: 'Test', rotten_days: '30', is_default: 'on', stages })
    expect([pipeline.is_default, pipeline.stages.map((each: any) => each.code)]).toEqual([
      1,
      ['new', 'test', 'won', 'lost'],
    ])
    const [first, second, ...others] = pipeline.stages
    const kept = Object.fromEntries([first, ...others].map(({ id, name }: any) => [id, { name }]))
    const changed = await v1.put(`/settings/pipelines/${pipeline.id}`, {
      is_default: 0,
      stages: { ...kept, stage_1: { name: 'Extra' }, [second.id]: { name: 'Renamed' } },
    })
    expect([changed.status, changed.body.message]).toEqual([400, expect.any(String)])
    const again = await v1.put(`/settings/pipelines/${pipeline.id}`, {
      stages: { ...kept, stage_1: { name: 'Extra' }, [second.id]: { name: 'Renamed' } },
    })
    const names = (await shown(`/pipelines/${pipeline.id}`)).stages.map(({ id, name }: any) => [id, name])
    expect(again.status, again.text).toBe(200)
    expect(names).toContainEqual([second.id, 'Renamed'])
    expect(names.map(([, name]: [number, string]) => name)).toContain('Extra')
    await server.admin.put('/pipelines/1', { is_default: true })
    expect((await v1.get(`/settings/pipelines/${pipeline.id}`)).body.data.rotten_days).toBe(30)
    expect((await v1.get('/settings/pipelines')).body.data).toHaveLength(2)
    expect((await v1.delete(`/settings/pipelines/${pipeline.id}`)).status).toBe(200)
  })
})

describe('the account', () => {
  const credentials = { email: 'admin@example.com', password: adminPassword, device_name: 'android' }
  const anonymous = () => version1(server, null, answered)

  it('signs in by a multipart form, by a plain form and by JSON', async () => {
    for (const reply of [
      await anonymous().form('/login', credentials),
      await anonymous().urlencoded('POST', '/login', credentials),
      await anonymous().post('/login', credentials),
    ]) {
      expect(reply.status, reply.text).toBe(200)
      expect(reply.body).toEqual({
        data: expect.objectContaining({ id: 1, email: 'admin@example.com', status: 1, role: expect.anything() }),
        message: expect.any(String),
        token: expect.stringMatching(/^\d+\|/),
      })
      const mine = version1(server, reply.body.token, answered)
      expect((await mine.get('/get')).body).toEqual({ data: reply.body.data })
    }
  })

  it('refuses a wrong password with 422', async () => {
    const { status, body } = await anonymous().form('/login', { ...credentials, password: 'wrong' })
    expect([status, body.message, body.errors]).toEqual([422, expect.any(String), { email: [body.message] }])
    const inUrl = await anonymous().post(`/login?${new URLSearchParams(credentials)}`, {})
    expect([inUrl.status, inUrl.text.includes('token')]).toEqual([422, false])
    const empty = await anonymous().post('/login', {})
    expect([empty.status, Object.keys(empty.body.errors)]).toEqual([422, ['email', 'password']])
  })

  it('signs out by DELETE and by POST', async () => {
    for (const method of ['delete', 'post'] as const) {
      const { token } = (await anonymous().post('/login', credentials)).body
      const mine = version1(server, token, answered)
      expect((await mine[method]('/logout')).status).toBe(200)
      const after = await mine.get('/get')
      expect([after.status, after.body.message]).toEqual([401, expect.any(String)])
    }
  })

  it('changes the profile by PUT, and by POST with _method and a picture', async () => {
    expect((await v1.put('/update', { name: 'Kim', email: 'admin@example.com', password: '' })).body.data.name).toBe(
      'Kim',
    )
    const picture = file('me.png', pixel, 'image/png')
    const changed = await v1.form('/update', { _method: 'PUT', name: 'Kim Thomson', image: picture })
    expect([changed.status, changed.body.data?.name], changed.text).toEqual([200, 'Kim Thomson'])
    expect((await shown('/account')).image_url).toMatch(/^http/)
    const removed = await v1.post('/update', { _method: 'put', remove_image: '1', image: 'ignored.png' })
    expect([removed.status, (await shown('/account')).image_url]).toEqual([200, null])
  })

  it('asks for a new password', async () => {
    expect((await anonymous().post('/forgot-password', { email: 'admin@example.com' })).status).toBe(200)
  })
})

describe('leads', () => {
  it('take a new person and a map of products, and write money as text', async () => {
    const product = await aProduct()
    const lead = await aLead({
      person: { id: null, name: 'John Doe', emails: mail(), organization_id: null, user_id: null, job_title: 'Sales' },
      products: {
        product_0: { name: 'iphone', product_id: String(product.id), price: '423.0000', quantity: '2', amount: '846' },
      },
    })
    expect(lead).toMatchObject({
      lead_value: '100.0000',
      lead_products: [{ price: '423.0000', amount: '846.0000', quantity: 2 }],
      person: { name: 'John Doe', job_title: 'Sales', emails: [{ label: 'work' }] },
      status: 1,
      is_rotten: 0,
      created_at: '2026-03-01T09:30:00.000000Z',
    })
    const [line] = lead.lead_products
    const other = await aProduct()
    await v1.put(`/leads/${lead.id}`, {
      products: { [line.id]: { quantity: '5' }, product_1: { product_id: other.id, price: 1, quantity: 1 } },
    })
    const { products: lines } = await shown(`/leads/${lead.id}`)
    expect(lines.map((each: any) => [each.product_id, each.quantity])).toEqual([
      [product.id, 5],
      [other.id, 1],
    ])
    await v1.put(`/leads/${lead.id}`, { products: {} })
    expect((await shown(`/leads/${lead.id}`)).products).toEqual([])
  })

  it('move to another stage, and change single attributes', async () => {
    const { id } = await aLead()
    expect((await v1.put(`/leads/stage/edit/${id}`, { lead_pipeline_stage_id: '5' })).body.data.status).toBe(2)
    expect((await shown(`/leads/${id}`)).lead_pipeline_stage_id).toBe(5)
    expect((await v1.put(`/leads/stage/edit/${id}`, {})).body.errors).toHaveProperty('lead_pipeline_stage_id')
    expect((await v1.put(`/leads/attributes/edit/${id}`, { lead_pipeline_stage_id: 1 })).status).toBe(200)
    expect((await shown(`/leads/${id}`)).status).toBe(1)
  })

  it('have products, which a body names', async () => {
    const [{ id }, product] = [await aLead(), await aProduct()]
    const line = { id: null, is_new: true, name: 'x', amount: 3, product_id: product.id, price: 299.99, quantity: 2 }
    const attached = await v1.put(`/leads/product/${id}`, line)
    expect([attached.status, attached.body.data.amount]).toEqual([200, '599.9800'])
    expect((await v1.delete(`/leads/product/${id}`)).body.errors).toEqual({ product_id: ['The field is required.'] })
    expect((await v1.delete(`/leads/product/${id}`, { product_id: product.id })).status).toBe(200)
    expect((await shown(`/leads/${id}`)).products).toEqual([])
  })

  it('are shown as a board, of one pipeline', async () => {
    const { id } = await aLead({ title: 'On the board' })
    const board = await v1.get('/leads/get?search=title:board;&searchFields=title:like;&limit=5')
    const [stage] = board.body.data
    expect([
      stage.code,
      stage.lead_value,
      stage.leads.data.map((each: any) => each.id),
      stage.leads.meta.per_page,
    ]).toEqual(['new', '100.0000', [id], 5])
    expect((await v1.get('/leads/get/1?pipeline_stage_id=1')).body.data.map((each: any) => each.code)).toEqual(['new'])
  })

  it('have lookups for the filters of the board', async () => {
    await aPerson()
    const found = await v1.get('/leads/kanban/look-up?column=user_id&search=Kim')
    expect([found.status, found.body]).toEqual([200, [{ label: expect.stringContaining('Kim'), value: 1 }]])
    expect((await v1.get('/leads/kanban/look-up?column=person.id&search=Person')).body.length).toBeGreaterThan(0)
    expect((await v1.get('/leads/kanban/look-up?column=nothing&search=Person')).status).toBe(404)
  })

  it('are changed and deleted in mass', async () => {
    const ids = [(await aLead()).id, (await aLead()).id]
    expect((await v1.post('/leads/mass-update', { indices: ids.map(String), value: '5' })).status).toBe(200)
    expect((await shown(`/leads/${ids[1]}`)).lead_pipeline_stage_id).toBe(5)
    expect((await v1.urlencoded('POST', '/leads/mass-destroy', { 'indices[]': String(ids[0]) })).status).toBe(200)
    expect((await server.admin.get(`/leads/${ids[0]}`)).status).toBe(404)
    expect((await v1.post('/leads/mass-destroy', { indices: [] })).body.errors).toHaveProperty('indices')
  })

  it('have e-mails and quotes', async () => {
    const { id } = await aLead()
    const sent = await v1.form(`/leads/${id}/emails`, {
      type: 'email',
      'reply_to[]': 'test@example.com',
      subject: 'subject',
      reply: 'message',
      'attachments[]': [file('a.txt', 'one'), file('b.txt', 'two')],
    })
    expect(sent.body.data, sent.text).toMatchObject({ title: 'subject', type: 'email', is_done: 1, files: [{}, {}] })
    const emailId = sent.body.data.id
    expect((await shown(`/emails/${emailId}`)).lead_id).toBe(id)
    const timeline = await v1.get(`/leads/${id}/activities`)
    expect([Object.keys(timeline.body), timeline.body.data.some((each: any) => each.type === 'email')]).toEqual([
      ['data'],
      true,
    ])
    expect((await v1.delete(`/leads/${id}/emails`)).body.errors).toHaveProperty('email_id')
    expect((await v1.delete(`/leads/${id}/emails`, { email_id: emailId })).status).toBe(200)
    expect((await shown(`/emails/${emailId}`)).lead_id).toBe(null)

    const quotes = [await aQuote({ lead_id: id }), await aQuote({ lead_id: String(id) })]
    expect((await shown(`/leads/${id}`)).quotes_count).toBe(2)
    expect((await v1.delete(`/leads/${id}/quotes`)).body.errors).toEqual({ quote_id: ['The field is required.'] })
    expect((await v1.delete(`/leads/${id}/quotes/${quotes[0].id}`)).status).toBe(200)
    expect((await v1.delete(`/leads/${id}/quotes`, { quote_id: quotes[1].id })).status).toBe(200)
    expect((await shown(`/leads/${id}`)).quotes_count).toBe(0)
  })
})

async function aQuote(more: object = {}): Promise<any> {
  const product = await aProduct()
  return created('/quotes', {
    description: 'School Management Quote',
    expired_at: '2026-05-31',
    person_id: String((await aPerson()).id),
    subject: fresh('Quote'),
    user_id: 1,
    billing_address: address,
    shipping_address: [],
    items: {
      item_0: { product_id: String(product.id), quantity: '100', price: '50', total: '5000', discount_amount: '0' },
    },
    sub_total: 5000,
    discount_amount: 0,
    adjustment_amount: '0',
    grand_total: 5000,
    entity_type: 'quotes',
    ...more,
  })
}

describe('quotes', () => {
  it('have a map of items', async () => {
    const quote = await aQuote()
    expect(quote).toMatchObject({
      grand_total: '5000.0000',
      expired_at: '2026-05-31T00:00:00.000000Z',
      person: { emails: [{}] },
    })
    const [item] = quote.items
    const product = await aProduct()
    const items = { [item.id]: { quantity: '10' }, item_5: { product_id: product.id, quantity: 1, price: '1' } }
    const changed = await v1.urlencoded('PUT', `/quotes/${quote.id}`, {
      [`items[${item.id}][quantity]`]: '10',
      'items[item_5][product_id]': String(product.id),
      'items[item_5][price]': '1',
    })
    expect([changed.status, Object.keys(items).length], changed.text).toEqual([200, 2])
    const stored = await shown(`/quotes/${quote.id}`)
    expect([stored.grand_total, stored.items[0].id]).toEqual([501, item.id])
    expect((await v1.get(`/quotes/${quote.id}`)).body.data.grand_total).toBe('501.0000')
    expect(
      (await v1.get(`/quotes/search?search=subject:${quote.subject}&searchFields=subject:=`)).body.data,
    ).toHaveLength(1)
    expect((await v1.get('/quotes?sort=subject&order=asc')).body.meta.total).toBeGreaterThan(0)
    const found = (filter: string) => v1.get(`/quotes?id=${quote.id}&sort=expired_at&${filter}`)
    expect((await found('sub_total[gte]=501')).body.data).toMatchObject([{ sub_total: '501.0000' }])
    expect((await found('sub_total[gt]=501')).body.data).toEqual([])
    expect((await v1.delete(`/quotes/${quote.id}`)).status).toBe(200)
    const other = await aQuote()
    expect((await v1.post('/quotes/mass-destroy', { indices: [other.id] })).status).toBe(200)
    expect((await server.admin.get(`/quotes/${other.id}`)).status).toBe(404)
  })
})

describe('tags and timelines', () => {
  it.each([
    ['/leads', '/leads', aLead],
    ['/contacts/persons', '/contacts/persons', aPerson],
    ['/mails', '/emails', () => created('/mails', { is_draft: 1, subject: 'Draft' })],
    [
      '/settings/warehouses',
      '/settings/warehouses',
      async () => created('/settings/warehouses', await warehouseBody()),
    ],
  ] as const)('%s', async (path, at, make) => {
    const [{ id }, tag] = [await make(), await aTag()]
    expect((await v1.post(`${path}/${id}/tags`, { tag_id: String(tag.id) })).status).toBe(200)
    expect((await shown(`${at}/${id}/tags`)).map((each: any) => each.id)).toEqual([tag.id])
    expect((await v1.delete(`${path}/${id}/tags`)).body.errors).toEqual({ tag_id: ['The field is required.'] })
    expect((await v1.delete(`${path}/${id}/tags`, { tag_id: tag.id })).status).toBe(200)
    expect(await shown(`${at}/${id}/tags`)).toEqual([])
    expect((await v1.delete(`${path}/${id}/tags?tag_id=${tag.id}`)).status).toBe(404)
    if (path !== '/mails') expect((await v1.get(`${path}/${id}/activities`)).body.data.length).toBeGreaterThan(0)
  })
})

const warehouseBody = async () => {
  const kind = kinds.find(({ path }) => path === '/settings/warehouses')
  return (await kind?.body()) ?? {}
}

describe('activities', () => {
  const meeting = (more: object = {}) => ({
    title: 'Lorem Ipsum',
    type: 'meeting',
    schedule_from: '2026-09-01 10:00:00',
    schedule_to: '2026-09-01 11:00:00',
    location: 'New York',
    comment: 'Lorem Ipsum',
    ...more,
  })

  it('link a lead and participants, and refuse an overlap with 400', async () => {
    const [lead, person] = [await aLead(), await aPerson()]
    const activity = await created(
      '/activities',
      meeting({ lead_id: String(lead.id), participants: { persons: [String(person.id)], users: ['1'] } }),
    )
    expect(activity).toMatchObject({ is_done: 0, schedule_from: '2026-09-01T10:00:00.000000Z', parent_id: null })
    expect(activity.participants).toHaveLength(2)
    const stored = await shown(`/activities/${activity.id}`)
    expect([stored.lead_ids, stored.schedule_to]).toEqual([[lead.id], '2026-09-01T11:00:00.000Z'])
    const overlap = await v1.post('/activities', meeting())
    expect([overlap.status, overlap.body.message]).toEqual([400, expect.any(String)])

    const changed = await v1.put(`/activities/${activity.id}`, {
      title: 'Later',
      participants: { users: [], persons: [] },
    })
    expect([changed.status, changed.body.data.participants]).toEqual([200, []])
    expect((await v1.get(`/activities/${activity.id}`)).body.data.title).toBe('Later')
    expect((await v1.get(`/activities?lead_id=${lead.id}&is_done=0`)).body.data).toHaveLength(1)
    expect((await v1.post('/activities/mass-update', { indices: [activity.id], value: '1' })).status).toBe(200)
    expect((await shown(`/activities/${activity.id}`)).is_done).toBe(true)
    expect((await v1.delete(`/activities/${activity.id}`)).status).toBe(200)
    const note = await created('/activities', { type: 'note', comment: 'Remember' })
    expect(note.is_done).toBe(1)
    expect((await v1.post('/activities/mass-destroy', { indices: [note.id] })).status).toBe(200)
    expect((await server.admin.get(`/activities/${note.id}`)).status).toBe(404)
  })

  it('take a file, which is downloaded by its id', async () => {
    const lead = await aLead()
    const sent = await v1.form('/activities', {
      type: 'file',
      title: 'The plan',
      lead_id: String(lead.id),
      'participants[users][]': '1',
      file: file('plan "A".txt', 'The plan is simple.'),
    })
    expect(sent.status, sent.text).toBe(200)
    const [attached] = sent.body.data.files
    expect(attached.name).toBe('plan "A".txt')
    const bytes = await v1.get(`/activities/file-download/${attached.id}`)
    expect([bytes.status, bytes.text]).toEqual([200, 'The plan is simple.'])
    expect((await v1.get('/activities/file-download/999')).status).toBe(404)
    expect((await v1.form('/activities', { type: 'file', title: 'None', file: file('', '') })).status).toBe(422)
  })
})

describe('the files of a form', () => {
  const files = async (): Promise<number> => (await server.store.db.selectFrom('files').select('id').execute()).length

  it('are removed with a request that is refused, or only tried', async () => {
    const before = await files()
    const refused = await v1.form('/activities', { type: 'file', lead_id: '9999', file: file('a.txt', 'unseen') })
    expect([refused.status, Object.keys(refused.body.errors)]).toEqual([422, ['lead_id']])
    const { body, headers } = await form({ type: 'file', title: 'x', file: file('b.txt', 'tried') })
    const send = (more: Record<string, string>) =>
      server.inject({
        method: 'POST',
        url: '/api/v1/activities',
        payload: body,
        headers: { ...headers, authorization: `Bearer ${server.admin.token}`, ...more },
      })
    expect((await send({ 'accord-dry-run': 'true' })).statusCode).toBe(200)
    expect(await files()).toBe(before)
    expect((await send({ 'idempotency-key': 'upload' })).statusCode).toBe(200)
    expect(await files()).toBe(before + 1)
  })
})

describe('mails', () => {
  const draft = (more: Record<string, unknown> = {}) =>
    v1.form('/mails', {
      type: 'email',
      is_draft: '1',
      'reply_to[]': 'example@example.com',
      'cc[]': 'copy@example.com',
      subject: 'subject',
      reply: '<p>message</p>',
      ...(more as Record<string, string>),
    })

  it('are drafts until a change without is_draft, which sends them once', async () => {
    server.events()
    const { body } = await draft({ 'attachments[]': file('terms.txt', 'Terms') })
    const { id, folders, attachments } = body.data
    expect([folders, attachments.length]).toEqual([['draft'], 1])
    const kept = await v1.form(`/mails/${id}`, { _method: 'PUT', is_draft: '1', subject: 'changed' })
    expect([kept.status, (await shown(`/emails/${id}`)).status], kept.text).toEqual([200, 'draft'])
    const sent = await v1.put(`/mails/${id}`, { is_draft: 0 })
    expect([sent.status, sent.body.data.folders], sent.text).toEqual([200, ['outbox']])
    expect((await shown(`/emails/${id}`)).status).toBe('queued')
    expect((await v1.put(`/mails/${id}`, { is_draft: 0 })).status).toBe(200)
    expect(server.events().filter((name) => name === 'email.create.after')).toHaveLength(1)

    const bytes = await v1.get(`/mails/attachment-download/${attachments[0].id}`)
    expect([bytes.status, bytes.text]).toEqual([200, 'Terms'])
    const shownMail = await v1.get(`/mails/${id}`)
    expect(shownMail.body.data).toMatchObject({ is_read: 1, attachments, cc: ['copy@example.com'] })
    expect((await v1.get(`/mails?id=${id}`)).body.data).toEqual([shownMail.body.data])
  })

  it('have the names of version 1, their parents and errors too', async () => {
    const parent = (await draft()).body.data
    const { data } = (await draft({ parent_id: String(parent.id) })).body
    const named = { reply: '<p>message</p>', reply_to: ['example@example.com'], name: 'Accord CRM', user_type: 'admin' }
    expect(data).toMatchObject({
      ...named,
      unique_id: data.message_id,
      reference_ids: [parent.message_id, data.message_id],
      parent: { ...named, id: parent.id, unique_id: parent.message_id },
    })
    expect(Object.keys(data)).not.toContain('html')
    expect(await shown(`/emails/${data.id}`)).toMatchObject({ html: named.reply, to: named.reply_to })
    const { errors } = (await v1.post('/mails', { reply: 1, reply_to: ['nobody'] })).body
    expect(Object.keys(errors)).toEqual(['reply_to.0'])
    const listed = async (query: string) => (await v1.get(`/mails?id=${data.id}&${query}`)).body.data.length
    expect([await listed('user_type=admin'), await listed('user_type=person')]).toEqual([1, 0])
    const lists = ['user_type=admin,person', 'user_type[]=admin', 'user_type[]=person&user_type[]=admin']
    for (const query of [...lists, 'search=user_type:admin', 'user_type[not]=person'])
      expect(await listed(query), query).toBe(1)
    expect(await listed('user_type[not]=admin')).toBe(0)
  })

  it('are deleted for good, unless the request names the trash', async () => {
    const [one, two, three] = [(await draft()).body.data, (await draft()).body.data, (await draft()).body.data]
    expect((await v1.delete(`/mails/${one.id}`, { type: 'trash' })).status).toBe(200)
    expect((await shown(`/emails/${one.id}`)).folders).toEqual(['trash'])
    expect((await v1.delete(`/mails/${two.id}`)).status).toBe(200)
    expect((await server.admin.get(`/emails/${two.id}`)).status).toBe(404)
    expect(
      (await v1.post('/mails/mass-update', { indices: [three.id], value: 'NA', folders: ['starred'] })).status,
    ).toBe(200)
    expect((await shown(`/emails/${three.id}`)).folders).toContain('starred')
    expect((await v1.post('/mails/mass-destroy', { indices: [one.id, three.id], type: '' })).status).toBe(200)
    expect((await server.admin.get(`/emails/${three.id}`)).status).toBe(404)
  })
})

describe('stock', () => {
  it('has locations, and inventories as a map', async () => {
    const [warehouse, product] = [await created('/settings/warehouses', await warehouseBody()), await aProduct()]
    expect(warehouse.location).toEqual([])
    const location = await created('/settings/locations', { warehouse_id: String(warehouse.id), name: 'San Francisco' })
    expect((await v1.put(`/settings/locations/${location.id}`, { name: 'Oakland' })).status).toBe(200)
    expect((await v1.get(`/settings/warehouses/view/${warehouse.id}`)).body.data.location).toMatchObject([
      { name: 'Oakland' },
    ])
    expect((await v1.get(`/settings/locations/search?search=warehouse_id:${warehouse.id};`)).body).toEqual({
      data: [expect.objectContaining({ id: location.id, warehouse_id: warehouse.id })],
    })
    expect((await v1.get(`/settings/warehouses/search?search=${warehouse.name}`)).body).toMatchObject([
      { id: warehouse.id },
    ])

    const row = {
      warehouse_location_id: String(location.id),
      warehouse_id: String(warehouse.id),
      in_stock: '7',
      allocated: '2',
    }
    const path = `/products/${product.id}/inventories`
    expect((await v1.post(`${path}/${warehouse.id}`, { inventories: { inventory_0: row } })).status).toBe(200)
    const [stored] = await shown(path)
    expect([stored.in_stock, stored.allocated]).toEqual([7, 2])
    expect((await v1.post(path, { inventories: { [stored.id]: { in_stock: 9 } } })).status).toBe(200)
    expect((await v1.get(`/products/${product.id}/warehouses`)).body).toMatchObject([
      { id: warehouse.id, in_stock: 9, on_hand: 7 },
    ])
    expect((await v1.post(path, { inventories: {} })).status).toBe(200)
    expect(await shown(path)).toEqual([])
    expect((await v1.delete(`/settings/locations/${location.id}`)).status).toBe(200)
  })
})

describe('searches, lookups and mass operations', () => {
  it('find records', async () => {
    const person = await aPerson()
    const [{ value }] = person.emails
    const found = await v1.get(`/contacts/persons/search?search=${value}&searchFields=emails:like`)
    expect(found.body).toEqual({ data: [expect.objectContaining({ id: person.id })] })
    expect((await v1.get(`/contacts/persons/search?search=email:${value}`)).body.data).toHaveLength(1)
    expect((await v1.get('/contacts/persons/search?search=email:&searchFields=email:=')).body.data).toEqual([])
    const product = await aProduct()
    expect((await v1.get(`/products/search?search=sku:${product.sku};`)).body.data).toMatchObject([{ id: product.id }])
    const tag = await aTag()
    expect(
      (await v1.get(`/settings/tags/search?search=name:${tag.name};&searchFields=name:like;`)).body.data,
    ).toHaveLength(1)
    expect((await v1.get('/settings/users/search?search=Kim&searchFields=name:like')).body.data[0].role.id).toBe(1)
    const lead = await aLead({ title: 'Needle' })
    expect(
      (await v1.get('/leads/search?search=title:Needle;&searchFields=title:like;&orderBy=id')).body.data,
    ).toMatchObject([{ id: lead.id }])
  })

  it('look up values of attributes', async () => {
    const person = await aPerson()
    const found = await v1.get(`/settings/attributes/lookup/persons?query=${person.name}`)
    expect(found.body.data).toEqual([{ id: person.id, name: person.name }])
    expect((await v1.get(`/settings/attributes/lookup-entity/persons?query=${person.id}`)).body).toEqual({
      id: person.id,
      name: person.name,
    })
    expect((await v1.get('/settings/attributes/lookup-entity/persons')).body).toEqual({})
    expect((await v1.get('/settings/attributes/lookup/nothing')).status).toBe(404)
  })

  it('change and delete several records', async () => {
    const attribute = await created('/settings/attributes', {
      code: `c_${++count}`,
      name: 'C',
      type: 'text',
      entity_type: 'leads',
    })
    expect((await v1.post('/settings/attributes/mass-update', { indices: [attribute.id], value: '0' })).status).toBe(
      200,
    )
    expect((await shown(`/settings/attributes/${attribute.id}`)).quick_add).toBe(false)
    const user = await created('/settings/users', { name: 'Zoe', email: `zoe${++count}@example.com`, role_id: 1 })
    expect((await v1.post('/settings/users/mass-update', { indices: [String(user.id)], value: '0' })).status).toBe(200)
    expect((await shown(`/settings/users/${user.id}`)).is_active).toBe(false)
    const event = await created('/settings/marketing/events', { name: fresh('Fair'), description: 'd' })
    const campaign = await created('/settings/marketing/campaigns', {
      name: 'C',
      subject: 'S',
      marketing_template_id: 1,
    })
    const made: [path: string, id: number][] = [
      ['/settings/attributes', attribute.id],
      ['/settings/users', user.id],
      ['/settings/marketing/events', event.id],
      ['/settings/marketing/campaigns', campaign.id],
      ['/settings/tags', (await aTag()).id],
      ['/products', (await aProduct()).id],
      ['/contacts/persons', (await aPerson()).id],
      ['/contacts/organizations', (await created('/contacts/organizations', { name: fresh('Org') })).id],
    ]
    for (const [path, id] of made) {
      expect((await v1.post(`${path}/mass-destroy`, { indices: [String(id)] })).status, path).toBe(200)
      expect((await server.admin.get(`${path.replace('/settings/tags', '/tags')}/${id}`)).status, path).toBe(404)
    }
  })

  it('save the configuration as a nested object', async () => {
    const saved = await v1.post('/configuration', {
      general: { general: { locale_settings: { locale: 'de' } } },
      keys: ['x'],
    })
    expect(saved.status, saved.text).toBe(200)
    expect(
      (
        await v1.post('/configuration/general', {
          'general[settings][footer][label]': 'x',
          general: { settings: { menu: { leads: 'Deals' } } },
        })
      ).status,
    ).toBe(200)
    const values = new Map((await shown('/settings/configuration')).map((each: any) => [each.code, each.value]))
    expect([values.get('general.general.locale_settings.locale'), values.get('general.settings.menu.leads')]).toEqual([
      'de',
      'Deals',
    ])
  })
})

describe('imports', () => {
  const path = '/settings/data-transfer/imports'
  const about = {
    type: 'persons',
    action: 'append',
    validation_strategy: 'stop-on-errors',
    allowed_errors: '10',
    field_separator: ',',
  }

  it('are made, validated and started', async () => {
    const csv = file('persons.csv', 'name,emails\nAda,ada@example.com\n', 'text/csv')
    const made = await v1.form(path, { ...about, file: csv })
    expect(made.status, made.text).toBe(200)
    const { id } = made.body.data
    expect(made.body.data).toMatchObject({ state: 'pending', process_in_queue: 0 })
    const changed = await v1.form(`${path}/${id}`, {
      _method: 'PUT',
      ...about,
      process_in_queue: '1',
      allowed_errors: '5',
    })
    expect(changed.body.data, changed.text).toMatchObject({ allowed_errors: 5, process_in_queue: 1 })
    const validating = v1.get(`${path}/validate/${id}`)
    await expect.poll(async () => (await shown(`${path}/${id}`)).state).not.toBe('pending')
    await server.work()
    const validated = await validating
    expect([validated.status, validated.body.is_valid, validated.body.import.id], validated.text).toEqual([
      200,
      true,
      id,
    ])
    const started = await v1.get(`${path}/start/${id}`)
    expect([started.status, started.body.import?.id, started.body.stats?.batches?.total], started.text).toEqual([
      200,
      id,
      1,
    ])
    await server.work()
    expect((await v1.get(`${path}/stats/${id}/processed`)).body.import.state).toBe('completed')
    expect((await v1.get(`${path}/${id}`)).body.data.processed_rows_count).toBe(1)
    expect((await v1.get(path)).body.data).toHaveLength(1)
    expect((await server.admin.get('/contacts/persons?email=ada@example.com')).body.meta.total).toBe(1)
    expect((await v1.get(`${path}/start/${id}`)).status).toBe(400)
    expect((await v1.delete(`${path}/${id}`)).status).toBe(200)
  })

  it('have a sample, and a report of their errors', async () => {
    const sample = await v1.get(`${path}/download-sample/persons`)
    expect([sample.status, sample.text]).toEqual([200, expect.stringContaining('emails')])
    const made = await v1.form(path, { ...about, file: file('bad.csv', 'name,emails\nAda,nothing\n', 'text/csv') })
    const { id } = made.body.data
    const validating = v1.get(`${path}/validate/${id}`)
    await expect.poll(async () => (await shown(`${path}/${id}`)).state).not.toBe('pending')
    await server.work()
    expect((await validating).body.import.errors_count).toBe(1)
    const report = await v1.get(`${path}/download-error-report/${id}`)
    expect([report.status, report.text]).toEqual([200, expect.stringContaining('nothing')])
  })
})

describe('the table', () => {
  it('has no row that these tests have not called with success', () => {
    expect(rowNames.filter((name) => !answered.has(name))).toEqual([])
  })
})
