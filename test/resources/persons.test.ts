// Rules of persons that the generated contract tests do not check.
import { describe, expect, it } from 'vitest'
import { useNewServers } from '../support/using.ts'
import { addUser } from '../support/viewers.ts'

const server = useNewServers()

const ada = {
  name: 'Ada Lovelace',
  emails: [{ value: 'Ada@Example.com' }],
  contact_numbers: [{ value: '+44 20 7946-0958', label: 'mobile' }],
}
const path = '/contacts/persons'

async function created(body: object = ada) {
  const reply = await server.admin.post(path, body)
  expect(reply.status, reply.text).toBe(201)
  server.events()
  return reply.body.data
}

const total = async (): Promise<number> => (await server.admin.get(path)).body.meta.total

describe('createPerson', () => {
  it('keeps addresses and numbers as they were entered, with a label', async () => {
    const { body } = await server.admin.post(path, ada)
    expect(body.data).toMatchObject({
      emails: [{ value: 'Ada@Example.com', label: 'work' }],
      contact_numbers: [{ value: '+44 20 7946-0958', label: 'mobile' }],
      user: { id: 1 },
      leads_count: 0,
    })
    expect(server.events()).toEqual(['contacts.person.create.before', 'contacts.person.create.after'])
  })

  it('drops entries without a value, and needs no address', async () => {
    const person = await created({
      name: 'Bob',
      emails: [{ value: '' }, { value: 'bob@example.com' }, { value: null }],
    })
    expect(person.emails).toEqual([{ value: 'bob@example.com', label: 'work' }])
    expect((await created({ name: 'Eve', emails: [{ value: '' }] })).emails).toEqual([])
    expect(await created({ name: 'Ida' })).toMatchObject({ name: 'Ida', emails: [], contact_numbers: [] })
    const lead = await server.admin.post('/leads', { title: 'Deal', lead_value: 1, person: { name: 'Una' } })
    expect([lead.status, lead.body.data.person]).toEqual([201, { id: expect.any(Number), name: 'Una', email: null }])
  })

  it('refuses an address that another person has, however it is written, and names that person', async () => {
    const person = await created()
    const { status, body } = await server.admin.post(path, {
      name: 'Other',
      emails: [{ value: 'new@example.com' }, { value: 'ADA@example.COM' }],
      contact_numbers: [{ value: '+442079460958' }],
    })
    expect(status).toBe(409)
    expect(body.conflicts).toEqual([{ entity_type: 'persons', id: person.id, field: 'emails.1.value' }])
    expect(await total()).toBe(1)
    expect(server.events()).toEqual([])
  })

  it('keeps a number as it was typed, which another person may have', async () => {
    for (const value of ['(212) 555-0143 x12', '212.555.0143 ext. 12'])
      expect((await created({ name: 'Reception', contact_numbers: [{ value }] })).contact_numbers).toEqual([
        { value, label: 'work' },
      ])
    const twice = ['212 555', '(212) 555'].map((value) => ({ value }))
    const { body } = await server.admin.post(path, { name: 'Eve', contact_numbers: twice })
    expect(body.errors).toEqual({ 'contact_numbers.1.value': ['This value occurs twice.'] })
    const ids = async (query: string) => (await server.admin.get(`${path}?${query}`)).body.data.length
    for (const [query, found] of [
      ['phone=2125550143%20x12', 2],
      ['phone[not]=2125550143', 0],
      ['phone=2125550143', 2],
      ['q=%2B(212)%20555-0143', 2],
      ['q=5550143', 2],
      ['q=x12', 1],
      ['q=99', 0],
    ] as const)
      expect.soft([query, await ids(query)]).toEqual([query, found])
  })

  it('refuses the same address twice in one body', async () => {
    const { status, body } = await server.admin.post(path, {
      name: 'Eve',
      emails: [{ value: 'eve@example.com' }, { value: 'EVE@example.com' }],
    })
    expect([status, Object.keys(body.errors)]).toEqual([422, ['emails.1.value']])
  })

  it('finds the organization by name in either case, and creates it when there is none', async () => {
    const first = await server.admin.post(path, { ...ada, organization_name: 'Analytical Ltd' })
    expect(server.events()).toEqual([
      'contacts.organization.create.before',
      'contacts.person.create.before',
      'contacts.organization.create.after',
      'contacts.person.create.after',
    ])
    const second = await created({
      name: 'Bob',
      emails: [{ value: 'bob@example.com' }],
      organization_name: 'ANALYTICAL ltd',
    })
    expect(second.organization).toEqual({ id: first.body.data.organization_id, name: 'Analytical Ltd', address: null })
    expect((await server.admin.get('/contacts/organizations')).body.meta.total).toBe(1)
  })

  it('refuses an organization id and the name of another one together', async () => {
    const person = await created({ ...ada, organization_name: 'Analytical Ltd' })
    const { body } = await server.admin.post(path, {
      name: 'Bob',
      emails: [{ value: 'bob@example.com' }],
      organization_id: person.organization_id,
      organization_name: 'Other',
    })
    expect(Object.keys(body.errors)).toEqual(['organization_name'])
    expect((await server.admin.get('/contacts/organizations')).body.meta.total).toBe(1)
  })
})

