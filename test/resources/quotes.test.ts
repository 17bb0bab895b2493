// Rules of quotes that the generated contract tests do not check: the record and its
// items, visibility, deletion and references. Other files test links to leads and the PDF.
import { describe, expect, it } from 'vitest'
import type { Body, Schema } from '../../src/contract/types.ts'
import { startServer } from '../support/app.ts'
import { given } from '../support/given.ts'
import { useServer } from '../support/using.ts'
import { addUser } from '../support/viewers.ts'

let person: Schema<'Person'>
let gtx: Schema<'Product'>

const address = { address: '12 Analytical Way', city: 'London', country: 'GB', postcode: 'W1 2AB' }

const server = useServer({}, async () => {
  person = await make.person({ name: 'Ada Lovelace', emails: [{ value: 'ada@example.com' }] })
  gtx = await make.product({ sku: 'gtx', name: 'GTX', price: 10.5 })
})
const { admin } = server
const make = given(admin)

const body = (changes: Partial<Body<'createQuote'>> = {}) => ({
  subject: '40 seats',
  person_id: person.id,
  billing_address: address,
  expiry_date: '2026-12-31',
  ...changes,
})

async function created(changes: Partial<Body<'createQuote'>> = {}): Promise<Schema<'Quote'>> {
  const { status, body: reply, text } = await admin.post('/quotes', body(changes))
  expect(status, text).toBe(201)
  server.events()
  return reply.data
}

const errorsOf = async (reply: Promise<{ status: number; body: any }>): Promise<unknown> => {
  const { status, body } = await reply
  return [status, body.errors]
}

