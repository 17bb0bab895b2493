// Rules of tags, and of records with tags, that the generated contract tests do not check.
import { describe, expect, it } from 'vitest'
import { given } from '../support/given.ts'
import { useNewServers } from '../support/using.ts'
import { addUser } from '../support/viewers.ts'

const server = useNewServers()
const { admin } = server
const make = given(admin)

const organizationKeys = [
  'contacts',
  'contacts.organizations',
  'contacts.organizations.create',
  'contacts.organizations.edit',
]

describe('listTags', () => {
  it('shows all tags to everyone, and finds those of one creator', async () => {
    const ada = await addUser(server, 'Ada', { view: 'individual' })
    await make.tag({ name: 'From the admin' })
    await ada.post('/tags', { name: 'From Ada' })
    expect((await ada.get('/tags')).body.meta.total).toBe(2)
    expect((await ada.get(`/tags?user_id=${ada.id}`)).body.data).toMatchObject([
      { name: 'From Ada', user: { name: 'Ada' } },
    ])
  })

  it('finds a color in either case', async () => {
    await make.tag({ name: 'Red', color: '#ff0000' })
    await make.tag({ name: 'Blue', color: '#0000FF' })
    expect((await admin.get('/tags', { query: { color: '#fF0000' } })).body.data).toMatchObject([{ name: 'Red' }])
    expect((await admin.get('/tags', { query: { 'color[not]': '#ff0000' } })).body.data).toMatchObject([
      { name: 'Blue' },
    ])
  })

  it('shows its creator in full only to callers who may show users', async () => {
    const ada = await addUser(server, 'Ada', { permissions: ['settings.other_settings.tags'] })
    await make.tag()
    expect((await admin.get('/tags?include=user')).body.data[0].user).toHaveProperty('role_id')
    const { body } = await ada.get('/tags?include=user')
    expect(body.data[0].user).toEqual({ id: 1, name: 'Example Admin', email: 'admin@example.com', image_url: null })
  })
})

