// Inventories of products: exact sums, the rules of each row, and concurrent changes of stock,
// which must not be overwritten.
import { describe, expect, it } from 'vitest'
import { given } from '../support/given.ts'
import { useServer } from '../support/using.ts'

let path: string
let product: number
const place: Record<string, number> = {}
const house: Record<string, number> = {}

const server = useServer({}, async (server) => {
  product = (await given(server.admin).product({ sku: 'gtx' })).id
  path = `/products/${product}/inventories`
  for (const [name, places] of Object.entries({ London: ['A', 'B'], Paris: ['C'] })) {
    const { body } = await server.admin.post('/settings/warehouses', {
      name,
      contact_name: 'Ada',
      contact_emails: [{ value: `${name}@example.com` }],
      contact_address: { address: '1 Way', country: 'GB', city: name, postcode: 'W1' },
    })
    house[name] = body.data.id
    for (const each of places)
      place[each] = (
        await server.admin.post('/settings/locations', { name: each, warehouse_id: body.data.id })
      ).body.data.id
  }
})

const put = (inventories: object[], more: object = {}) => server.admin.put(path, { inventories, ...more })
const at = (name: string, in_stock: number, more: object = {}) => ({
  warehouse_location_id: place[name],
  in_stock,
  ...more,
})
const sums = async () => {
  const { in_stock, allocated, available, version } = (await server.admin.get(`/products/${product}`)).body.data
  return { in_stock, allocated, available, version }
}

describe('updateProductInventories', () => {
  it('sets the complete list, with one event, and the product counts it', async () => {
    const { status, body } = await put([at('A', 5, { allocated: 2 }), at('C', 7)])
    expect(status).toBe(200)
    expect(body.data).toMatchObject([
      { location: { name: 'A' }, warehouse: { name: 'London' }, in_stock: 5, allocated: 2, available: 3 },
      { location: { name: 'C' }, warehouse: { name: 'Paris' }, in_stock: 7, allocated: 0, available: 7 },
    ])
    expect(server.events()).toEqual(['product.inventory.update.before', 'product.inventory.update.after'])
    expect(await sums()).toEqual({ in_stock: 12, allocated: 2, available: 10, version: 2 })
    const again = await put([at('C', 7), { id: body.data[0].id, in_stock: 5, allocated: 2 }])
    expect(again.status).toBe(200)
    expect(await sums()).toMatchObject({ version: 2 })
    await put([])
    expect(await sums()).toEqual({ in_stock: 0, allocated: 0, available: 0, version: 3 })
  })

  it('touches only the warehouse it is told', async () => {
    await put([at('A', 5), at('C', 7)])
    const { body } = await put([at('B', 1)], { warehouse_id: house.London })
    expect(body.data).toMatchObject([{ location: { name: 'B' } }])
    expect((await server.admin.get(path)).body.data).toMatchObject([{ in_stock: 1 }, { in_stock: 7 }])
    const outside = await put([at('C', 1)], { warehouse_id: house.London })
    expect(outside.body.errors).toEqual({
      'inventories.0.warehouse_id': ['The location belongs to another warehouse.'],
    })
  })

  it('lets two rows trade their places', async () => {
    const [a, c] = (await put([at('A', 5), at('C', 7)])).body.data
    const { status, body } = await put([
      { id: a.id, warehouse_location_id: place.C },
      { id: c.id, warehouse_location_id: place.A },
    ])
    expect(status).toBe(200)
    expect(body.data).toMatchObject([
      { id: c.id, location: { name: 'A' }, in_stock: 7 },
      { id: a.id, location: { name: 'C' }, in_stock: 5 },
    ])
  })

  it('refuses all that is wrong at once, and changes nothing', async () => {
    const { status, body } = await put([
      at('A', 1, { allocated: 2 }),
      { warehouse_location_id: 99, in_stock: 1 },
      { id: 99 },
      at('A', 3),
      at('C', 1, { warehouse_id: house.London }),
    ])
    expect(status).toBe(422)
    expect(Object.keys(body.errors)).toEqual([
      'inventories.0.allocated',
      'inventories.1.warehouse_location_id',
      'inventories.2.id',
      'inventories.2.warehouse_location_id',
      'inventories.3.warehouse_location_id',
      'inventories.4.warehouse_id',
    ])
    expect(server.events()).toEqual([])
    expect((await server.admin.get(path)).body.data).toEqual([])
  })

  it('answers 409 when the stock is not what the caller believes', async () => {
    await put([at('A', 5)])
    server.events()
    const { status, body } = await put([at('A', 4, { expected_in_stock: 6 })])
    expect(status).toBe(409)
    expect(body.code).toBe('state_conflict')
    expect(body.detail).toBe('inventories.0 now has 5 in stock, not 6.')
    expect(server.events()).toEqual([])
    expect((await put([at('A', 4, { expected_in_stock: 5 })])).status).toBe(200)
  })
})

describe('listProductWarehouses', () => {
  it('groups the stock by warehouse and location', async () => {
    await put([at('A', 5, { allocated: 1 }), at('B', 2), at('C', 7)])
    const { body } = await server.admin.get(`/products/${product}/warehouses`)
    expect(body.data).toEqual([
      {
        id: house.London,
        name: 'London',
        in_stock: 7,
        allocated: 1,
        available: 6,
        locations: [
          { id: place.A, name: 'A', in_stock: 5, allocated: 1, available: 4 },
          { id: place.B, name: 'B', in_stock: 2, allocated: 0, available: 2 },
        ],
      },
      expect.objectContaining({ name: 'Paris', in_stock: 7 }),
    ])
    expect((await server.admin.get(`/products/${product}?include=inventories`)).body.data.inventories).toHaveLength(3)
    expect((await server.admin.get(`${path}?warehouse_id=${house.Paris}`)).body.data).toHaveLength(1)
  })
})