describe('createQuote', () => {
  it('needs only subject, person, billing address and validity, and belongs to its creator', async () => {
    const { status, body: reply, headers } = await admin.post('/quotes', body())
    expect(status).toBe(201)
    expect(reply).toMatchObject({
      message: 'Quote created.',
      data: {
        person: { name: 'Ada Lovelace', email: 'ada@example.com' },
        user: { id: 1 },
        billing_address: { ...address, state: null },
        shipping_address: null,
        is_expired: false,
        discount_percent: 0,
        adjustment_amount: 0,
        subtotal: 0,
        grand_total: 0,
        items: [],
        leads: [],
        tags: [],
        version: 1,
      },
    })
    expect(headers.location).toBe(`http://localhost:80/api/admin/quotes/${reply.data.id}`)
    expect(server.events()).toEqual(['quote.create.before', 'quote.create.after'])
  })

  it('takes no totals: those are computed', async () => {
    const line = { product_id: gtx.id, total: 1 } as { product_id: number }
    const { status, body: refused } = await admin.post('/quotes', body({ grand_total: 1, items: [line] } as object))
    const sentence = ['Read-only: the server sets it.']
    expect([status, refused.errors]).toEqual([422, { grand_total: sentence, 'items.0.total': sentence }])
  })

  it('computes all totals itself', async () => {
    const quote = await created({
      discount_percent: 10,
      adjustment_amount: -0.5,
      items: [
        { product_id: gtx.id, quantity: 2.5, discount_percent: 20, tax_percent: 19 },
        { product_id: gtx.id, price: 0.3333, quantity: 0.5, discount_amount: 0.01, tax_amount: 0.02 },
      ],
    })
    expect(quote.items).toMatchObject([
      { quantity: 2.5, price: 10.5, total: 26.25, discount_amount: 5.25, tax_amount: 3.59, sort_order: 1 },
      { quantity: 0.5, price: 0.3333, total: 0.17, discount_amount: 0.01, tax_amount: 0.02, sort_order: 2 },
    ])
    expect(quote).toMatchObject({
      subtotal: 26.42,
      discount_amount: 7.38,
      tax_amount: 3.61,
      grand_total: 22.15,
    })
  })

  it('takes SKU, name and price of the product unless name or price are given, and keeps them', async () => {
    const { id } = await created({
      items: [{ product_id: gtx.id }, { product_id: gtx.id, name: 'GTX for schools', price: 0 }],
    })
    await admin.put(`/products/${gtx.id}`, { sku: 'gtx-2', name: 'GTX II', price: 99 })
    expect((await admin.get(`/quotes/${id}`)).body.data).toMatchObject({
      grand_total: 10.5,
      items: [
        { sku: 'gtx', name: 'GTX', price: 10.5, quantity: 1, product: { sku: 'gtx-2', name: 'GTX II' } },
        { sku: 'gtx', name: 'GTX for schools', price: 0 },
      ],
    })
  })

  it('says everything that is wrong at once, and creates nothing', async () => {
    const wrong = body({
      person_id: 99,
      user_id: 99,
      lead_id: 99,
      tag_ids: [99],
      expiry_date: '2026-02-28',
      billing_address: { ...address, city: null as never },
      items: [{ product_id: 99 }, { quantity: 2 }, { id: 7, price: 1 }, { product_id: gtx.id, discount_amount: 10.51 }],
    })
    const { status, body: reply } = await admin.post('/quotes', wrong)
    expect(status).toBe(422)
    expect(Object.keys(reply.errors).sort()).toEqual([
      'billing_address.city',
      'expiry_date',
      'items.0.product_id',
      'items.1.name',
      'items.1.price',
      'items.2.id',
      'items.3.discount_amount',
      'lead_id',
      'person_id',
      'tag_ids.0',
      'user_id',
    ])
    expect(server.events()).toEqual([])
    expect((await admin.get('/quotes')).body.meta.total).toBe(0)
  })

  it('refuses no owner, no billing address and no lead as values', async () => {
    const { status, body: reply } = await admin.post('/quotes', body({ user_id: null, lead_id: null } as never))
    expect([status, Object.keys(reply.errors)]).toEqual([422, ['user_id', 'lead_id']])
    for (const billing_address of [null, {}, { state: 'Kent' }]) {
      const refused = await admin.post('/quotes', body({ billing_address } as never))
      expect(refused.status).toBe(422)
      expect(Object.keys(refused.body.errors)[0]).toMatch(/^billing_address/)
    }
    expect(server.events()).toEqual([])
  })

  it('refuses a quote that comes to less than zero, and amounts that are larger than any can be', async () => {
    const items = [{ product_id: gtx.id }]
    expect((await created({ items, adjustment_amount: -10.5 })).grand_total).toBe(0)
    const largest = 99_999_999_999.99
    for (const [changes, field] of [
      [{ items, adjustment_amount: -10.51 }, 'adjustment_amount'],
      [{ items, adjustment_amount: largest }, 'adjustment_amount'],
      [{ items: [{ product_id: gtx.id, price: largest, quantity: 1.0001 }] }, 'items.0.quantity'],
      [
        {
          items: [
            { product_id: gtx.id, price: largest },
            { product_id: gtx.id, price: 0.01 },
          ],
        },
        'items',
      ],
      [{ items: [{ product_id: gtx.id, tax_amount: largest }] }, 'items'],
    ] as const) {
      const { status, body: reply } = await admin.post('/quotes', body(changes as never))
      expect([status, Object.keys(reply.errors ?? {})]).toEqual([422, [field]])
    }
    expect((await created({ items: [{ product_id: gtx.id, price: largest }] })).grand_total).toBe(largest)
  })

  it('knows today by the time zone of the installation', async () => {
    server.clock.set('2026-03-01T23:30:00.000Z')
    expect((await admin.post('/quotes', body({ expiry_date: '2026-03-01' }))).status).toBe(201)
    const berlin = await startServer({ config: { timezone: 'Europe/Berlin' } })
    berlin.clock.set('2026-03-01T23:30:00.000Z')
    const { id } = await given(berlin.admin).person()
    const { status, body: reply } = await berlin.admin.post(
      '/quotes',
      body({ person_id: id, expiry_date: '2026-03-01' }),
    )
    await berlin.close()
    expect([status, reply.errors]).toEqual([422, { expiry_date: ['Must be today or later.'] }])
  })
})