describe('createTag', () => {
  it('picks a color that depends only on the name when none is given', async () => {
    const first = await admin.post('/tags', { name: 'Key account' })
    expect(first.status).toBe(201)
    expect(first.body.data).toMatchObject({
      name: 'Key account',
      user_id: 1,
      color: expect.stringMatching(/^#[0-9A-F]{6}$/),
    })
    await admin.delete(`/tags/${first.body.data.id}`)
    expect((await admin.post('/tags', { name: 'key ACCOUNT' })).body.data.color).toBe(first.body.data.color)
    expect((await admin.post('/tags', { name: 'Red', color: '#ff0000' })).body.data.color).toBe('#FF0000')
  })

  it('refuses a name that differs only in case with 409 and fires nothing', async () => {
    const { id } = await make.tag({ name: 'VIP' })
    server.events()
    const { status, body } = await admin.post('/tags', { name: 'vip' })
    expect([status, body.conflicts]).toEqual([409, [{ entity_type: 'tags', id, field: 'name' }]])
    expect(server.events()).toEqual([])
  })
})

describe('updateTag', () => {
  it('lets a user with a narrow view change only the own tags; others are as if they did not exist', async () => {
    const ada = await addUser(server, 'Ada', { view: 'group', group: 'Central' })
    const other = await make.tag()
    const own = (await ada.post('/tags', { name: 'Mine' })).body.data
    server.events()
    expect((await ada.put(`/tags/${own.id}`, { name: 'Still mine' })).body.data).toMatchObject({
      name: 'Still mine',
      version: 2,
    })
    expect(server.events()).toEqual(['settings.tag.update.before', 'settings.tag.update.after'])
    expect((await ada.put(`/tags/${other.id}`, { name: 'Taken over' })).status).toBe(404)
    expect((await ada.delete(`/tags/${other.id}`)).status).toBe(404)
    // The reply is 404 before the version and the body are checked, because the tag does not exist
    // for this caller.
    const stale = { headers: { 'if-match': '"9"' } }
    expect((await ada.put(`/tags/${other.id}`, { name: 'Taken over' }, stale)).status).toBe(404)
    expect((await ada.put(`/tags/${other.id}`, { hue: 'red' })).status).toBe(404)
    expect((await ada.delete(`/tags/${other.id}`, stale)).status).toBe(404)
    expect((await ada.get(`/tags/${other.id}`)).status).toBe(200)
    expect(server.events()).toEqual([])
    expect((await admin.get(`/tags/${other.id}`)).body.data.name).toBe(other.name)
  })
})

describe('deleteTag', () => {
  it('takes the tag off every record, with one event each, and keeps the records', async () => {
    const tag = await make.tag()
    const product = await make.product({ tag_ids: [tag.id] })
    const untagged = await make.product()
    const organization = await make.organization({ tag_ids: [tag.id] })
    server.events()
    expect((await admin.delete(`/tags/${tag.id}`)).status).toBe(200)
    expect(server.events()).toEqual([
      'settings.tag.delete.before',
      'organizations.tag.delete.before',
      'products.tag.delete.before',
      'organizations.tag.delete.after',
      'products.tag.delete.after',
      'settings.tag.delete.after',
    ])
    for (const [where, before] of [
      [`/products/${product.id}`, product],
      [`/contacts/organizations/${organization.id}`, organization],
    ] as const)
      expect((await admin.get(where)).body.data).toMatchObject({ tags: [], version: before.version + 1 })
    expect((await admin.get(`/products/${untagged.id}`)).body.data.version).toBe(1)
  })
})

describe('tags of a record', () => {
  it('are told by name, and product lines in the order they came, wherever the record is shown', async () => {
    const tag_ids: number[] = []
    for (const name of ['plum', 'Apple', 'zinnia', 'banana']) tag_ids.push((await make.tag({ name })).id)
    const [first, second] = [await make.product({ sku: 'Z-1' }), await make.product({ sku: 'A-1' })]
    const products = [first, second].map(({ id }) => ({ product_id: id, quantity: 2, price: 0.1 }))
    const { id, ...made } = await make.lead({ tag_ids, products })
    const listed = (await admin.get('/leads?per_page=1')).body.data[0]
    const shown = (await admin.get(`/leads/${id}`)).body.data
    const changed = (await admin.put(`/leads/${id}`, { title: 'Another' })).body.data
    for (const each of [made, listed, shown, changed]) {
      expect(each.tags.map(({ name }: { name: string }) => name)).toEqual(['Apple', 'banana', 'plum', 'zinnia'])
      expect(each.products.map(({ sku }: { sku: string }) => sku)).toEqual(['Z-1', 'A-1'])
      expect(each.products_amount).toBe(0.4)
    }
    const lines = (await admin.get(`/leads/${id}/products`)).body.data
    expect(lines).toEqual(shown.products)
  })
})

describe('massDeleteTags', () => {
  it('deletes the own tags of a user with a narrow view and reports the others as not found', async () => {
    const ada = await addUser(server, 'Ada', { view: 'individual' })
    const other = await make.tag()
    const own = (await ada.post('/tags', { name: 'Mine' })).body.data
    const { body } = await ada.post('/tags/mass-delete', { ids: [other.id, own.id] })
    expect(body.data).toMatchObject({ processed: [own.id], failed: [{ id: other.id, status: 404 }] })
    expect((await admin.get(`/tags/${other.id}`)).status).toBe(200)
  })
})

describe('attachOrganizationTag', () => {
  it('creates the tag of an unknown name first, with its own pair of events', async () => {
    const { id } = await make.organization()
    server.events()
    const { status, body } = await admin.post(`/contacts/organizations/${id}/tags`, { name: 'Fresh' })
    expect([status, body.data]).toMatchObject([200, [{ name: 'Fresh' }]])
    expect(server.events()).toEqual([
      'settings.tag.create.before',
      'organizations.tag.create.before',
      'settings.tag.create.after',
      'organizations.tag.create.after',
    ])
  })

  it('refuses an unknown name to someone who may not create tags, and attaches a known one', async () => {
    const ada = await addUser(server, 'Ada', { permissions: organizationKeys })
    const { id } = await make.organization()
    await make.tag({ name: 'Known' })
    server.events()
    const refused = await ada.post(`/contacts/organizations/${id}/tags`, { name: 'Fresh' })
    expect([refused.status, refused.body.required]).toEqual([403, 'settings.other_settings.tags.create'])
    expect(server.events()).toEqual([])
    expect((await ada.post(`/contacts/organizations/${id}/tags`, { name: 'KNOWN' })).body.data).toMatchObject([
      { name: 'Known' },
    ])
    const narrow = await server.as(1, ['organizations:write'])
    const beyond = await narrow.post(`/contacts/organizations/${id}/tags`, { name: 'Fresh' })
    expect([beyond.status, beyond.body.required]).toEqual([403, 'settings:write'])
    expect((await admin.get('/tags')).body.meta.total).toBe(1)
  })

  it('needs either a tag_id or a name, and a tag that exists', async () => {
    const { id } = await make.organization()
    const tag = await make.tag()
    for (const body of [{}, { tag_id: tag.id, name: tag.name }, { tag_id: 999 }]) {
      const { status, body: problem } = await admin.post(`/contacts/organizations/${id}/tags`, body)
      expect([status, Object.keys(problem.errors)]).toEqual([422, ['tag_id']])
    }
    expect((await admin.get(`/contacts/organizations/${id}/tags`)).body.data).toEqual([])
  })

  it('answers 404 for an organization the caller may not see, and attaches nothing', async () => {
    const ada = await addUser(server, 'Ada', { view: 'individual' })
    const { id } = await make.organization()
    expect((await ada.post(`/contacts/organizations/${id}/tags`, { name: 'Fresh' })).status).toBe(404)
    expect((await admin.get('/tags')).body.meta.total).toBe(0)
  })
})
