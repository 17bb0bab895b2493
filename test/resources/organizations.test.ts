// Rules of organizations that the generated contract tests do not check.
import { describe, expect, it } from 'vitest'
import type { Schema } from '../../src/contract/types.ts'
import type { Caller } from '../support/app.ts'
import { given } from '../support/given.ts'
import { useNewServers } from '../support/using.ts'
import { addUser } from '../support/viewers.ts'

type Organization = Schema<'Organization'>

const server = useNewServers()
const { admin } = server
const make = given(admin)

const names = async (caller: Caller, query: string): Promise<string[]> => {
  const { body, status } = await caller.get(`/contacts/organizations?sort=id&${query}`)
  expect(status).toBe(200)
  return body.data.map(({ name }: Organization) => name)
}
const show = async (id: number, caller = admin): Promise<Organization> =>
  (await caller.get(`/contacts/organizations/${id}`)).body.data

describe('listOrganizations', () => {
  it('finds organizations by name, country and tag, and those outside a country also when they have none', async () => {
    const tag = await make.tag()
    await make.organization({ name: 'Acme', address: { country: 'GB' }, tag_ids: [tag.id] })
    await make.organization({ name: 'Betatech', address: { country: 'KE', city: 'Nairobi' } })
    await make.organization({ name: 'Codehow' })
    expect(await names(admin, 'name=ACME,codehow')).toEqual(['Acme', 'Codehow'])
    expect(await names(admin, 'country=gb,ke')).toEqual(['Acme', 'Betatech'])
    expect(await names(admin, 'country[not]=KE')).toEqual(['Acme', 'Codehow'])
    expect(await names(admin, `tag_id=${tag.id}`)).toEqual(['Acme'])
    expect(await names(admin, `tag_id[not]=${tag.id}`)).toEqual(['Betatech', 'Codehow'])
  })

  it('finds every word of q in the name or a part of the address, and not in the names of those parts', async () => {
    await make.organization({ name: 'Acme', address: { city: 'Paris', address: '1 Rue Foo' } })
    await make.organization({ name: 'Acme South', address: null })
    expect(await names(admin, 'q=acme paris')).toEqual(['Acme'])
    expect(await names(admin, 'q=ACME')).toEqual(['Acme', 'Acme South'])
    expect(await names(admin, 'q=postcode')).toEqual([])
    expect(await names(admin, 'q=%25')).toEqual([])
  })

  it('sorts names without regard to case', async () => {
    for (const name of ['beta', 'Alpha', 'Gamma', 'alpha 2']) await make.organization({ name })
    const { body } = await admin.get('/contacts/organizations?sort=name')
    expect(body.data.map(({ name }: Organization) => name)).toEqual(['Alpha', 'alpha 2', 'beta', 'Gamma'])
  })

  it('shows a user with an individual view only the own organizations, and one with a group view those of the group', async () => {
    const ada = await addUser(server, 'Ada', { view: 'individual', group: 'Central' })
    const bob = await addUser(server, 'Bob', { view: 'group', group: 'Central' })
    await make.organization({ name: 'Of the admin' })
    await make.organization({ name: 'Without owner', user_id: null })
    await make.organization({ name: 'Of Ada', user_id: ada.id })
    await make.organization({ name: 'Of Bob', user_id: bob.id })
    expect(await names(ada, '')).toEqual(['Of Ada'])
    expect(await names(bob, '')).toEqual(['Of Ada', 'Of Bob'])
    expect(await names(admin, 'user_id[null]=true')).toEqual(['Without owner'])
    expect((await ada.get('/contacts/organizations')).body.meta.total).toBe(1)
  })

  it('gives the owner in full when asked to', async () => {
    await make.organization()
    const { body } = await admin.get('/contacts/organizations?include=user')
    expect(body.data[0].user).toMatchObject({ id: 1, email: 'admin@example.com', view_permission: 'global' })
  })
})

describe('getOrganization', () => {
  it('counts the persons and the leads of its persons, and of these only what the caller may see', async () => {
    const ada = await addUser(server, 'Ada', { view: 'individual' })
    const { id } = await make.organization({ user_id: ada.id })
    const person = await make.person({ organization_id: id, user_id: ada.id })
    await make.person({ organization_id: id })
    await make.lead({ person_id: person.id })
    await make.lead({ person_id: person.id, user_id: ada.id })
    expect(await show(id)).toMatchObject({ persons_count: 2, leads_count: 2 })
    expect(await show(id, ada)).toMatchObject({ persons_count: 1, leads_count: 1 })
  })

  it('answers 404 for an organization the caller may not see, as if it did not exist', async () => {
    const { id } = await make.organization()
    const ada = await addUser(server, 'Ada', { view: 'individual' })
    const hidden = await ada.get(`/contacts/organizations/${id}`)
    const missing = await ada.get('/contacts/organizations/999')
    expect([hidden.status, missing.status]).toEqual([404, 404])
    expect(hidden.body.detail).toBe(`No organization has id ${id}.`)
  })
})