describe('updateQuote', () => {
  it('takes back what it has shown without a change, also once it has expired', async () => {
    const tag = await make.tag()
    const quote = await created({
      tag_ids: [tag.id],
      discount_percent: 5,
      items: [
        { product_id: gtx.id, quantity: 3, discount_percent: 10, tax_percent: 7 },
        { product_id: gtx.id, tax_amount: 1 },
      ],
    })
    server.clock.set('2027-01-01T00:00:00.000Z')
    const { status, body: reply } = await admin.put(`/quotes/${quote.id}`, quote)
    expect([status, reply.data]).toEqual([200, { ...quote, is_expired: true }])
    expect(server.seen.at(-1)).toMatchObject({ name: 'quote.update.after', changed: [] })
    expect(await errorsOf(admin.put(`/quotes/${quote.id}`, { expiry_date: '2026-12-30' }))).toEqual([
      422,
      { expiry_date: ['Must be today or later.'] },
    ])
  })

  it('changes the items that are named by their own keys, adds those without id and removes the rest', async () => {
    const quote = await created({
      items: [
        { product_id: gtx.id, coupon_code: 'A' },
        { product_id: gtx.id, coupon_code: 'B' },
        { product_id: gtx.id },
      ],
    })
    const [first, second] = quote.items
    server.clock.advanceMs(1000)
    const { status, body: reply } = await admin.put(`/quotes/${quote.id}`, {
      items: [{ product_id: gtx.id, coupon_code: 'C' }, { id: first?.id, quantity: 2 }, { id: second?.id }],
    })
    expect(status).toBe(200)
    expect(reply.data.items).toMatchObject([
      { coupon_code: 'C', sort_order: 1, total: 10.5 },
      { id: first?.id, coupon_code: 'A', quantity: 2, sort_order: 2, total: 21 },
      { id: second?.id, coupon_code: 'B', sort_order: 3 },
    ])
    expect(reply.data).toMatchObject({ subtotal: 42, grand_total: 42, version: 2 })
    expect(server.seen.at(-1)).toMatchObject({
      name: 'quote.update.after',
      changed: ['subtotal', 'grand_total', 'items'],
    })
    expect(server.events()).toEqual(['quote.update.before', 'quote.update.after'])
    const emptied = await admin.put(`/quotes/${quote.id}`, { items: [] })
    expect(emptied.body.data).toMatchObject({ items: [], subtotal: 0, grand_total: 0 })
  })

  it('leaves items and totals alone when nothing they follow from is sent', async () => {
    const quote = await created({ items: [{ product_id: gtx.id }] })
    const { body: reply } = await admin.put(`/quotes/${quote.id}`, { subject: '41 seats', description: 'As discussed' })
    expect(reply.data).toMatchObject({ items: quote.items, grand_total: 10.5 })
    expect(server.seen.at(-1)).toMatchObject({ changed: ['subject', 'description'] })
  })

  it('computes the totals anew when only a discount or an adjustment changes', async () => {
    const { id } = await created({ items: [{ product_id: gtx.id, quantity: 2 }] })
    const { body: reply } = await admin.put(`/quotes/${id}`, { discount_percent: 50 })
    expect(reply.data).toMatchObject({ discount_amount: 10.5, grand_total: 10.5 })
    expect(await errorsOf(admin.put(`/quotes/${id}`, { adjustment_amount: -10.51 }))).toEqual([
      422,
      { adjustment_amount: ['The total of the quote must not be negative.'] },
    ])
    expect((await admin.put(`/quotes/${id}`, { adjustment_amount: -10.5 })).body.data.grand_total).toBe(0)
  })

  it('computes the tax of the items anew when only the discount changes', async () => {
    const items = [
      { product_id: gtx.id, quantity: 2, tax_percent: 20 },
      { product_id: gtx.id, tax_amount: 3 },
    ]
    const { id } = await created({ items })
    const { body: reply } = await admin.put(`/quotes/${id}`, { discount_percent: 50 })
    expect(reply.data).toMatchObject({ tax_amount: 5.1, grand_total: 20.85 })
    expect(reply.data.items).toMatchObject([{ tax_amount: 2.1 }, { tax_amount: 3 }])
    const { body: again } = await admin.put(`/quotes/${id}`, { discount_percent: 0 })
    expect(again.data.items).toMatchObject([{ tax_amount: 4.2 }, { tax_amount: 3 }])
  })

  it('forgets an amount that came from a percentage with the percentage, and keeps one that was agreed on', async () => {
    const quote = await created({
      items: [
        { product_id: gtx.id, discount_percent: 10, tax_percent: 20 },
        { product_id: gtx.id, discount_amount: 1, tax_amount: 2 },
      ],
    })
    const { body: reply } = await admin.put(`/quotes/${quote.id}`, {
      items: quote.items.map(({ id }) => ({ id, discount_percent: 0, tax_percent: 0 })),
    })
    expect(reply.data.items).toMatchObject([
      { discount_amount: 0, tax_amount: 0 },
      { discount_amount: 1, tax_amount: 2 },
    ])
  })

  it('takes SKU, name and price of another product', async () => {
    const other = await make.product({ sku: 'mg', name: 'MG', price: 3 })
    const quote = await created({ items: [{ product_id: gtx.id, quantity: 2 }] })
    const { body: reply } = await admin.put(`/quotes/${quote.id}`, {
      items: [{ id: quote.items[0]?.id, product_id: other.id }],
    })
    expect(reply.data).toMatchObject({
      subtotal: 6,
      items: [{ id: quote.items[0]?.id, product_id: other.id, sku: 'mg', name: 'MG', price: 3, quantity: 2 }],
    })
  })

  it('refuses an item of another quote and an item twice', async () => {
    const quote = await created({ items: [{ product_id: gtx.id }] })
    const other = await created({ items: [{ product_id: gtx.id }] })
    const [own, foreign] = [quote.items[0]?.id, other.items[0]?.id]
    const { status, body: reply } = await admin.put(`/quotes/${quote.id}`, {
      items: [{ id: foreign }, { id: own }, { id: own, product_id: null }],
    })
    expect([status, reply.errors]).toEqual([
      422,
      {
        'items.0.id': [`This quote has no item with id ${foreign}.`],
        'items.2.id': ['This item occurs twice.'],
      },
    ])
    expect((await admin.get(`/quotes/${other.id}`)).body.data).toEqual(other)
  })

  it('merges addresses key by key; the billing address stays complete, the other can go', async () => {
    const { id } = await created({ shipping_address: { city: 'Kyiv' } })
    const { body: reply } = await admin.put(`/quotes/${id}`, {
      billing_address: { city: 'Leeds' },
      shipping_address: { country: 'ua' },
    })
    expect(reply.data).toMatchObject({
      billing_address: { ...address, city: 'Leeds', state: null },
      shipping_address: { address: null, city: 'Kyiv', country: 'UA' },
    })
    expect(await errorsOf(admin.put(`/quotes/${id}`, { billing_address: { postcode: '', city: null } }))).toEqual([
      422,
      { 'billing_address.city': ['The field is required.'], 'billing_address.postcode': ['The field is required.'] },
    ])
    expect((await admin.put(`/quotes/${id}`, { billing_address: null })).status).toBe(422)
    expect((await admin.put(`/quotes/${id}`, { shipping_address: null })).body.data.shipping_address).toBeNull()
  })

  it('never takes the owner away, and hands the quote over with its event', async () => {
    const bob = await addUser(server, 'Bob')
    const { id } = await created()
    expect(await errorsOf(admin.put(`/quotes/${id}`, { user_id: null }))).toEqual([
      422,
      { user_id: ['The field must not be null.'] },
    ])
    expect((await admin.put(`/quotes/${id}`, { user_id: bob.id })).body.data.user).toMatchObject({ name: 'Bob' })
    expect(server.seen.at(-1)).toMatchObject({ changed: ['user_id', 'user'] })
  })

  it('refuses a change of an older version', async () => {
    const { id } = await created()
    await admin.put(`/quotes/${id}`, { subject: 'Newer' })
    const stale = await admin.put(`/quotes/${id}`, { subject: 'Older' }, { headers: { 'if-match': '"1"' } })
    expect([stale.status, stale.body.code]).toEqual([412, 'version_mismatch'])
  })
})

