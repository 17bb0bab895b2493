// Rules of warehouses that the generated contract tests do not check.
import { describe, expect, it } from 'vitest'
import { type Caller, start } from '../support/app.ts'
import { given } from '../support/given.ts'
import { useNewServers } from '../support/using.ts'
import { addUser } from '../support/viewers.ts'

const server = useNewServers()

const address = { address: '12 Analytical Way', country: 'gb', city: 'London', postcode: 'W1 2AB' }
const body = (name: string) => ({
  name,
  contact_name: 'Ada Lovelace',
  contact_emails: [{ value: `${name.toLowerCase()}@example.com` }],
  contact_address: address,
})
const warehouse = async (name = 'London') => (await server.admin.post('/settings/warehouses', body(name))).body.data
const location = async (warehouse_id: number, name = 'A-12') =>
  (await server.admin.post('/settings/locations', { name, warehouse_id })).body.data

describe('createWarehouse', () => {
  it('creates one with an address that is whole, and an empty list of locations', async () => {
    const { status, body: reply } = await server.admin.post('/settings/warehouses', body('London'))
    expect(status).toBe(201)
    expect(reply.data).toMatchObject({
      contact_emails: [{ value: 'london@example.com', label: 'work' }],
      contact_numbers: [],
      contact_address: { ...address, country: 'GB', state: null },
      locations: [],
      products_count: 0,
    })
    expect(server.events()).toEqual(['settings.warehouse.create.before', 'settings.warehouse.create.after'])
  })

  it('refuses an address without a city, and an update that empties one', async () => {
    const { city: _none, ...partial } = address
    const refused = await server.admin.post('/settings/warehouses', { ...body('Paris'), contact_address: partial })
    expect(refused.status).toBe(422)
    expect(refused.body.errors).toEqual({ 'contact_address.city': ['The field is required.'] })
    const { id } = await warehouse()
    const emptied = await server.admin.put(`/settings/warehouses/${id}`, { contact_address: { postcode: null } })
    expect(emptied.body.errors).toEqual({ 'contact_address.postcode': ['The field is required.'] })
    expect((await server.admin.put(`/settings/warehouses/${id}`, { contact_address: null })).status).toBe(422)
    expect((await server.admin.put(`/settings/warehouses/${id}`, { contact_address: { state: 'LDN' } })).status).toBe(
      200,
    )
  })

  it('names a taken name beside the only entry of a list that needs one', async () => {
    await warehouse()
    const wrong = { ...body('London'), contact_emails: [{ value: 'nowhere' }] }
    const { status, body: reply } = await server.admin.post('/settings/warehouses', wrong)
    expect([status, Object.keys(reply.errors).sort()]).toEqual([422, ['contact_emails.0.value', 'name']])
  })

  it('refuses a name or an e-mail address that another warehouse has, whatever the case', async () => {
    const { id } = await warehouse()
    const { status, body: reply } = await server.admin.post('/settings/warehouses', {
      ...body('LONDON'),
      contact_emails: [{ value: 'London@Example.com' }],
    })
    expect(status).toBe(409)
    expect(reply.conflicts).toEqual([
      { entity_type: 'warehouses', id, field: 'contact_emails.0.value' },
      { entity_type: 'warehouses', id, field: 'name' },
    ])
    await given(server.admin).person({ emails: [{ value: 'paris@example.com' }] })
    expect((await server.admin.post('/settings/warehouses', body('Paris'))).status).toBe(201)
  })
})

describe('deleteWarehouse', () => {
  it('refuses while something is in stock, then takes its locations and empty inventories with it', async () => {
    const { id } = await warehouse()
    const place = await location(id)
    const product = await given(server.admin).product()
    const inventories = `/products/${product.id}/inventories`
    const stock = (in_stock: number) =>
      server.admin.put(inventories, { inventories: [{ warehouse_location_id: place.id, in_stock }] })
    await stock(3)
    const refused = await server.admin.delete(`/settings/warehouses/${id}`)
    expect(refused.body).toMatchObject({
      code: 'in_use',
      conflicts: [{ entity_type: 'products', id: product.id, field: 'inventories' }],
    })
    expect((await server.admin.delete(`/settings/locations/${place.id}`)).status).toBe(409)
    await stock(0)
    server.events()
    expect((await server.admin.delete(`/settings/warehouses/${id}`)).status).toBe(200)
    expect(server.events()).toEqual([
      'settings.warehouse.delete.before',
      'product.inventory.update.before',
      'product.inventory.update.after',
      'settings.warehouse.delete.after',
    ])
    expect((await server.admin.get(inventories)).body.data).toEqual([])
    expect((await server.admin.get(`/settings/locations/${place.id}`)).status).toBe(404)
    // The name of the deleted warehouse can be used again.
    expect((await server.admin.post('/settings/warehouses', body('London'))).status).toBe(201)
  })
})