describe('createOrganization', () => {
  it('creates an organization that belongs to the caller, with its pair of events', async () => {
    const { status, body, headers } = await admin.post('/contacts/organizations', {
      name: ' Analytical Ltd ',
      address: { city: 'London', country: 'gb' },
    })
    expect(status).toBe(201)
    expect(body).toMatchObject({
      data: { name: 'Analytical Ltd', user_id: 1, user: { name: 'Example Admin' }, tags: [], version: 1 },
      message: 'Organization created.',
    })
    expect(body.data.address).toEqual({ address: null, country: 'GB', state: null, city: 'London', postcode: null })
    expect(headers.location).toBe(`http://localhost:80/api/admin/contacts/organizations/${body.data.id}`)
    expect(server.events()).toEqual(['contacts.organization.create.before', 'contacts.organization.create.after'])
  })

  it('refuses a name that differs only in case with 409 and names the other organization', async () => {
    const { id } = await make.organization({ name: 'Acme' })
    server.events()
    const { status, body } = await admin.post('/contacts/organizations', { name: 'aCME' })
    expect(status).toBe(409)
    expect(body).toMatchObject({
      code: 'unique_violation',
      conflicts: [{ entity_type: 'organizations', id, field: 'name' }],
    })
    expect(server.events()).toEqual([])
    expect((await admin.get('/contacts/organizations')).body.meta.total).toBe(1)
  })

  it('does not give away the id of an organization the caller may not see', async () => {
    await make.organization({ name: 'Acme' })
    const ada = await addUser(server, 'Ada', { view: 'individual' })
    const { status, body } = await ada.post('/contacts/organizations', { name: 'ACME' })
    expect(status).toBe(409)
    expect(body.conflicts).toEqual([{ entity_type: 'organizations', id: null, field: 'name' }])
  })

  it('refuses an owner who is inactive or unknown, and no owner at all from someone with a narrow view', async () => {
    const ada = await addUser(server, 'Ada', { view: 'individual' })
    const gone = await addUser(server, 'Gone', { isActive: false })
    for (const [caller, user_id] of [
      [admin, gone.id],
      [admin, 999],
      [ada, null],
    ] as const) {
      const { status, body } = await caller.post('/contacts/organizations', { name: 'Acme', user_id })
      expect([status, Object.keys(body.errors)]).toEqual([422, ['user_id']])
    }
    expect((await admin.get('/contacts/organizations')).body.meta.total).toBe(0)
    expect(server.events()).toEqual([])
  })

  it('tags it with tag_ids after its own pair of events, and refuses tags that do not exist', async () => {
    const tag = await make.tag({ name: 'Key account' })
    server.events()
    const { body } = await admin.post('/contacts/organizations', { name: 'Acme', tag_ids: [tag.id] })
    expect(body.data.tags).toEqual([{ id: tag.id, name: 'Key account', color: tag.color }])
    expect(server.events()).toEqual([
      'contacts.organization.create.before',
      'organizations.tag.create.before',
      'contacts.organization.create.after',
      'organizations.tag.create.after',
    ])
    const refused = await admin.post('/contacts/organizations', { name: 'Beta', tag_ids: [tag.id, 999] })
    expect([refused.status, refused.body.errors]).toEqual([422, { 'tag_ids.1': ['No tag has id 999.'] }])
  })

  it('refuses a country that is none and a field it does not know, both at once', async () => {
    const { status, body } = await admin.post('/contacts/organizations', {
      name: 'Acme',
      adress: {},
      address: { country: 'XX' },
    })
    expect(status).toBe(422)
    expect(Object.keys(body.errors).sort()).toEqual(['address.country', 'adress'])
    expect(body.errors.adress[0]).toContain('Did you mean `address`?')
  })
})