describe('listQuotes', () => {
  const subjects = async (query: string, caller = admin): Promise<string[]> => {
    const { status, body: reply, text } = await caller.get(`/quotes?${query}`)
    expect(status, text).toBe(200)
    return reply.data.map(({ subject }: Schema<'Quote'>) => subject)
  }

  it('filters by product, person, tag, amounts and validity, and sorts by total', async () => {
    const other = await make.product({ price: 1 })
    const tag = await make.tag()
    const bob = await make.person({ name: 'Bob Brown' })
    await created({
      subject: 'a',
      items: [{ product_id: gtx.id }, { product_id: other.id }],
      expiry_date: '2026-03-01',
    })
    await created({ subject: 'b', items: [{ product_id: gtx.id, quantity: 2 }], tag_ids: [tag.id] })
    await created({ subject: 'c', person_id: bob.id, description: 'Only an adjustment', adjustment_amount: 0.0001 })
    expect(await subjects('sort=-grand_total')).toEqual(['b', 'a', 'c'])
    expect(await subjects(`product_id=${other.id}`)).toEqual(['a'])
    expect(await subjects(`product_id[not]=${other.id}&sort=id`)).toEqual(['b', 'c'])
    expect(await subjects(`person_id=${bob.id}`)).toEqual(['c'])
    expect(await subjects(`tag_id=${tag.id}`)).toEqual(['b'])
    expect(await subjects('subtotal[gt]=11.4999&grand_total[lte]=21&sort=id')).toEqual(['a', 'b'])
    expect(await subjects('expiry_date[lt]=2026-12-31')).toEqual(['a'])
    expect(await subjects('q=ADJUSTMENT brown')).toEqual(['c'])
    expect(await subjects('is_expired=true')).toEqual([])
    server.clock.set('2026-03-02T00:00:00.000Z')
    expect(await subjects('is_expired=true')).toEqual(['a'])
    expect(await subjects('is_expired[not]=true&sort=id')).toEqual(['b', 'c'])
    expect((await admin.get('/quotes?subject=A')).body.data).toMatchObject([{ is_expired: true }])
  })

  it('shows each caller the quotes of the owners in sight, and 404 for the rest in every way', async () => {
    const [ada, ann, eve] = [
      await addUser(server, 'Ada', { view: 'group', group: 'Sales' }),
      await addUser(server, 'Ann', { view: 'individual', group: 'Sales' }),
      await addUser(server, 'Eve', { view: 'individual' }),
    ]
    await admin.put(`/contacts/persons/${person.id}`, { user_id: ann.id })
    const own = await created({ subject: 'Of Ann', user_id: ann.id })
    const foreign = await created({ subject: 'Of the administrator' })
    expect(await subjects('', ada)).toEqual(['Of Ann'])
    expect(await subjects('', ann)).toEqual(['Of Ann'])
    expect(await subjects('', eve)).toEqual([])
    expect((await ann.get(`/contacts/persons/${person.id}`)).body.data.quotes_count).toBe(1)
    expect((await admin.get(`/contacts/persons/${person.id}`)).body.data.quotes_count).toBe(2)
    for (const reply of [
      ann.get(`/quotes/${foreign.id}`),
      ann.put(`/quotes/${foreign.id}`, { subject: 'Mine' }),
      ann.delete(`/quotes/${foreign.id}`),
      ann.get(`/quotes/${foreign.id}/print`),
      ann.get(`/quotes/${foreign.id}/leads`),
      ann.get(`/quotes/${foreign.id}/tags`),
    ])
      expect((await reply).status).toBe(404)
    const mass = await ann.post('/quotes/mass-delete', { ids: [foreign.id, own.id] })
    expect(mass.body.data).toMatchObject({ processed: [own.id], failed: [{ id: foreign.id, status: 404 }] })
  })

  it('refuses a person out of sight, and keeps one that is there already', async () => {
    const ann = await addUser(server, 'Ann', { view: 'individual' })
    expect(await errorsOf(ann.post('/quotes', body()))).toEqual([
      422,
      { person_id: [`No person has id ${person.id}.`] },
    ])
    const { id } = await created({ user_id: ann.id })
    const { status } = await ann.put(`/quotes/${id}`, { subject: 'Mine', person_id: person.id })
    expect(status).toBe(200)
  })
})

