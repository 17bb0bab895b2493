// Names and phone numbers in the forms that users type, in lists, searches, filters and imports.
import { describe, expect, it } from 'vitest'
import { useNewServers } from '../support/using.ts'

const server = useNewServers({ config: { country: 'DE' } })

const persons = '/contacts/persons'
const add = async (body: object): Promise<any> => (await server.admin.post(persons, body)).body.data
const names = async (query: string): Promise<string[]> =>
  (await server.admin.get(`${persons}?${query}`)).body.data.map(({ name }: { name: string }) => name)

describe('a phone number', () => {
  it('is found by each of its usual forms', async () => {
    await add({ name: 'Abroad', contact_numbers: [{ value: '+49 (0)151 / 234-5678' }] })
    await add({ name: 'Home', contact_numbers: [{ value: '0151 2345678' }] })
    for (const form of ['0151 2345678', '+491512345678', '01512345678', '151/234', '0049 151 2345678']) {
      const q = encodeURIComponent(form)
      expect.soft([form, await names(`sort=name&q=${q}`)]).toEqual([form, ['Abroad', 'Home']])
      const { data } = (await server.admin.get(`/search?types=persons&q=${q}`)).body
      expect.soft([form, data.length]).toEqual([form, 2])
      if (form !== '151/234')
        expect.soft([form, await names(`sort=name&phone=${q}`)]).toEqual([form, ['Abroad', 'Home']])
    }
  })

  it('is not meant by a search for something else', async () => {
    await add({ name: 'Home', contact_numbers: [{ value: '0151 2345678' }] })
    for (const q of ['#9876', '(000)', 'x987', 'ext 9876', '001', '007', "'", '#999'])
      for (const path of [`${persons}?q=${encodeURIComponent(q)}`, `/search?q=${encodeURIComponent(`${q} `)}`]) {
        const { status, body } = await server.admin.get(path)
        expect.soft([path, status === 422 ? [] : body.data]).toEqual([path, []])
      }
  })

  it('must be an entry of its own', async () => {
    const { status, body } = await server.admin.post(persons, {
      name: 'Two',
      contact_numbers: [{ value: '030 123456 / 0171 654321' }],
    })
    expect([status, body.errors]).toEqual([
      422,
      { 'contact_numbers.0.value': ['These are 2 numbers. Send each as an entry of its own.'] },
    ])
  })
})

describe('a name', () => {
  it('is one line without controls of the writing direction', async () => {
    const { name, job_title } = await add({ name: 'Anna\tMaier\n', job_title: 'Head\u202e of\nSales' })
    expect([name, job_title]).toEqual(['Anna Maier', 'Head of Sales'])
  })

  it('sorts beside the plain letter, page by page', async () => {
    for (const name of ['Zora', 'Äpfel', 'Apfel', 'apfelmus', 'Ärger', 'Ørsted', 'Otto', 'B']) await add({ name })
    const sorted = ['Apfel', 'Äpfel', 'apfelmus', 'Ärger', 'B', 'Ørsted', 'Otto', 'Zora']
    expect(await names('sort=name')).toEqual(sorted)
    const paged: string[] = []
    for (let cursor = ''; ; ) {
      const { body } = await server.admin.get(`${persons}?sort=name&per_page=3&cursor=${cursor}`)
      paged.push(...body.data.map(({ name }: { name: string }) => name))
      if (!body.meta.next_cursor) break
      cursor = encodeURIComponent(body.meta.next_cursor)
    }
    expect(paged).toEqual(sorted)
  })

  it('is exact in filters but for case, and unique by the same rule', async () => {
    for (const name of ['Müller GmbH', 'Muller GmbH'])
      expect((await server.admin.post('/contacts/organizations', { name })).status).toBe(201)
    expect((await server.admin.post('/contacts/organizations', { name: 'MÜLLER gmbh' })).status).toBe(409)
    const { body } = await server.admin.get('/contacts/organizations', { query: { name: 'müller gmbh' } })
    expect(body.data.map(({ name }: { name: string }) => name)).toEqual(['Müller GmbH'])
  })

  it('of an organization is known by a person without its accents', async () => {
    await server.admin.post('/contacts/organizations', { name: 'Société Générale' })
    const person = await add({ name: 'Ada', organization_name: 'societe  generale' })
    expect(person.organization.name).toBe('Société Générale')
    for (const name of ['Müller', 'Muller']) await server.admin.post('/contacts/organizations', { name })
    expect((await add({ name: 'Bob', organization_name: 'muller' })).organization.name).toBe('Muller')
    const { body } = await server.admin.post(persons, { name: 'Eve', organization_name: 'M\u00fcller\u200b' })
    expect(body.errors).toEqual({
      organization_name: ['Several organizations have such a name. Send organization_id.'],
    })
  })

  it('is found after a restore, whatever version archived the record', async () => {
    const { id } = await add({ name: 'Álvaro' })
    await server.admin.delete(`${persons}/${id}`)
    const { rows } = await server.store.db.selectFrom('archives').select('rows').executeTakeFirstOrThrow()
    const before = JSON.parse(rows)
    for (const { table, row } of before) if (table === 'persons') row.name_key = 'álvaro'
    await server.store.db
      .updateTable('archives')
      .set({ rows: JSON.stringify(before) })
      .execute()
    expect((await server.admin.post(`${persons}/${id}/restore`)).status).toBe(200)
    expect(await names('q=alvaro')).toEqual(['Álvaro'])
    expect(await names(`name=${encodeURIComponent('álvaro')}`)).toEqual(['Álvaro'])
  })
})