describe('updateOrganization', () => {
  it('merges the parts of an address and clears the whole with null', async () => {
    const { id } = await make.organization({ name: 'Acme', address: { city: 'London', country: 'GB' } })
    const merged = await admin.put(`/contacts/organizations/${id}`, { address: { postcode: 'W1', city: null } })
    expect(merged.body.data.address).toEqual({ address: null, country: 'GB', state: null, city: null, postcode: 'W1' })
    const cleared = await admin.put(`/contacts/organizations/${id}`, { address: null })
    expect(cleared.body.data).toMatchObject({ address: null, name: 'Acme', version: 3 })
  })

  it('changes nothing, not even the version, when everything sent is as it was', async () => {
    const tag = await make.tag()
    const { id } = await make.organization({ tag_ids: [tag.id], address: { city: 'London' } })
    server.events()
    server.clock.advanceMs(60_000)
    const before = await show(id)
    const { status, body } = await admin.put(`/contacts/organizations/${id}`, { ...before, tag_ids: [tag.id] })
    expect(status).toBe(200)
    expect(body.data).toEqual(before)
    expect(server.seen.map(({ name, changed }) => [name, changed])).toEqual([
      ['contacts.organization.update.before', undefined],
      ['contacts.organization.update.after', []],
    ])
  })

  it('counts a change of name and tags as one version', async () => {
    const tag = await make.tag()
    const { id } = await make.organization()
    const { body } = await admin.put(`/contacts/organizations/${id}`, { name: 'Renamed', tag_ids: [tag.id] })
    expect(body.data).toMatchObject({ name: 'Renamed', version: 2, tags: [{ id: tag.id }] })
    const untagged = await admin.put(`/contacts/organizations/${id}`, { tag_ids: [] })
    expect(untagged.body.data).toMatchObject({ version: 3, tags: [] })
  })

  it('lets an organization change the case of its own name, and refuses to empty it', async () => {
    const { id } = await make.organization({ name: 'acme' })
    expect((await admin.put(`/contacts/organizations/${id}`, { name: 'ACME' })).body.data.name).toBe('ACME')
    const refused = await admin.put(`/contacts/organizations/${id}`, { name: null })
    expect([refused.status, Object.keys(refused.body.errors)]).toEqual([422, ['name']])
  })

  it('answers 412 and changes nothing after a concurrent change', async () => {
    const { id } = await make.organization({ name: 'Acme' })
    await admin.put(`/contacts/organizations/${id}`, { name: 'Acme 2' })
    server.events()
    const { status } = await admin.put(
      `/contacts/organizations/${id}`,
      { name: 'Acme 3' },
      { headers: { 'if-match': '"1"' } },
    )
    expect(status).toBe(412)
    expect((await show(id)).name).toBe('Acme 2')
    expect(server.events()).toEqual([])
  })

  it('accepts an owner who has become inactive when the owner is sent back unchanged', async () => {
    const ada = await addUser(server, 'Ada')
    const { id } = await make.organization({ user_id: ada.id })
    await server.store.db.updateTable('users').set({ is_active: 0 }).where('id', '=', ada.id).execute()
    const { status, body } = await admin.put(`/contacts/organizations/${id}`, { user_id: ada.id, name: 'Still hers' })
    expect([status, body.data.name, body.data.user_id]).toEqual([200, 'Still hers', ada.id])
  })
})

describe('deleteOrganization', () => {
  it('keeps its persons, and deletes the activities that are about nothing else with an event each', async () => {
    const { id } = await make.organization({ name: 'Acme' })
    const person = await make.person({ organization_id: id })
    const alone = await make.activity({ type: 'note', comment: 'About Acme', lead_ids: [], organization_ids: [id] })
    const shared = await make.activity({
      type: 'note',
      comment: 'About both',
      lead_ids: [],
      organization_ids: [id],
      person_ids: [person.id],
    })
    server.events()
    const { status, body } = await admin.delete(`/contacts/organizations/${id}`)
    expect([status, body]).toEqual([200, { message: 'Organization deleted.' }])
    expect(server.events()).toEqual([
      'contacts.organization.delete.before',
      'activity.delete.before',
      'activity.delete.after',
      'contacts.organization.delete.after',
    ])
    expect((await admin.get(`/contacts/persons/${person.id}`)).body.data).toMatchObject({
      organization_id: null,
      organization: null,
    })
    expect((await admin.get(`/activities/${alone.id}`)).status).toBe(404)
    expect((await admin.get(`/activities/${shared.id}`)).body.data).toMatchObject({
      organization_ids: [],
      person_ids: [person.id],
    })
  })

  it('takes an If-Match as being about the organization, not about its activities', async () => {
    const { id } = await make.organization()
    await make.activity({ type: 'note', comment: 'x', organization_ids: [id] })
    await admin.put(`/contacts/organizations/${id}`, { name: 'Renamed' })
    expect((await admin.delete(`/contacts/organizations/${id}`, { headers: { 'if-match': '"2"' } })).status).toBe(200)
  })

  it('keeps everything on a dry run', async () => {
    const { id } = await make.organization()
    const note = await make.activity({ type: 'note', comment: 'x', organization_ids: [id] })
    server.events()
    expect(
      (await admin.delete(`/contacts/organizations/${id}`, { headers: { 'accord-dry-run': 'true' } })).status,
    ).toBe(200)
    expect([(await show(id)).id, (await admin.get(`/activities/${note.id}`)).status]).toEqual([id, 200])
    expect(server.events()).toEqual([])
  })
})

describe('massDeleteOrganizations', () => {
  it('deletes what the caller may see, and reports the rest as not found', async () => {
    const ada = await addUser(server, 'Ada', { view: 'individual' })
    const hers = await make.organization({ user_id: ada.id })
    const other = await make.organization()
    server.events()
    const { status, body } = await ada.post('/contacts/organizations/mass-delete', {
      ids: [hers.id, other.id, hers.id],
    })
    expect(status).toBe(200)
    expect(body).toMatchObject({
      data: { processed: [hers.id], failed: [{ id: other.id, status: 404, code: 'not_found' }] },
      message: '1 organization deleted.',
    })
    expect(server.events()).toEqual(['contacts.organization.delete.before', 'contacts.organization.delete.after'])
    expect((await show(other.id)).id).toBe(other.id)
  })

  it('answers 422 mass_failed when none could be deleted', async () => {
    const { status, body } = await admin.post('/contacts/organizations/mass-delete', { ids: [5] })
    expect([status, body.code, body.failed]).toEqual([
      422,
      'mass_failed',
      [{ id: 5, status: 404, code: 'not_found', detail: 'No organization has id 5.' }],
    ])
  })
})