describe('listPersonQuotes', () => {
  it('lists the quotes of the person with the filters of quotes, for callers who may list quotes', async () => {
    await created({ subject: 'a' })
    await created({ subject: 'b' })
    const other = await make.quote()
    const { body: reply } = await admin.get(`/contacts/persons/${person.id}/quotes?sort=-subject&per_page=1`)
    expect([reply.meta.total, reply.data[0].subject]).toEqual([2, 'b'])
    expect((await admin.get(`/contacts/persons/${other.person_id}/quotes`)).body.meta.total).toBe(1)
    const ann = await addUser(server, 'Ann', { permissions: ['contacts.persons', 'contacts.persons.view'] })
    expect((await ann.get(`/contacts/persons/${person.id}/quotes`)).body.required).toBe('quotes')
    expect((await admin.get('/contacts/persons/99/quotes')).status).toBe(404)
  })
})

describe('deleteQuote', () => {
  it('takes items, links and tags along with one pair of events; lead, product and note stay', async () => {
    const lead = await make.lead()
    const quote = await created({ lead_id: lead.id, items: [{ product_id: gtx.id }], tag_ids: [(await make.tag()).id] })
    server.events()
    expect((await admin.delete(`/quotes/${quote.id}`)).body).toEqual({ message: 'Quote deleted.' })
    expect(server.events()).toEqual(['quote.delete.before', 'quote.delete.after'])
    for (const table of ['quotes', 'quote_items', 'lead_quotes', 'quote_tags'] as const)
      expect(await server.store.db.selectFrom(table).selectAll().execute()).toEqual([])
    expect((await admin.get(`/leads/${lead.id}`)).body.data.quotes_count).toBe(0)
    expect((await admin.get(`/products/${gtx.id}`)).status).toBe(200)
  })
})

