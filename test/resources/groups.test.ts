// Rules of groups that the generated contract tests do not check.
import { describe, expect, it } from 'vitest'
import { someone } from '../support/people.ts'
import { useNewServers } from '../support/using.ts'

const server = useNewServers()

const keys = [
  'settings.user.groups.create',
  'settings.user.groups.edit',
  'settings.user.groups.delete',
  'settings.user.users',
]

async function central(ids: number[]): Promise<number> {
  const { body } = await server.admin.post('/settings/groups', { name: 'Central', user_ids: ids })
  server.events()
  return body.data.id
}

describe('listGroups', () => {
  it('finds the groups of a user and shows members in full on demand', async () => {
    const ann = await someone(server, keys)
    const id = await central([1, ann.id])
    await server.admin.post('/settings/groups', { name: 'Empty' })
    const { body } = await server.admin.get(`/settings/groups?user_id=${ann.id}&include=users`)
    expect(body.data).toMatchObject([{ id, user_ids: [1, ann.id], users_count: 2, users: [{ id: 1 }, { id: ann.id }] }])
    expect((await server.admin.get('/settings/groups?q=empty')).body.data[0]).not.toHaveProperty('users')
  })
})

describe('createGroup', () => {
  it('creates a group with its members, each once, in one pair of events', async () => {
    const ann = await someone(server, keys)
    const { status, body } = await server.admin.post('/settings/groups', {
      name: 'Central',
      user_ids: [ann.id, 1, ann.id],
    })
    expect(status).toBe(201)
    expect(body.data).toMatchObject({ user_ids: [1, ann.id], users_count: 2, version: 1 })
    expect(server.events()).toEqual(['settings.group.create.before', 'settings.group.create.after'])
    expect((await server.admin.get(`/settings/users/${ann.id}`)).body.data.group_ids).toEqual([body.data.id])
  })

  it('names the member that does not exist and creates nothing', async () => {
    const { status, body } = await server.admin.post('/settings/groups', { name: 'Central', user_ids: [1, 99] })
    expect(status).toBe(422)
    expect(body.errors).toEqual({ 'user_ids.1': ['No user has id 99.'] })
    expect(server.events()).toEqual([])
    expect((await server.admin.get('/settings/groups')).body.meta.total).toBe(0)
  })

  it('refuses a taken name in any case with 409', async () => {
    const id = await central([])
    const { body } = await server.admin.post('/settings/groups', { name: 'CENTRAL' })
    expect(body).toMatchObject({ status: 409, conflicts: [{ entity_type: 'groups', id, field: 'name' }] })
    expect(server.events()).toEqual([])
  })
})

describe('updateGroup', () => {
  it('makes the members that are sent the complete set, and leaves them when none are sent', async () => {
    const [ann, bob] = [await someone(server, keys), await someone(server, keys)]
    const id = await central([1, ann.id])
    const changed = await server.admin.put(`/settings/groups/${id}`, { user_ids: [bob.id, ann.id] })
    expect(changed.body.data).toMatchObject({ user_ids: [ann.id, bob.id], version: 2 })
    expect(server.seen.at(-1)?.changed).toEqual(['user_ids'])
    expect((await server.admin.put(`/settings/groups/${id}`, { name: 'South' })).body.data.user_ids).toEqual([
      ann.id,
      bob.id,
    ])
    expect((await server.admin.put(`/settings/groups/${id}`, { user_ids: [] })).body.data.users_count).toBe(0)
  })

  it('changes nothing when everything is as it was', async () => {
    const id = await central([1])
    const { body } = await server.admin.get(`/settings/groups/${id}`)
    const again = await server.admin.put(`/settings/groups/${id}`, body.data)
    expect(again.body.data).toEqual(body.data)
    expect(server.events()).toEqual(['settings.group.update.before', 'settings.group.update.after'])
  })

  it('takes no new member the caller cannot see, but keeps those who are in', async () => {
    const ann = await someone(server, keys, { view_permission: 'individual' })
    const id = await central([1, ann.id])
    const same = await ann.caller.put(`/settings/groups/${id}`, { user_ids: [1, ann.id] })
    expect([same.status, same.body.data.version]).toEqual([200, 1])
    const bob = await someone(server, keys)
    const refused = await ann.caller.put(`/settings/groups/${id}`, { user_ids: [1, ann.id, bob.id] })
    expect(refused.body.errors).toEqual({ 'user_ids.2': [`No user has id ${bob.id}.`] })
    expect((await server.admin.get(`/settings/groups/${id}`)).body.data.user_ids).toEqual([1, ann.id])
  })
})