describe('createPerson with the name of an organization', () => {
  const body = { ...ada, organization_name: 'Fresh' }

  it('needs the permission and the token ability to create one', async () => {
    const bob = await addUser(server, 'Bob', { permissions: ['contacts.persons.create'] })
    const narrow = await server.as(1, ['persons:*'])
    for (const [caller, required] of [
      [bob, 'contacts.organizations.create'],
      [narrow, 'organizations:write'],
    ] as const) {
      const refused = await caller.post(path, body)
      expect([refused.status, refused.body.required]).toEqual([403, required])
    }
    expect(server.events()).toEqual([])
    expect([await total(), (await server.admin.get('/contacts/organizations')).body.meta.total]).toEqual([0, 0])
    await server.admin.post('/contacts/organizations', { name: 'Fresh' })
    expect((await narrow.post(path, body)).status).toBe(201)
  })
})

describe('createPerson with an organization that needs more than a name', () => {
  it('is refused on the name of the organization for every caller who creates the person', async () => {
    const vat = { code: 'vat', name: 'VAT', type: 'text', entity_type: 'organizations', is_required: true }
    await server.admin.post('/settings/attributes', vat)
    const sentence = 'There is no such organization, and a new one needs custom_attributes.vat: The field is required.'
    const body = { ...ada, organization_name: 'Fresh', user_id: 999 }
    const refused = await server.admin.post(path, body)
    expect([refused.status, refused.body.errors]).toEqual([
      422,
      { organization_name: [sentence], user_id: ['No user has id 999.'] },
    ])
    const lead = await server.admin.post('/leads', {
      title: 'Deal',
      lead_value: 1,
      person: { ...ada, organization_name: 'Fresh' },
    })
    expect([lead.status, lead.body.errors]).toEqual([422, { 'person.organization_name': [sentence] }])
    expect([await total(), (await server.admin.get('/contacts/organizations')).body.meta.total]).toEqual([0, 0])
  })
})

describe('getPerson', () => {
  const address = { address: 'Main Street 1', country: 'GB', state: null, city: 'London', postcode: 'N1' }

  it('shows the address of the organization only to callers who may see the organization', async () => {
    const bob = await addUser(server, 'Bob', { view: 'individual' })
    const { body } = await server.admin.post('/contacts/organizations', { name: 'Analytical', address })
    const own = await created({ ...ada, organization_id: body.data.id, user_id: bob.id })
    expect((await bob.get(`${path}/${own.id}`)).body.data.organization).toEqual({
      id: body.data.id,
      name: 'Analytical',
      address: null,
    })
    expect((await server.admin.get(`${path}/${own.id}`)).body.data.organization.address).toEqual(address)
  })

  it('puts the organization in full only for a role and a token that may show it', async () => {
    const bob = await addUser(server, 'Bob', { permissions: ['contacts.persons.view'] })
    const narrow = await server.as(1, ['persons:read'])
    const { id } = await created({ ...ada, organization_name: 'Fresh' })
    const organization = async ({ get }: Pick<typeof server.admin, 'get'>) =>
      (await get(`${path}/${id}?include=organization,user`)).body.data
    expect((await organization(server.admin)).organization).toHaveProperty('persons_count')
    for (const caller of [bob, narrow]) {
      const { organization: shown, user } = await organization(caller)
      expect(shown).not.toHaveProperty('persons_count')
      expect(user).not.toHaveProperty('role_id')
    }
  })
})