describe('massDeleteQuotes', () => {
  it('deletes each quote with its own events and reports the ones that are not there', async () => {
    const [first, second] = [await created(), await created()]
    const { body: reply } = await admin.post('/quotes/mass-delete', { ids: [second.id, 99, first.id] })
    expect(reply).toMatchObject({
      message: '2 quotes deleted.',
      data: { processed: [second.id, first.id], failed: [{ id: 99, status: 404 }] },
    })
    const pair = ['quote.delete.before', 'quote.delete.after']
    expect(server.events()).toEqual([...pair, ...pair])
  })
})

describe('restoreQuote', () => {
  it('brings a deleted quote back with its id, items, tags and leads', async () => {
    const lead = await make.lead()
    const quote = await created({
      lead_id: lead.id,
      tag_ids: [(await make.tag()).id],
      items: [{ product_id: gtx.id, quantity: 2 }, { product_id: gtx.id }],
    })
    await admin.delete(`/quotes/${quote.id}`)
    server.clock.set('2027-01-10T00:00:00.000Z')
    expect((await admin.post(`/quotes/${quote.id}/restore`)).status).toBe(404)
    server.clock.set('2026-03-10T00:00:00.000Z')
    const { status, body: reply } = await admin.post(`/quotes/${quote.id}/restore`)
    expect([status, reply.data]).toMatchObject([
      200,
      { id: quote.id, items: quote.items, leads: quote.leads, tags: quote.tags, grand_total: 31.5 },
    ])
  })
})

describe('custom attributes', () => {
  it('of quotes are checked, kept, merged and filtered by like those of others', async () => {
    const attribute = { code: 'terms', name: 'Terms', type: 'text', entity_type: 'quotes' }
    expect((await admin.post('/settings/attributes', attribute)).status).toBe(201)
    const quote = await created({ custom_attributes: { terms: 'Net 30' } })
    await created()
    expect(quote.custom_attributes).toEqual({ terms: 'Net 30' })
    const found = await admin.get('/quotes?custom_attributes[terms]=net 30')
    expect(found.body.data.map(({ id }: Schema<'Quote'>) => id)).toEqual([quote.id])
    const { body: reply } = await admin.put(`/quotes/${quote.id}`, { custom_attributes: { terms: null } })
    expect(reply.data).toMatchObject({ custom_attributes: { terms: null }, version: 2 })
    expect((await admin.put(`/quotes/${quote.id}`, { custom_attributes: { term: 'x' } })).status).toBe(422)
  })
})

