// Saved views as records: what is refused, who sees, changes and deletes them, and what becomes of
// them when their groups and users change.
import { describe, expect, it } from 'vitest'
import type { Caller } from '../support/app.ts'
import { useServer } from '../support/using.ts'
import { addUser } from '../support/viewers.ts'

const server = useServer()

const permissions = ['leads', 'views', 'views.create', 'views.edit', 'views.delete']
const large = { name: 'Large', type: 'leads', where: { lead_value: { gte: 1000 } } }

async function make(body: object, caller: Caller = server.admin) {
  const { status, text, body: reply } = await caller.post('/views', body)
  expect(status, text).toBe(201)
  return reply.data
}

const groupOf = async (name: string) =>
  (await server.store.db.selectFrom('groups').select('id').where('name', '=', name).executeTakeFirstOrThrow()).id

const namesFor = async (caller: Caller, query = '') => {
  const reply = await caller.get(`/views?sort=name${query}`)
  expect(reply.status, reply.text).toBe(200)
  return reply.body.data.map(({ name }: { name: string }) => name)
}

describe('createView', () => {
  it('saves a view that is listed, changed and deleted, with a history of it all', async () => {
    const view = await make(large)
    expect(view).toMatchObject({ ...large, user_id: 1, user: { id: 1 }, group_ids: [], groups: [], version: 1 })
    expect(server.events()).toEqual(['view.create.before', 'view.create.after'])
    expect((await server.admin.get('/views')).body.data).toEqual([view])
    const at = `/views/${view.id}`
    const where = { or: [{ status: 1 }, { organization: { name: { starts_with: 'Ana' } } }] }
    expect((await server.admin.put(at, { where, name: 'Open' })).body.data).toMatchObject({ where, version: 2 })
    expect((await server.admin.put(at, { where, name: 'Open' })).body.data).toMatchObject({ version: 2 })
    expect((await server.admin.put(at, { type: 'leads' })).body.data).toMatchObject({ version: 2 })
    expect((await server.admin.put(at, { type: 'persons' })).body.errors).toEqual({
      type: ['A view keeps its type; save another view.'],
    })
    expect((await server.admin.delete(at)).status).toBe(200)
    expect((await server.admin.get(at)).status).toBe(404)
    const names = (await server.admin.get(`${at}/history`)).body.data.map(({ name }: { name: string }) => name)
    expect(names).toEqual(['view.delete.after', 'view.update.after', 'view.create.after'])
  })

  it.each<[string, object, string, string]>([
    ['a misspelled field', { lead_valu: 1 }, 'where.lead_valu', 'Unknown field. Did you mean `lead_value`?'],
    [
      'a field of another type',
      { and: [{ email: 'x' }] },
      'where.and.0.email',
      'Unknown field. Custom attributes stand in `custom_attributes`.',
    ],
    ['an unknown attribute', { custom_attributes: { size: 1 } }, 'where.custom_attributes.size', 'Unknown attribute.'],
    ['a wrong value', { lead_value: { gte: 'much' } }, 'where.lead_value.gte', 'Must be a number.'],
    ['a text without letters', { title: { contains: "'" } }, 'where.title.contains', 'Must have a letter or a digit.'],
    [
      'more than 100 conditions',
      { or: Array.from({ length: 34 }, () => ({ title: 'a', status: 1, user_id: 1 })) },
      'where',
      'Must not have more than 100 conditions; it has 102.',
    ],
  ])('refuses %s at its place', async (_what, where, field, sentence) => {
    const { status, body } = await server.admin.post('/views', { ...large, where })
    expect([status, body.errors]).toEqual([422, { [field]: [sentence] }])
    const { id } = await make(large)
    const changed = await server.admin.put(`/views/${id}`, { where })
    expect([changed.status, changed.body.errors]).toEqual([422, { [field]: [sentence] }])
  })

  it('accepts 100 conditions, and reports the errors of all fields at once', async () => {
    const or = Array.from({ length: 50 }, (_, n) => ({ title: `a${n}`, lead_value: n }))
    expect((await make({ ...large, where: { or } })).where).toEqual({ or })
    const { body } = await server.admin.post('/views', { type: 'leads', where: { x: 1 }, group_ids: [9] })
    expect(Object.keys(body.errors).sort()).toEqual(['group_ids.0', 'name', 'where.x'])
    const none = await server.admin.post('/views', { ...large, type: 'tags', where: 7 })
    expect(Object.keys(none.body.errors).sort()).toEqual(['type', 'where'])
  })

  it('normalizes values as the query does', async () => {
    const where = { emails: undefined, email: 'ADA@example.com', subscribed: 'true', organization_id: '7' }
    expect((await make({ name: 'P', type: 'persons', where })).where).toEqual({
      email: 'ADA@example.com',
      subscribed: true,
      organization_id: 7,
    })
  })

  it('wants one name per owner and type', async () => {
    const name = 'Übersicht ✓ 大きい'
    await make({ ...large, name })
    const { id } = await make({ ...large, name, type: 'persons', where: {} })
    const again = await server.admin.post('/views', { ...large, name: name.toUpperCase() })
    expect(again).toMatchObject({ status: 409, body: { code: 'unique_violation' } })
    const ben = await addUser(server, 'Ben', { view: 'individual', permissions })
    await make({ ...large, name }, ben)
    expect((await server.admin.put(`/views/${id}`, { name })).status).toBe(200)
    expect(await namesFor(server.admin, `&name=${encodeURIComponent(name)}`)).toHaveLength(3)
  })

  it('writes nothing in a dry run, and once for a key', async () => {
    expect((await server.admin.post('/views', large, { headers: { 'accord-dry-run': 'true' } })).status).toBe(200)
    expect(await namesFor(server.admin)).toEqual([])
    const headers = { 'idempotency-key': 'save-1' }
    const first = await server.admin.post('/views', large, { headers })
    const second = await server.admin.post('/views', large, { headers })
    expect([second.status, second.body]).toEqual([201, first.body])
    expect(await namesFor(server.admin)).toEqual(['Large'])
  })
})