describe('listWarehouseProducts', () => {
  it('shows the sums of this warehouse, not of all', async () => {
    const [here, there] = [await warehouse(), await warehouse('Paris')]
    const [near, far] = [await location(here.id), await location(there.id)]
    const { product: make } = given(server.admin)
    const [stocked, other] = [await make(), await make()]
    await server.admin.put(`/products/${stocked.id}/inventories`, {
      inventories: [
        { warehouse_location_id: near.id, in_stock: 5, allocated: 2 },
        { warehouse_location_id: far.id, in_stock: 7 },
      ],
    })
    const { body: page } = await server.admin.get(`/settings/warehouses/${here.id}/products`)
    expect(page.data).toMatchObject([{ id: stocked.id, in_stock: 5, allocated: 2, available: 3 }])
    expect(page.meta.total).toBe(1)
    const include = `/settings/warehouses/${here.id}/products?include=inventories&warehouse_id=${there.id}`
    expect((await server.admin.get(include)).body.data).toMatchObject([
      { id: stocked.id, available: 3, inventories: [{ warehouse_id: here.id }, { warehouse_id: there.id }] },
    ])
    const elsewhere = `/settings/warehouses/${here.id}/products?warehouse_id[not]=${there.id}`
    expect((await server.admin.get(elsewhere)).body.data).toEqual([])
    expect((await server.admin.get(`/products?warehouse_id=${there.id}`)).body.data).toMatchObject([
      { id: stocked.id, in_stock: 12, allocated: 2, available: 10 },
    ])
    expect((await server.admin.get('/products?available[lt]=10')).body.data).toMatchObject([{ id: other.id }])
    expect((await server.admin.get(`/settings/warehouses/${here.id}`)).body.data).toMatchObject({ products_count: 1 })
  })
})

describe('getWarehouse', () => {
  it('lists its locations, in full when asked', async () => {
    const { id } = await warehouse()
    const place = await location(id)
    const shown = (await server.admin.get(`/settings/warehouses/${id}`)).body.data
    expect(shown.locations).toEqual([{ id: place.id, name: 'A-12', warehouse_id: id }])
    const full = (await server.admin.get(`/settings/warehouses/${id}?include=locations,activities`)).body.data
    expect(full.locations).toEqual([place])
    expect(full.activities).toEqual([])
  })

  it('shows its newest activities, of which those out of sight take no place', async () => {
    const [here, there] = [await warehouse(), await warehouse('Paris')]
    const ina = await addUser(server, 'Ina', { view: 'individual' })
    const add = async (count: number, user_id: number, warehouse_id: number) => {
      const { db } = server.store
      const at = { created_at: start, updated_at: start }
      const rows = Array.from({ length: count }, () => ({ type: 'note' as const, comment: 'x', user_id, ...at }))
      const made = await db.insertInto('activities').values(rows).returning('id').execute()
      const links = made.map(({ id }) => ({ activity_id: id, warehouse_id }))
      await db.insertInto('warehouse_activities').values(links).execute()
      return made.map(({ id }) => id).sort((one, other) => other - one)
    }
    const hers = await add(2, ina.id, here.id)
    const others = await add(101, 1, here.id)
    const [elsewhere] = await add(1, 1, there.id)
    const shown = async (caller: Caller) =>
      (await caller.get('/settings/warehouses?include=activities&sort=id')).body.data.map(
        ({ activities }: { activities: { id: number }[] }) => activities.map(({ id }) => id),
      )
    expect(await shown(server.admin)).toEqual([others.slice(0, 100), [elsewhere]])
    expect(await shown(ina)).toEqual([hers, []])
  })
})