describe('exportQuotes', () => {
  it('writes each quote whole as a line, or as cells with its items and leads in one each', async () => {
    const lead = await make.lead()
    const quote = await created({
      subject: '=40 seats',
      lead_id: lead.id,
      items: [{ product_id: gtx.id, quantity: 2 }],
    })
    const lines = await admin.get('/quotes/export?grand_total[gte]=21')
    expect(JSON.parse(lines.text)).toEqual(quote)
    const [head = '', row = ''] = (await admin.get('/quotes/export?format=csv')).text.split('\r\n')
    expect(head).toContain('billing_address.city,')
    expect(row).toContain("'=40 seats")
    expect(row).toContain(`"id=${gtx.id},price=10.5,quantity=2,discount_amount=0,tax_amount=0",${lead.id},`)
  })
})

describe('what a quote names', () => {
  it('a person cannot be deleted while quotes refer to it; only visible quotes are named', async () => {
    const bob = await make.person({ name: 'Bob' })
    const lead = await make.lead({ person_id: bob.id })
    const quote = await created({ person_id: bob.id })
    server.events()
    const refused = await admin.delete(`/contacts/persons/${bob.id}`)
    expect(refused.body).toMatchObject({
      status: 409,
      code: 'in_use',
      detail: 'Leads and quotes refer to Bob.',
      conflicts: [
        { entity_type: 'leads', id: lead.id, field: 'person_id' },
        { entity_type: 'quotes', id: quote.id, field: 'person_id' },
      ],
    })
    await admin.delete(`/leads/${lead.id}`)
    const ann = await addUser(server, 'Ann', { view: 'individual' })
    await admin.put(`/contacts/persons/${bob.id}`, { user_id: ann.id })
    const unseen = await ann.delete(`/contacts/persons/${bob.id}`)
    expect(unseen.body).toMatchObject({
      detail: 'Quotes refer to Bob.',
      conflicts: [{ entity_type: 'quotes', id: null, field: 'person_id' }],
    })
    await admin.delete(`/quotes/${quote.id}`)
    expect((await ann.delete(`/contacts/persons/${bob.id}`)).status).toBe(200)
  })

  it('a product goes and leaves its items with SKU, name and price; they can still be changed', async () => {
    const quote = await created({ items: [{ product_id: gtx.id, quantity: 2 }] })
    expect((await admin.delete(`/products/${gtx.id}`)).status).toBe(200)
    expect(server.events()).toEqual(['product.delete.before', 'product.delete.after'])
    const { data } = (await admin.get(`/quotes/${quote.id}`)).body
    expect(data).toMatchObject({
      grand_total: 21,
      items: [{ product_id: null, product: null, sku: 'gtx', name: 'GTX', price: 10.5, total: 21 }],
    })
    const [item] = data.items
    const { status, body: reply } = await admin.put(`/quotes/${quote.id}`, { items: [{ ...item, quantity: 3 }] })
    expect([status, reply.data.items[0]]).toMatchObject([
      200,
      { id: item.id, sku: 'gtx', product_id: null, total: 31.5 },
    ])
  })

  it('a deleted owner leaves the quote without one, or to a successor with an event', async () => {
    const [ann, bob] = [await addUser(server, 'Ann'), await addUser(server, 'Bob')]
    const [first, second] = [await created({ user_id: ann.id }), await created({ user_id: bob.id })]
    await admin.delete(`/settings/users/${ann.id}`)
    const orphan = (await admin.get(`/quotes/${first.id}`)).body.data
    expect(orphan).toMatchObject({ user_id: null, user: null, version: 2 })
    expect((await admin.put(`/quotes/${first.id}`, orphan)).body.data).toEqual(orphan)
    server.events()
    await admin.delete(`/settings/users/${bob.id}?reassign_to=1`)
    expect(server.events()).toContain('quote.update.after')
    expect((await admin.get(`/quotes/${second.id}`)).body.data.user_id).toBe(1)
  })

  it('a tag goes and is taken off the quote with an event', async () => {
    const tag = await make.tag()
    const { id } = await created({ tag_ids: [tag.id] })
    await admin.delete(`/tags/${tag.id}`)
    expect(server.events()).toContain('quotes.tag.delete.after')
    expect((await admin.get(`/quotes/${id}`)).body.data).toMatchObject({ tags: [], version: 2 })
  })
})

