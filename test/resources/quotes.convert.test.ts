// A quote of a lead: the content of the lead, the keys that replace it, and missing fields.
import { expect, it } from 'vitest'
import { start } from '../support/app.ts'
import { given } from '../support/given.ts'
import { newName } from '../support/names.ts'
import { useServer } from '../support/using.ts'
import { addUser } from '../support/viewers.ts'

const server = useServer()
const { admin } = server
const make = given(admin)

const address = { address: '1 Spring Road', country: 'GB', state: null, city: 'Leeds', postcode: 'LS1 1AA' }
const dayAfter = (days: number): string => new Date(Date.parse(start) + days * 86_400_000).toISOString().slice(0, 10)

/** Creates a lead with a person of an organization. */
async function leadOf(fields: object, organization: object = { address }) {
  const { id: organization_id } = await make.organization({ name: newName('Org'), ...organization })
  const person = await make.person({ name: newName('Person'), organization_id })
  return make.lead({ person_id: person.id, products: [], ...fields })
}
const convert = (id: number, body?: object, caller = admin) => caller.post(`/leads/${id}/quotes/convert`, body)

it('takes person, address, products, amounts and owner of the lead, without a body', async () => {
  const [one, two] = [await make.product({ price: 100 }), await make.product({ price: 7.5 })]
  const owner = await addUser(server, 'Olga')
  const products = [
    { product_id: one.id, quantity: 3, price: 90 },
    { product_id: two.id, quantity: 2.5 },
  ]
  const lead = await leadOf({ title: 'Big one', description: 'All', lead_value: 288.75, products, user_id: owner.id })
  await admin.delete(`/products/${two.id}`)
  server.events()
  const { status, body } = await convert(lead.id)
  expect(status).toBe(201)
  expect(body.data).toMatchObject({
    subject: 'Big one',
    description: 'All',
    status: 'draft',
    person_id: lead.person_id,
    user_id: owner.id,
    billing_address: address,
    shipping_address: null,
    expiry_date: dayAfter(30),
    leads: [{ id: lead.id }],
    grand_total: 288.75,
    items: [
      { product_id: one.id, name: one.name, quantity: 3, price: 90, total: 270 },
      { product_id: null, name: two.name, quantity: 2.5, price: 7.5, total: 18.75 },
    ],
  })
  expect(body.meta?.warnings).toBeUndefined()
  expect(server.events()).toEqual(expect.arrayContaining(['quote.create.after', 'leads.quote.create.after']))
  expect((await admin.get(`/leads/${lead.id}`)).body.data).toMatchObject({ quotes_count: 1, status: lead.status })
})

it('makes one item of the value of a lead without products, and none without a value', async () => {
  const worth = await leadOf({ title: 'Retainer', lead_value: 10_070 })
  expect((await convert(worth.id)).body.data).toMatchObject({
    grand_total: 10_070,
    items: [{ product_id: null, name: 'Retainer', quantity: 1, price: 10_070 }],
  })
  const free = await leadOf({ lead_value: 0 })
  expect((await convert(free.id)).body.data).toMatchObject({ grand_total: 0, items: [] })
})

it('warns when the products and the value of the lead differ', async () => {
  const { id: product_id } = await make.product({ price: 100 })
  const lead = await leadOf({ lead_value: 150, products: [{ product_id, quantity: 1 }] })
  const { body } = await convert(lead.id)
  expect(body.meta.warnings).toEqual([
    { field: 'items', message: 'The products of the lead come to 100, and its value is 150.' },
  ])
  const sent = await convert(lead.id, { items: [{ product_id, quantity: 2 }] })
  expect(sent.body.meta?.warnings).toBeUndefined()
  expect(sent.body.data.grand_total).toBe(200)
})