describe('groups and the view of the caller', () => {
  it('count, name and find only members in sight, and keep the others when the set is written', async () => {
    const ann = await someone(server, keys, { view_permission: 'individual' })
    const id = await central([1, ann.id])
    const { body } = await ann.caller.get(`/settings/groups/${id}?include=users`)
    expect(body.data).toMatchObject({ user_ids: [ann.id], users_count: 1, users: [{ id: ann.id }] })
    expect((await ann.caller.get('/settings/groups?user_id=1')).body.meta.total).toBe(0)
    expect((await ann.caller.get(`/settings/groups?user_id=${ann.id}`)).body.meta.total).toBe(1)
    const emptied = await ann.caller.put(`/settings/groups/${id}`, { user_ids: [] })
    expect(emptied.body.data).toMatchObject({ user_ids: [], users_count: 0 })
    expect((await server.admin.get(`/settings/groups/${id}`)).body.data.user_ids).toEqual([1])
    expect((await ann.caller.delete(`/settings/groups/${id}`)).body).toMatchObject({
      code: 'in_use',
      conflicts: [{ id: null }],
    })
  })

  it('stop callers from moving a user who sees more owners than they do', async () => {
    const ann = await someone(server, keys, { view_permission: 'group' })
    const bob = await someone(server, keys, { view_permission: 'group' })
    const own = (await server.admin.post('/settings/groups', { name: 'Own', user_ids: [ann.id] })).body.data.id
    const both = [ann.id, bob.id]
    await server.admin.post('/settings/groups', { name: 'Shared', user_ids: both })
    const beyond = await central([1, bob.id])
    server.events()
    const join = () => ann.caller.put(`/settings/groups/${own}`, { user_ids: both })
    expect((await join()).body).toMatchObject({ status: 403, required: 'view_permission=global' })
    expect(server.events()).toEqual([])
    await server.admin.put(`/settings/groups/${beyond}`, { user_ids: [1] })
    expect((await join()).body.data.user_ids).toEqual(both)
  })

  it('leave out the full members for callers who may not show users', async () => {
    const id = await central([1])
    const bob = await someone(server, ['settings.user.groups'])
    const { body } = await bob.caller.get(`/settings/groups/${id}?include=users`)
    expect(body.data).toMatchObject({ user_ids: [1] })
    expect(body.data).not.toHaveProperty('users')
  })

  it('stop callers without a global view from adding users to a group they are not in', async () => {
    const ann = await someone(server, keys, { view_permission: 'group' })
    const foreign = await central([1])
    for (const reply of [
      await ann.caller.put(`/settings/groups/${foreign}`, { user_ids: [ann.id] }),
      await ann.caller.post('/settings/groups', { name: 'Mine', user_ids: [ann.id] }),
    ])
      expect([reply.status, reply.body.required]).toEqual([403, 'view_permission=global'])
    expect(server.events()).toEqual([])
    expect((await ann.caller.get('/leads')).status).toBe(403)
    expect((await server.admin.get(`/settings/groups/${foreign}`)).body.data.user_ids).toEqual([1])
    expect((await ann.caller.post('/settings/groups', { name: 'Mine' })).status).toBe(201)
  })
})

describe('deleteGroup', () => {
  it('refuses a group with members and names them', async () => {
    const id = await central([1])
    const { body } = await server.admin.delete(`/settings/groups/${id}`)
    expect(body).toMatchObject({
      status: 409,
      code: 'in_use',
      conflicts: [{ entity_type: 'users', id: 1, field: 'group_ids' }],
    })
    expect(server.events()).toEqual(['settings.group.delete.before'])
    expect((await server.admin.get(`/settings/groups/${id}`)).status).toBe(200)
  })

  it('deletes an empty group and leaves its former members alone', async () => {
    const id = await central([])
    expect((await server.admin.delete(`/settings/groups/${id}`)).body).toEqual({ message: 'Group deleted.' })
    expect(server.events()).toEqual(['settings.group.delete.before', 'settings.group.delete.after'])
    expect((await server.admin.get('/settings/users')).body.meta.total).toBe(1)
  })
})