describe('attachQuoteTag', () => {
  it('attaches a tag once as a change of its own, and detaches it', async () => {
    const { id } = await created()
    const tag = await make.tag()
    server.events()
    expect((await admin.post(`/quotes/${id}/tags`, { tag_id: tag.id })).status).toBe(200)
    expect(server.events()).toEqual(['quotes.tag.create.before', 'quotes.tag.create.after'])
    await admin.post(`/quotes/${id}/tags`, { tag_id: tag.id })
    expect(server.events()).toEqual([])
    expect((await admin.get(`/quotes/${id}`)).body.data).toMatchObject({ tags: [{ id: tag.id }], version: 2 })
    await admin.delete(`/quotes/${id}/tags/${tag.id}`)
    expect(server.events()).toEqual(['quotes.tag.delete.before', 'quotes.tag.delete.after'])
  })
})

describe('the amounts of a quote', () => {
  /** Returns a created quote of a server with these settings. */
  async function quoteWith(settings: Parameters<typeof startServer>[0], changes: object) {
    const own = await startServer(settings)
    try {
      const make = given(own.admin)
      const product = await make.product()
      const person = await make.person()
      const { items = [], ...more } = changes as { items?: object[] }
      const {
        status,
        body: reply,
        text,
      } = await own.admin.post('/quotes', {
        subject: 'Money',
        person_id: person.id,
        billing_address: { address: '1 Street', country: 'DE', city: 'Bonn', postcode: '53111' },
        expiry_date: '2030-01-01',
        items: items.map((item) => ({ product_id: product.id, ...item })),
        ...more,
      })
      expect(status, text).toBe(201)
      return reply.data
    } finally {
      await own.close()
    }
  }

  it.each([
    [
      [{ price: 49.95, discount_percent: 10 }],
      { subtotal: 49.95, discount_amount: 5, tax_amount: 0, grand_total: 44.95 },
    ],
    [
      [{ price: 19.95, quantity: 3, discount_percent: 10, tax_percent: 19 }],
      { subtotal: 59.85, discount_amount: 5.99, tax_amount: 10.23, grand_total: 64.09 },
    ],
    [
      [
        { price: 0.99, quantity: 5, discount_percent: 5, tax_percent: 19 },
        { price: 4.49, quantity: 2, discount_percent: 5, tax_percent: 7 },
      ],
      { subtotal: 13.93, discount_amount: 0.7, tax_amount: 1.49, grand_total: 14.72 },
    ],
    [
      [{ price: 24.5, quantity: 3, discount_percent: 2.5, tax_percent: 5.5 }],
      { subtotal: 73.5, discount_amount: 1.84, tax_amount: 3.94, grand_total: 75.6 },
    ],
  ])('add up as printed: %j', async (items, totals) => {
    expect(await quoteWith({}, { items })).toMatchObject(totals)
  })

  it.each([
    ['JPY', { total: 3, discount_amount: 0, tax_amount: 0 }, { subtotal: 3, adjustment_amount: -1, grand_total: 2 }],
    [
      'KWD',
      { total: 3.333, discount_amount: 0.333, tax_amount: 0.3 },
      { subtotal: 3.333, adjustment_amount: -0.556, grand_total: 2.744 },
    ],
    [
      'CLF',
      { total: 3.333, discount_amount: 0.3333, tax_amount: 0.3 },
      { subtotal: 3.333, adjustment_amount: -0.5555, grand_total: 2.7442 },
    ],
  ])('have the decimals of %s', async (currency, item, totals) => {
    const items = [{ price: 1.111, quantity: 3, discount_percent: 10, tax_percent: 10 }]
    const quote = await quoteWith({ config: { currency } }, { items, adjustment_amount: -0.5555 })
    expect(quote).toMatchObject({ ...totals, items: [{ price: 1.111, ...item }] })
  })

  it('leave the tax base alone when ACCORD_TAX_AFTER_DISCOUNT is off', async () => {
    const changes = { discount_percent: 50, items: [{ price: 100, tax_percent: 20 }] }
    expect(await quoteWith({}, changes)).toMatchObject({ tax_amount: 10, grand_total: 60 })
    const off = await quoteWith({ config: { taxAfterDiscount: false } }, changes)
    expect(off).toMatchObject({ tax_amount: 20, grand_total: 70 })
  })
})