it('prefers the body, and merges the parts of the address', async () => {
  const lead = await leadOf({ lead_value: 100 })
  const other = await make.person({ name: newName('Person') })
  const { body } = await convert(lead.id, {
    subject: 'Ours',
    description: null,
    billing_address: { city: 'York' },
    shipping_address: { city: 'Hull' },
    expiry_date: '2099-12-31',
    discount_percent: 10,
    status: 'sent',
    external_ids: { erp: newName('q') },
    tag_ids: [],
  })
  expect(body.data).toMatchObject({
    subject: 'Ours',
    description: null,
    status: 'sent',
    billing_address: { ...address, city: 'York' },
    shipping_address: { city: 'Hull' },
    expiry_date: '2099-12-31',
    grand_total: 90,
  })
  expect(body.data.number).not.toBeNull()
  // The address is that of the organization of the person who was sent.
  const unknown = await convert(lead.id, { person_id: other.id })
  expect(Object.keys(unknown.body.errors)).toEqual(expect.arrayContaining(['billing_address.city']))
})

it('names every field that neither the lead nor the body gives', async () => {
  const partial = await leadOf({ lead_value: 1 }, { address: { city: 'Leeds', country: 'GB' } })
  const { status, body } = await convert(partial.id)
  expect(status).toBe(422)
  expect(Object.keys(body.errors).sort()).toEqual(['billing_address.address', 'billing_address.postcode'])
  const alone = await make.lead({ person_id: null, lead_value: 1 })
  const refused = await convert(alone.id, { billing_address: address })
  expect(refused).toMatchObject({ status: 422, body: { errors: { person_id: ['The field is required.'] } } })
  expect((await admin.get(`/leads/${partial.id}/quotes`)).body.data).toEqual([])
  expect((await convert(partial.id, { billing_address: null })).status).toBe(422)
})

it('follows the setting for the expiry, and gives the caller what an inactive owner had', async () => {
  const away = await addUser(server, 'Away')
  const lead = await leadOf({ lead_value: 1, user_id: away.id })
  await server.store.db.updateTable('users').set({ is_active: 0 }).where('id', '=', away.id).execute()
  await admin.put('/settings/configuration', { values: { 'quotes.valid_days': 14 } })
  expect((await convert(lead.id)).body.data).toMatchObject({ user_id: 1, expiry_date: dayAfter(14) })
  await admin.put('/settings/configuration', { values: { 'quotes.valid_days': null } })
  expect((await convert(lead.id)).body.data).toMatchObject({ expiry_date: dayAfter(30) })
})

it('gives no more of the lead and the organization than the caller may read', async () => {
  const owner = await addUser(server, 'Rita', { view: 'individual' })
  const lead = await leadOf({ lead_value: 1, user_id: owner.id })
  expect((await convert(lead.id, undefined, owner)).status).toBe(201)
  const stranger = await addUser(server, 'Sven', { view: 'individual' })
  expect((await convert(lead.id, undefined, stranger)).status).toBe(404)
  const noLeads = await addUser(server, 'Nora', { permissions: ['quotes', 'quotes.create'] })
  expect((await convert(lead.id, undefined, noLeads)).status).toBe(403)
  const noOrganizations = await addUser(server, 'Ole', {
    permissions: ['leads', 'leads.view', 'quotes', 'quotes.create'],
  })
  expect(Object.keys((await convert(lead.id, undefined, noOrganizations)).body.errors)).toContain(
    'billing_address.city',
  )
})

it('writes nothing in a dry run, and once for an idempotency key', async () => {
  const lead = await leadOf({ lead_value: 5 })
  const path = `/leads/${lead.id}/quotes/convert`
  const dry = await admin.post(path, undefined, { headers: { 'accord-dry-run': 'true' } })
  expect(dry).toMatchObject({ status: 200, body: { data: { grand_total: 5 } } })
  const key = { headers: { 'idempotency-key': newName('key') } }
  const [first, second] = [await admin.post(path, {}, key), await admin.post(path, {}, key)]
  expect(second.body.data.id).toBe(first.body.data.id)
  expect((await admin.get(`/leads/${lead.id}/quotes`)).body.data).toHaveLength(1)
})
