// Embedded records: only callers who may read the record get more than a reference. A missing
// permission of the role and a missing ability of the token have the same effect.
import { describe, expect, it } from 'vitest'
import type { Caller } from '../../support/app.ts'
import { given } from '../../support/given.ts'
import { useServer } from '../../support/using.ts'
import { addUser } from '../../support/viewers.ts'

const server = useServer()

/**
 * Returns two callers who may not read the embedded records, and one who may. All have the global
 * view.
 */
async function readers(
  permissions: string[],
  abilities: string[],
  more: { permissions: string[]; abilities: string[] },
): Promise<{ without: Caller[]; able: Caller[] }> {
  const role = await addUser(server, 'Rolf', { permissions })
  const able = await addUser(server, 'Able', { permissions: [...permissions, ...more.permissions] })
  const token = await server.as(1, abilities)
  return { without: [role, token], able: [able, await server.as(1, [...abilities, ...more.abilities])] }
}

describe('getTopPersonsReport', () => {
  it('shows more than the first address only to callers who may read persons', async () => {
    const emails = [
      { value: 'ada@example.com', label: 'work' },
      { value: 'hushed.address@example.org', label: 'home' },
    ]
    const person = await given(server.admin).person({ name: 'Ada Lovelace', emails })
    const lead = await given(server.admin).lead({ title: 'Seats', lead_value: 7, person_id: person.id })
    const stages = (await server.admin.get('/pipelines/1/stages')).body.data
    const won = stages.find(({ code }: { code: string }) => code === 'won').id
    expect((await server.admin.put(`/leads/${lead.id}/stage`, { lead_pipeline_stage_id: won })).status).toBe(200)

    const { without, able } = await readers(['dashboard'], ['reports:read'], {
      permissions: ['contacts.persons', 'contacts.persons.view'],
      abilities: ['persons:read'],
    })
    const shown = async (caller: Caller) =>
      (await caller.get('/reports/top-persons')).body.data.statistics.map((each: any) => each.emails)
    for (const caller of without) expect(await shown(caller)).toEqual([emails.slice(0, 1)])
    for (const caller of able) expect(await shown(caller)).toEqual([emails])
  })
})

describe('getPerson', () => {
  it('shows the address of the organization only to callers who may read organizations', async () => {
    const address = { address: 'Hushed Street 1', country: 'GB', state: null, city: 'London', postcode: 'N1' }
    const firm = await given(server.admin).organization({ name: 'Analytical Ltd', address })
    const { id } = await given(server.admin).person({ organization_id: firm.id })
    const { without, able } = await readers(['contacts.persons', 'contacts.persons.view'], ['persons:read'], {
      permissions: ['contacts.organizations'],
      abilities: ['organizations:read'],
    })
    const shown = async (caller: Caller) => [
      (await caller.get(`/contacts/persons/${id}`)).body.data.organization,
      (await caller.get('/contacts/persons')).body.data.find((each: any) => each.id === id).organization,
    ]
    const reference = { id: firm.id, name: 'Analytical Ltd', address: null }
    for (const caller of without) expect(await shown(caller)).toEqual([reference, reference])
    for (const caller of able) expect((await shown(caller)).map(({ address }) => address)).toEqual([address, address])
  })
})

describe('listProducts', () => {
  it('includes inventories only for callers who may read those', async () => {
    const product = await given(server.admin).product({ name: 'Chair' })
    const reader = await addUser(server, 'Rolf', { permissions: ['products'] })
    const viewer = await addUser(server, 'Able', { permissions: ['products', 'products.view'] })
    expect((await reader.get(`/products/${product.id}/inventories`)).status).toBe(403)
    const shown = async (caller: Caller) => (await caller.get('/products?include=inventories')).body.data[0]
    expect(await shown(reader)).not.toHaveProperty('inventories')
    expect(await shown(viewer)).toMatchObject({ inventories: [] })
  })
})
