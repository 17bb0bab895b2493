// The event of an export: who took which list, in which format and with which filters.
import { describe, expect, it } from 'vitest'
import { given } from '../support/given.ts'
import { useServer } from '../support/using.ts'
import { addUser } from '../support/viewers.ts'

const server = useServer()

const taken = async (query = 'name=data_transfer.exports.started') =>
  (await server.admin.get(`/events?${query}`)).body.data as { actor: object; after: object; entity_type: string }[]

describe('an export', () => {
  it('leaves an event with its caller, format and filters', async () => {
    await given(server.admin).person({ name: 'Ina' })
    await server.admin.get('/contacts/persons/export?format=csv&q=Ina&created_at[gte]=2020-01-01')
    expect(await taken()).toMatchObject([
      {
        entity_type: 'exports',
        actor: { type: 'user', id: 1 },
        after: { entity_type: 'persons', format: 'csv', filters: { q: 'Ina' } },
      },
    ])
  })

  it('leaves none when it is refused', async () => {
    const before = (await taken()).length
    expect((await server.admin.get('/contacts/persons/export?nonsense=1')).status).toBe(422)
    expect((await server.caller(null).get('/leads/export')).status).toBe(401)
    expect(await taken()).toHaveLength(before)
  })

  it('is told to those who administer users, and to no other user', async () => {
    const seller = await addUser(server, 'Seller', { permissions: ['leads', 'leads.export', 'events'] })
    await seller.get('/leads/export')
    const [last] = (await taken()).slice(-1)
    expect(last).toMatchObject({ actor: { id: seller.id } })
    const { body } = await seller.get('/events?entity_type=exports')
    expect(body.data ?? []).toEqual([])
  })
})
