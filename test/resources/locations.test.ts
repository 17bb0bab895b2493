// Rules of locations that the generated contract tests do not check.
import { describe, expect, it } from 'vitest'
import { useNewServers } from '../support/using.ts'

const server = useNewServers()

const warehouse = async (name: string): Promise<number> =>
  (
    await server.admin.post('/settings/warehouses', {
      name,
      contact_name: 'Ada',
      contact_emails: [{ value: `${name}@example.com` }],
      contact_address: { address: '1 Way', country: 'GB', city: 'London', postcode: 'W1' },
    })
  ).body.data.id

describe('createLocation', () => {
  it('takes a name once in a warehouse, and again in another', async () => {
    const [here, there] = [await warehouse('london'), await warehouse('paris')]
    const first = await server.admin.post('/settings/locations', { name: 'A-12', warehouse_id: here })
    expect(first.body.data).toMatchObject({ warehouse: { id: here, name: 'london' } })
    const second = await server.admin.post('/settings/locations', { name: 'a-12', warehouse_id: here })
    expect(second.body.conflicts).toEqual([{ entity_type: 'locations', id: first.body.data.id, field: 'name' }])
    expect((await server.admin.post('/settings/locations', { name: 'a-12', warehouse_id: there })).status).toBe(201)
    expect((await server.admin.post('/settings/locations', { name: 'B', warehouse_id: 99 })).body.errors).toEqual({
      warehouse_id: ['No warehouse has id 99.'],
    })
  })
})

describe('updateLocation', () => {
  it('keeps a location in its warehouse; the same one may be sent back', async () => {
    const [here, there] = [await warehouse('london'), await warehouse('paris')]
    const { id } = (await server.admin.post('/settings/locations', { name: 'A', warehouse_id: here })).body.data
    server.events()
    const moved = await server.admin.put(`/settings/locations/${id}`, { warehouse_id: there })
    expect(moved.status).toBe(422)
    expect(moved.body.errors).toEqual({ warehouse_id: ['A location cannot move to another warehouse.'] })
    expect(server.events()).toEqual([])
    const renamed = await server.admin.put(`/settings/locations/${id}`, { warehouse_id: here, name: 'B' })
    expect(renamed.body.data).toMatchObject({ name: 'B', version: 2 })
    expect(server.events()).toEqual(['settings.location.update.before', 'settings.location.update.after'])
  })
})
