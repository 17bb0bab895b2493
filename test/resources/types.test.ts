// Rules of lead types that the generated contract tests do not check. The last type and types in
// use cannot be deleted, because every lead needs a type.
import { describe, expect, it } from 'vitest'
import { given } from '../support/given.ts'
import { useNewServers } from '../support/using.ts'
import { addUser } from '../support/viewers.ts'

const server = useNewServers()

describe('listTypes', () => {
  it('answers the seeded types with the number of leads the caller may see', async () => {
    const ada = await addUser(server, 'Ada', { view: 'individual' })
    await given(server.admin).lead({ lead_type_id: 2 })
    const counts = async (caller = server.admin) =>
      (await caller.get('/types?sort=id')).body.data.map((type: { name: string; leads_count: number }) => [
        type.name,
        type.leads_count,
      ])
    expect(await counts()).toEqual([
      ['New Business', 0],
      ['Existing Business', 1],
    ])
    expect(await counts(ada)).toEqual([
      ['New Business', 0],
      ['Existing Business', 0],
    ])
  })
})

describe('createType', () => {
  it('creates a type with its pair of events and refuses the same name in another case', async () => {
    const { status, body } = await server.admin.post('/types', { name: 'Renewal' })
    const { id } = body.data
    expect([status, body.message]).toEqual([201, 'Type created.'])
    expect(server.events()).toEqual(['settings.type.create.before', 'settings.type.create.after'])
    const refused = await server.admin.post('/types', { name: 'rENEWAL' })
    expect([refused.status, refused.body.conflicts]).toEqual([409, [{ entity_type: 'types', id, field: 'name' }]])
    expect(server.events()).toEqual([])
  })
})

describe('updateType', () => {
  it('renames a type and keeps the leads on it', async () => {
    const lead = await given(server.admin).lead({ lead_type_id: 1 })
    const { body } = await server.admin.put('/types/1', { name: 'First deal' })
    expect(body.data).toMatchObject({ id: 1, name: 'First deal', leads_count: 1, version: 2 })
    expect((await server.admin.get(`/leads/${lead.id}`)).body.data.type).toEqual({ id: 1, name: 'First deal' })
  })
})

describe('deleteType', () => {
  it('refuses a type that leads refer to, names them, and deletes nothing', async () => {
    const lead = await given(server.admin).lead({ lead_type_id: 2 })
    server.events()
    const { status, body } = await server.admin.delete('/types/2')
    expect([status, body.code, body.conflicts]).toEqual([
      409,
      'in_use',
      [{ entity_type: 'leads', id: lead.id, field: 'lead_type_id' }],
    ])
    expect((await server.admin.get('/types/2')).status).toBe(200)
    expect(server.events().filter((name) => name.endsWith('.after'))).toEqual([])
  })

  it('deletes an unused type, but never the last one', async () => {
    expect((await server.admin.delete('/types/2')).status).toBe(200)
    expect(server.events()).toEqual(['settings.type.delete.before', 'settings.type.delete.after'])
    const { status, body } = await server.admin.delete('/types/1')
    expect([status, body.code]).toEqual([409, 'protected'])
  })
})
