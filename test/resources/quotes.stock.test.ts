// Quotes and leads that sell more than is in stock are stored with a warning.
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Caller } from '../support/app.ts'
import { given } from '../support/given.ts'
import { useSharedServer } from '../support/using.ts'
import { addUser } from '../support/viewers.ts'

const server = useSharedServer()
const make = given(server.admin)
let [chair, advice, location] = [0, 0, 0]

const stock = (in_stock: number) =>
  server.admin.put(`/products/${chair}/inventories`, {
    inventories: [{ warehouse_location_id: location, in_stock, allocated: 0 }],
  })

beforeAll(async () => {
  chair = (await make.product({ sku: 'C-1', name: 'Chair', price: 10 })).id
  advice = (await make.product({ sku: 'A-1', name: 'Advice', price: 10 })).id
  const { body } = await server.admin.post('/settings/warehouses', {
    name: 'London',
    contact_name: 'Ada',
    contact_emails: [{ value: 'ada@example.com' }],
    contact_address: { address: '1 Way', country: 'GB', city: 'London', postcode: 'W1' },
  })
  const shelf = { name: 'Shelf', warehouse_id: body.data.id }
  location = (await server.admin.post('/settings/locations', shelf)).body.data.id
})
beforeEach(async () => expect((await stock(3)).status).toBe(200))

/** Sends a write. Returns its warnings. */
async function warned(method: 'post' | 'put', at: string, body: object, caller: Caller = server.admin) {
  const { status, body: reply, text } = await caller[method](at, body)
  if (status >= 300) throw new Error(text)
  return (reply.meta?.warnings ?? []) as { field: string; message: string }[]
}
const short = (field: string, sold: number, left = 3) => [
  { field, message: `Sells ${sold} of Chair, of which ${left} are in stock.` },
]

describe('a quote', () => {
  const quote = async (quantities: number[]) => {
    const person = await make.person()
    const { id, items } = await make.quote({
      person_id: person.id,
      items: quantities.map((quantity) => ({ product_id: chair, quantity })),
    })
    return { at: `/quotes/${id}`, items }
  }

  it('warns of the sum of its items, and not of products without stock', async () => {
    const { at } = await quote([1])
    const sell = (...items: object[]) => warned('put', at, { items })
    const item = (quantity: number) => ({ product_id: chair, quantity })
    expect(await sell(item(3))).toEqual([])
    expect(await sell({ product_id: advice, quantity: 9 }, item(2), item(1.5))).toEqual(short('items.1.quantity', 3.5))
    expect(await warned('put', at, { subject: 'Chairs' })).toEqual([])
  })

  it('warns when it is sent or accepted after the stock has shrunk', async () => {
    const { at } = await quote([2])
    await stock(1)
    expect(await warned('put', at, { status: 'sent' })).toEqual(short('status', 2, 1))
    expect(await warned('put', at, { status: 'accepted' })).toEqual(short('status', 2, 1))
    expect(await warned('put', at, { status: 'accepted' })).toEqual([])
  })
})

describe('a lead', () => {
  it('warns when its products are written', async () => {
    const lead = await make.lead({ title: 'Chairs' })
    const at = `/leads/${lead.id}`
    const products = [{ product_id: chair, quantity: 4 }]
    expect(await warned('put', at, { products })).toEqual(short('products.0.quantity', 4))
    expect(await warned('put', at, { title: 'More chairs' })).toEqual([])
    expect(await warned('put', `${at}/products/${chair}`, { quantity: 5 })).toEqual(short('quantity', 5))
    expect(await warned('put', `${at}/products/${chair}`, { quantity: 3 })).toEqual([])
  })

  it('does not tell the stock to callers who may not read products', async () => {
    const seller = await addUser(server, 'Seller', { view: 'global', permissions: ['leads', 'leads.create'] })
    const lead = { title: 'Chairs', lead_value: 1, products: [{ product_id: chair, quantity: 4 }] }
    expect(await warned('post', '/leads', lead, seller)).toEqual([])
    expect(await warned('post', '/leads', lead)).toEqual(short('products.0.quantity', 4))
  })
})
