// A validation counts the expected changes, and filters find the records of an import.
import { describe, expect, it } from 'vitest'
import { given } from '../support/given.ts'
import { csvOf, importing, path } from '../support/importing.ts'
import { useServer } from '../support/using.ts'

const server = useServer()
const using = () => importing(server.admin)
const get = async (at: string) => {
  const { status, body, text } = await server.admin.get(at)
  if (status !== 200) throw new Error(text)
  return body
}
const ids = async (at: string): Promise<number[]> => (await get(at)).data.map(({ id }: { id: number }) => id)

describe('the preview of a validation', () => {
  it('counts created, changed and unchanged records, and the values that would be replaced', async () => {
    const make = given(server.admin)
    await make.person({ name: 'Ada', emails: [{ value: 'ada@example.com' }], job_title: 'Engineer' })
    await make.person({ name: 'Grace', emails: [{ value: 'grace@example.com' }], job_title: 'Admiral' })
    await make.person({ name: 'Joan', emails: [{ value: 'joan@example.com' }] })
    const rows = [
      ['name', 'emails', 'job_title'],
      ['Ada', 'ada@example.com', 'Countess'],
      ['Grace', 'grace@example.com', 'Admiral'],
      ['Joan', 'joan@example.com', 'Analyst'],
      ['Mary', 'mary@example.com', ''],
      ['Mary S.', 'mary@example.com', ''],
      ['Nameless', 'not an address', ''],
    ]
    const { id } = await using().record('persons', csvOf(rows))
    expect((await get(`${path}/${id}`)).data.preview).toBeNull()
    const { preview } = await using().post(id, 'validate')
    expect(preview).toEqual({
      created: 1,
      updated: 3,
      unchanged: 1,
      deleted: 0,
      skipped: 1,
      conflicts: [
        { field: 'job_title', count: 1, row: 2 },
        { field: 'name', count: 1, row: 6 },
      ],
    })
    expect((await using().post(id, 'start')).preview).toEqual(preview)
  })

  it('counts over batches, and starts again with the settings', async () => {
    const rows = [['sku', 'name', 'price'], ...Array.from({ length: 150 }, (_, n) => [`P-${n}`, `Product ${n}`, 5])]
    const { id } = await using().record('products', csvOf([...rows, ['P-1', 'Product 1', 6]]))
    expect((await using().post(id, 'validate')).preview).toMatchObject({ created: 150, updated: 1, conflicts: [] })
    await server.admin.put(`${path}/${id}`, { replace_lists: true })
    expect((await get(`${path}/${id}`)).data.preview).toBeNull()
  })
})

describe('the filter import_id', () => {
  it('finds the records that the import created or changed, also those that its rows created', async () => {
    const make = given(server.admin)
    const ada = await make.person({ name: 'Ada', emails: [{ value: 'ada@example.com' }] })
    await make.person({ name: 'Grace', emails: [{ value: 'grace@example.com' }], job_title: 'Admiral' })
    const rows = [
      ['name', 'emails', 'job_title', 'organization_name'],
      ['Ada', 'ada@example.com', 'Countess', ''],
      ['Grace', 'grace@example.com', 'Admiral', ''],
      ['Mary', 'mary@example.com', '', 'Royal Society'],
    ]
    const { id } = await using().run('persons', csvOf(rows))
    const found = await get(`/contacts/persons?import_id=${id}&sort=id`)
    expect(found.data.map(({ name }: { name: string }) => name)).toEqual(['Ada', 'Mary'])
    expect(found.meta.total).toBe(2)
    expect((await get(`/contacts/organizations?import_id=${id}`)).data).toMatchObject([{ name: 'Royal Society' }])
    expect((await get(`/contacts/persons?import_id[not]=${id}`)).data).toMatchObject([{ name: 'Grace' }])
    expect(await ids(`/leads?import_id=${id}`)).toEqual([])
    expect(await ids(`/products?import_id=${id + 1}`)).toEqual([])
    const { text } = await server.admin.get(`/contacts/persons/export?import_id=${id}`)
    expect([text.includes('mary@example.com'), text.includes('grace@example.com')]).toEqual([true, false])
    expect(await ids(`/contacts/persons?import_id=${id}&name=Ada`)).toEqual([ada.id])
    expect((await server.admin.get('/leads?import_id=x')).status).toBe(422)
  })
})

describe('the filters of the event log', () => {
  it('finds events by origin, changed field and token, in the feed and in a history', async () => {
    const lead = await given(server.admin).lead({ title: 'Engines' })
    const { id } = await using().run(
      'leads',
      csvOf([
        ['id', 'title'],
        [lead.id, 'Looms'],
      ]),
    )
    await server.admin.put(`/leads/${lead.id}`, { lead_value: 900 })
    const names = async (query: string) =>
      (await get(query)).data.map(({ name, entity_id }: { name: string; entity_id: number }) => [name, entity_id])
    expect(await names(`/events?origin=import&entity_type=leads`)).toEqual([['lead.update.after', lead.id]])
    expect(await names(`/events?request_id=import-${id}&entity_type=leads`)).toHaveLength(1)
    expect(await names(`/events?changed=lead_value&name=lead.update.after`)).toEqual([['lead.update.after', lead.id]])
    expect(await names(`/events?changed=lead_value,title&entity_type=leads`)).toHaveLength(3)
    const [{ token_id: token }] = (await get('/events?changed=lead_value&name=lead.update.after')).data
    expect(token).toBeGreaterThan(0)
    expect(await names(`/events?token_id=${token}&name=lead.update.after`)).toHaveLength(1)
    expect(await names(`/events?token_id=${token + 1}`)).toEqual([])
    const past = async (query: string) =>
      (await get(`/leads/${lead.id}/history?${query}`)).data.map(({ name }: { name: string }) => name)
    expect(await past('origin=import')).toEqual(['lead.update.after'])
    expect(await past('changed=title')).toEqual(['lead.update.after', 'lead.create.after'])
    expect(await past(`token_id=${token}&changed=lead_value`)).toEqual(['lead.update.after', 'lead.create.after'])
    expect(await past('origin[not]=import&changed[not]=lead_value')).toEqual([])
    expect(await past(`token_id[not]=${token + 1}&changed[not]=title`)).toEqual(['lead.update.after'])
    expect(await names('/events?origin[not]=api&entity_type=leads')).toEqual([['lead.update.after', lead.id]])
    expect((await server.admin.get('/events?origin=post')).status).toBe(422)
  })

  it('finds the loss of a reference in the history by its field', async () => {
    const make = given(server.admin)
    const organization = await make.organization({ name: 'Royal Society' })
    const person = await make.person({ name: 'Mary', organization_id: organization.id })
    await server.admin.delete(`/contacts/organizations/${organization.id}`)
    const past = async (query: string) => (await get(`/contacts/persons/${person.id}/history?${query}`)).data
    expect(await past('changed=organization')).toMatchObject([{ changes: [{ new: null }] }, {}])
    expect(await past('changed=job_title')).toHaveLength(1)
    expect(await past('changed=organization_id')).toHaveLength(2)
    expect(await past('changed[not]=organization')).toEqual([])
    expect(await past('changed[not]=job_title')).toMatchObject([{ changes: [{ new: null }] }])
  })
})