describe('updatePerson', () => {
  it('takes the name of another organization beside the id that was read', async () => {
    const person = await created({ ...ada, organization_name: 'First' })
    const { status, body } = await server.admin.put(`${path}/${person.id}`, { ...person, organization_name: 'Second' })
    expect([status, body.data.organization.name]).toEqual([200, 'Second'])
    const back = await server.admin.put(`${path}/${person.id}`, { ...body.data, organization_name: 'first' })
    expect(back.body.data.organization_id).toBe(person.organization_id)
  })

  it('frees the address that is taken away for another person', async () => {
    const person = await created()
    await server.admin.put(`${path}/${person.id}`, { emails: [{ value: 'lovelace@example.com' }] })
    const other = await created({ name: 'Other', emails: [{ value: 'ada@example.com' }] })
    expect(other.id).not.toBe(person.id)
  })

  it('changes nothing when what was read is written back', async () => {
    const person = await created({ ...ada, organization_name: 'Analytical Ltd', job_title: 'Analyst' })
    const { status, body } = await server.admin.put(`${path}/${person.id}`, person)
    expect([status, body.data]).toEqual([200, person])
  })

  it('clears with null and empties with an empty list', async () => {
    const person = await created({ ...ada, job_title: 'Analyst' })
    const { body } = await server.admin.put(`${path}/${person.id}`, { job_title: '', contact_numbers: [] })
    expect(body.data).toMatchObject({ job_title: null, contact_numbers: [], version: 2 })
    expect((await server.admin.get(`${path}?phone=442079460958`)).body.meta.total).toBe(0)
    const emptied = await server.admin.put(`${path}/${person.id}`, { emails: [] })
    expect([emptied.status, emptied.body.data.emails]).toEqual([200, []])
    await created({ name: 'Other', emails: ada.emails })
    expect((await server.admin.put(`${path}/${person.id}`, { emails: null })).status).toBe(422)
  })
})

describe('deletePerson', () => {
  it('is refused while a lead refers to the person, and names the lead', async () => {
    const person = await created()
    const lead = (await server.admin.post('/leads', { title: 'Deal', lead_value: 1, person_id: person.id })).body.data
    server.events()
    const { status, body } = await server.admin.delete(`${path}/${person.id}`)
    expect([status, body.code, body.conflicts]).toEqual([
      409,
      'in_use',
      [{ entity_type: 'leads', id: lead.id, field: 'person_id' }],
    ])
    expect(server.events().filter((name) => name.endsWith('.after'))).toEqual([])
  })

  it('frees the addresses of the person', async () => {
    const person = await created()
    expect((await server.admin.delete(`${path}/${person.id}`)).status).toBe(200)
    await created()
  })
})

describe('listPersons', () => {
  it('filters by address, number, organization and words', async () => {
    const person = await created({ ...ada, organization_name: 'Analytical Ltd', job_title: 'Countess' })
    const bob = await created({ name: 'Bob', emails: [{ value: 'bob@work.example' }] })
    const ids = async (query: string) =>
      (await server.admin.get(`${path}?${query}`)).body.data.map(({ id }: { id: number }) => id)
    expect(await ids('email=ada@example.com')).toEqual([person.id])
    expect(await ids('email[not]=bob@work.example')).toEqual([person.id])
    expect(await ids('phone=%2B442079460958')).toEqual([person.id])
    expect(await ids(`organization_id=${person.organization_id}`)).toEqual([person.id])
    expect(await ids('q=analytical%20ada')).toEqual([person.id])
    expect(await ids('job_title=countess')).toEqual([person.id])
    // "work" is the label of every address, but only Bob's address contains it.
    expect(await ids('q=work')).toHaveLength(1)
    expect(await ids('organization_id[null]=true')).toHaveLength(1)
    expect(await ids('sort=organization_name')).toEqual([person.id, bob.id])
  })
})

describe('massUpdatePersons', () => {
  it('applies the changes to each and reports the ones that fail', async () => {
    const person = await created()
    const { body } = await server.admin.post(`${path}/mass-update`, {
      ids: [person.id, 99],
      changes: { job_title: 'Analyst' },
    })
    expect(body.data).toMatchObject({ processed: [person.id], failed: [{ id: 99, code: 'not_found' }] })
  })
})

describe('listPersonLeads and listOrganizationPersons', () => {
  it('take the filters of their target, and answer 404 for a parent that is not there', async () => {
    const person = await created({ ...ada, organization_name: 'Analytical Ltd' })
    for (const title of ['One', 'Two'])
      await server.admin.post('/leads', { title, lead_value: 1, person_id: person.id })
    await server.admin.post('/leads', { title: 'One', lead_value: 1 })
    expect((await server.admin.get(`${path}/${person.id}/leads?title=one`)).body.meta.total).toBe(1)
    expect((await server.admin.get(`/contacts/organizations/${person.organization_id}/leads`)).body.meta.total).toBe(2)
    expect(
      (await server.admin.get(`/contacts/organizations/${person.organization_id}/persons?q=ada`)).body.meta.total,
    ).toBe(1)
    expect((await server.admin.get(`${path}/99/leads`)).status).toBe(404)
    expect((await server.admin.get('/contacts/organizations/99/persons')).status).toBe(404)
  })
})