describe('a shared view', () => {
  it('is seen by the members of its groups, and changed by its owner alone', async () => {
    const ada = await addUser(server, 'Ada', { group: 'Sales', permissions })
    const ben = await addUser(server, 'Ben', { group: 'Sales', view: 'individual', permissions })
    const eve = await addUser(server, 'Eve', { group: 'Others', view: 'global', permissions })
    const { id } = await make(large, ada)
    const at = `/views/${id}`
    expect([await namesFor(ada), await namesFor(ben), await namesFor(server.admin)]).toEqual([['Large'], [], ['Large']])
    expect((await ben.get(at)).status).toBe(404)
    const group_ids = [await groupOf('Sales')]
    const shared = await ada.put(at, { group_ids })
    expect(shared.body.data).toMatchObject({ group_ids, groups: [{ name: 'Sales' }], version: 2 })
    expect((await ben.get(at)).body.data).toEqual(shared.body.data)
    for (const reply of [await ben.put(at, { name: 'Mine' }), await ben.delete(at)])
      expect(reply).toMatchObject({ status: 403, body: { code: 'forbidden' } })
    for (const reply of [await eve.get(at), await eve.put(at, { name: 'Mine' }), await eve.delete(at)])
      expect(reply.status).toBe(404)
    expect(await namesFor(eve)).toEqual([])
    expect((await server.admin.put(at, { name: 'Larger' })).status).toBe(200)
  })

  it('is lost to a user who leaves the group, and to all when the group is deleted', async () => {
    const ada = await addUser(server, 'Ada', { permissions })
    const ben = await addUser(server, 'Ben', { group: 'Sales', permissions })
    const group = await groupOf('Sales')
    const { id, version } = await make({ ...large, group_ids: [group] }, ada)
    expect(await namesFor(ben, `&group_id=${group}`)).toEqual(['Large'])
    const empty = await server.admin.put(`/settings/groups/${group}`, { user_ids: [] })
    expect(empty.status, empty.text).toBe(200)
    expect([await namesFor(ben), (await ben.get(`/leads?view=${id}`)).status]).toEqual([[], 422])
    expect((await server.admin.delete(`/settings/groups/${group}`)).status).toBe(200)
    const left = (await ada.get(`/views/${id}`)).body.data
    expect(left).toMatchObject({ group_ids: [], groups: [] })
    expect(left.version).toBeGreaterThan(version)
  })

  it('passes to the successor of a deleted user, or stays without an owner', async () => {
    const ada = await addUser(server, 'Ada', { group: 'Sales', permissions })
    const ben = await addUser(server, 'Ben', { permissions })
    const boss = await addUser(server, 'Boss', {
      permissions: [...permissions, 'settings', 'settings.user', 'settings.user.users', 'settings.user.users.delete'],
    })
    const group_ids = [await groupOf('Sales')]
    const { id } = await make({ ...large, group_ids }, ben)
    await make({ ...large }, ada)
    const gone = await boss.delete(`/settings/users/${ben.id}?reassign_to=${ada.id}`)
    expect(gone.status, gone.text).toBe(200)
    expect((await ada.get(`/views/${id}`)).body.data).toMatchObject({ user_id: ada.id, user: { name: 'Ada' } })
    expect((await boss.delete(`/settings/users/${ada.id}`)).status).toBe(200)
    expect((await server.admin.get(`/views/${id}`)).body.data).toMatchObject({ user_id: null, user: null })
  })

  it('shows its deletion to those who could see all of it', async () => {
    const ada = await addUser(server, 'Ada', { permissions: [...permissions, 'events'] })
    const eve = await addUser(server, 'Eve', { permissions: [...permissions, 'events'] })
    const { id } = await make(large, ada)
    await ada.delete(`/views/${id}`)
    const deletions = async (caller: Caller) =>
      (await caller.get('/events?name=view.delete.after')).body.data.map(
        (each: { entity_id: number }) => each.entity_id,
      )
    expect([await deletions(ada), await deletions(eve), await deletions(server.admin)]).toEqual([[id], [], [id]])
    expect([(await ada.get(`/views/${id}/history`)).status, (await eve.get(`/views/${id}/history`)).status]).toEqual([
      200, 404,
    ])
  })

  it('needs the permissions of views, and the ability of settings', async () => {
    const dan = await addUser(server, 'Dan', { permissions: ['leads', 'views'] })
    expect([(await dan.get('/views')).status, (await dan.post('/views', large)).status]).toEqual([200, 403])
    const token = await server.as(1, ['leads:read'])
    expect((await token.get('/views')).status).toBe(403)
    const { id } = await make(large)
    expect((await token.get(`/leads?view=${id}`)).status).toBe(200)
  })
})
