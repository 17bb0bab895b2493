// Rules of roles that the generated contract tests do not check: users cannot grant more than they
// have, and no change locks out all administrators.
import { describe, expect, it } from 'vitest'
import { given } from '../support/given.ts'
import { someone } from '../support/people.ts'
import { useNewServers } from '../support/using.ts'
import { addUser } from '../support/viewers.ts'

const server = useNewServers()

const editor = ['settings.user.roles.create', 'settings.user.roles.edit', 'settings.user.roles.delete', 'leads.view']
const sales = {
  name: 'Sales',
  permission_type: 'custom',
  permissions: ['leads.view' as const, 'leads.create' as const],
}

describe('listPermissions', () => {
  it('answers all 134 keys as a tree, parents above their children', async () => {
    const { status, body } = await server.admin.get('/settings/roles/permissions')
    const count = (nodes: { children: [] }[]): number => nodes.reduce((sum, node) => sum + 1 + count(node.children), 0)
    expect(status).toBe(200)
    expect(count(body.data)).toBe(134)
    expect(body.data.find((node: { key: string }) => node.key === 'dashboard')).toEqual({
      key: 'dashboard',
      name: 'Dashboard',
      children: [],
    })
  })
})

describe('listRoles', () => {
  it('finds a role by a word of its description and by whether it grants everything', async () => {
    await given(server.admin).role({ ...sales, permission_type: 'custom', description: 'Works on Leads' })
    expect((await server.admin.get('/settings/roles?q=LEADS')).body.data).toMatchObject([{ name: 'Sales' }])
    expect((await server.admin.get('/settings/roles?permission_type=all')).body.data).toMatchObject([
      { name: 'Administrator' },
    ])
  })
})

describe('getRole', () => {
  it('counts only users the caller may see', async () => {
    const ann = await someone(server, editor, { view_permission: 'individual' })
    await given(server.admin).user({ role_id: ann.roleId })
    expect((await server.admin.get(`/settings/roles/${ann.roleId}`)).body.data.users_count).toBe(2)
    expect((await ann.caller.get(`/settings/roles/${ann.roleId}`)).body.data.users_count).toBe(1)
    expect((await ann.caller.get('/settings/roles/1')).body.data.users_count).toBe(0)
  })
})

describe('createRole', () => {
  it('adds the ancestors of the permissions and fires its pair of events', async () => {
    const { status, body } = await server.admin.post('/settings/roles', sales)
    expect(status).toBe(201)
    expect(body.data).toMatchObject({
      permissions: ['leads', 'leads.create', 'leads.view'],
      users_count: 0,
      version: 1,
    })
    expect(server.events()).toEqual(['settings.role.create.before', 'settings.role.create.after'])
  })

  it('lists no permissions for a role that holds every one', async () => {
    const { body } = await server.admin.post('/settings/roles', { ...sales, permission_type: 'all' })
    expect(body.data).toMatchObject({ permission_type: 'all', permissions: null })
  })

  it('names every unknown permission at its place, with a hint, and creates nothing', async () => {
    const { status, body } = await server.admin.post('/settings/roles', {
      ...sales,
      permissions: ['leads', 'leads.creat', 'nonsense'],
    })
    expect(status).toBe(422)
    expect(body.errors).toEqual({
      'permissions.1': ['Is none of the 134 values that the contract lists. Did you mean `leads.create`?'],
      'permissions.2': ['Is none of the 134 values that the contract lists.'],
    })
    expect(server.events()).toEqual([])
  })

  it('refuses a name that differs only in case with 409', async () => {
    const { status, body } = await server.admin.post('/settings/roles', { ...sales, name: 'ADMINISTRATOR' })
    expect(status).toBe(409)
    expect(body.conflicts).toEqual([{ entity_type: 'roles', id: 1, field: 'name' }])
    expect(server.events()).toEqual([])
  })

  it("refuses to grant a permission that the caller's own role lacks", async () => {
    const { caller } = await someone(server, editor)
    const refused = await caller.post('/settings/roles', { ...sales, permissions: ['leads.view', 'leads.delete'] })
    expect(refused.status).toBe(403)
    expect(refused.body).toMatchObject({ code: 'forbidden', required: 'leads.delete' })
    expect((await caller.post('/settings/roles', { ...sales, permission_type: 'all' })).body).toMatchObject({
      status: 403,
      required: '*',
    })
    expect(server.events()).toEqual([])
    expect((await caller.post('/settings/roles', { ...sales, permissions: ['leads.view'] })).status).toBe(201)
  })
})

describe('updateRole', () => {
  it("refuses to rename, strip or delete a role that holds more than the caller's own", async () => {
    const { caller } = await someone(server, editor)
    const role = await given(server.admin).role({
      name: 'Greater',
      permission_type: 'custom',
      permissions: ['products', 'quotes'],
    })
    server.events()
    for (const change of [{ name: 'Renamed' }, { description: 'Mine' }, { permissions: [] }]) {
      const { body } = await caller.put(`/settings/roles/${role.id}`, change)
      expect(body).toMatchObject({ status: 403, required: 'quotes' })
    }
    expect(server.events()).toEqual([])
    expect((await caller.delete(`/settings/roles/${role.id}`)).body).toMatchObject({ status: 403, required: 'quotes' })
    expect(server.events()).toEqual(['settings.role.delete.before'])
    const { body } = await caller.get(`/settings/roles/${role.id}`)
    expect((await caller.put(`/settings/roles/${role.id}`, body.data)).body.data).toEqual(body.data)
  })

  it('refuses to add a permission to an equal role that the caller lacks', async () => {
    const { caller } = await someone(server, editor)
    const role = await given(server.admin).role({ permission_type: 'custom', permissions: ['leads.view'] })
    const more = await caller.put(`/settings/roles/${role.id}`, { permissions: ['leads.view', 'quotes'] })
    expect(more.body).toMatchObject({ status: 403, required: 'quotes' })
    expect((await caller.put(`/settings/roles/${role.id}`, { name: 'Renamed' })).status).toBe(200)
  })

  it('lets only a role with every permission change one that has it, though what was read can be written back', async () => {
    const { caller } = await someone(server, editor)
    const { body } = await caller.get('/settings/roles/1')
    expect((await caller.put('/settings/roles/1', body.data)).body.data).toEqual(body.data)
    server.events()
    for (const change of [{ name: 'Mine' }, { description: 'Mine' }, { permission_type: 'custom', permissions: [] }]) {
      expect((await caller.put('/settings/roles/1', change)).status).toBe(403)
    }
    expect(server.events()).toEqual([])
    expect((await server.admin.get('/settings/roles/1')).body.data.version).toBe(1)
  })

  it('keeps the own role able to edit roles', async () => {
    const { caller, roleId } = await someone(server, editor)
    const refused = await caller.put(`/settings/roles/${roleId}`, { permissions: ['leads.view'] })
    expect(refused.body).toMatchObject({ status: 409, code: 'protected' })
    expect(server.events()).toEqual([])
    const kept = await caller.put(`/settings/roles/${roleId}`, { permissions: ['settings.user.roles.edit'] })
    expect(kept.body.data.permissions).toEqual([
      'settings',
      'settings.user',
      'settings.user.roles',
      'settings.user.roles.edit',
    ])
  })

  it('keeps one active user who holds every permission', async () => {
    const change = { permission_type: 'custom', permissions: ['settings.user.roles.edit'] }
    expect((await server.admin.put('/settings/roles/1', change)).body).toMatchObject({ status: 409, code: 'protected' })
    const other = await someone(server, 'all', { is_active: false })
    expect((await server.admin.put('/settings/roles/1', change)).status).toBe(409)
    expect(server.events()).toEqual([])
    await server.admin.put(`/settings/users/${other.id}`, { is_active: true })
    expect((await server.admin.put('/settings/roles/1', change)).status).toBe(200)
  })

  it('takes effect for tokens that are already out', async () => {
    const { caller, roleId } = await someone(server, ['settings.user.groups'])
    expect((await caller.get('/settings/groups')).status).toBe(200)
    await server.admin.put(`/settings/roles/${roleId}`, { permissions: [] })
    expect((await caller.get('/settings/groups')).status).toBe(403)
    expect((await caller.get('/account')).status).toBe(200)
  })
})

describe('updateRole, by callers without a global view,', () => {
  const stripped = { permission_type: 'custom', permissions: ['leads.view'] }
  const permissionsOf = async (id: number) => (await server.admin.get(`/settings/roles/${id}`)).body.data.permissions

  it('neither widens nor strips what a user may do who sees owners that they do not see', async () => {
    const wide = await addUser(server, 'Wide', { permissions: ['dashboard'] })
    const narrow = await addUser(server, 'Narrow', { view: 'individual' })
    const { role_id } = (await server.admin.get(`/settings/users/${wide.id}`)).body.data
    const answers = [
      await narrow.put(`/settings/roles/${role_id}`, { permissions: ['dashboard', 'leads.view'] }),
      await narrow.put(`/settings/roles/${role_id}`, { permissions: [] }),
      await narrow.put(`/settings/roles/${role_id}`, { permission_type: 'all' }),
    ]
    for (const { status, body } of answers)
      expect([status, body.code, body.required]).toEqual([403, 'forbidden', 'view_permission=global'])
    expect(await permissionsOf(role_id)).toEqual(['dashboard'])
    expect((await wide.get('/leads')).status).toBe(403)

    // The rule also applies to a user who has every permission but a narrower view.
    const other = await given(server.admin).role({ name: 'All', permission_type: 'all' })
    await server.admin.put(`/settings/users/${narrow.id}`, { role_id: other.id })
    expect((await narrow.put('/settings/roles/1', stripped)).status).toBe(403)
    expect((await server.admin.get('/leads')).status).toBe(200)
  })

  it("changes unused roles, the caller's role and roles of users with a narrower view; the name of any role", async () => {
    const lead = await addUser(server, 'Lead', { view: 'group', group: 'North' })
    const member = await addUser(server, 'Member', { view: 'individual', group: 'North', permissions: ['dashboard'] })
    const { role_id } = (await server.admin.get(`/settings/users/${member.id}`)).body.data
    expect((await lead.put(`/settings/roles/${role_id}`, stripped)).status).toBe(200)
    const unused = await given(server.admin).role({ name: 'Unused', permission_type: 'custom', permissions: [] })
    expect((await lead.put(`/settings/roles/${unused.id}`, stripped)).status).toBe(200)

    const wide = await addUser(server, 'Wide', { permissions: ['dashboard'] })
    const { role_id: theirs } = (await server.admin.get(`/settings/users/${wide.id}`)).body.data
    expect((await lead.put(`/settings/roles/${theirs}`, { name: 'Reporting' })).status).toBe(200)
    const read = (await lead.get(`/settings/roles/${theirs}`)).body.data
    expect((await lead.put(`/settings/roles/${theirs}`, read)).status).toBe(200)
  })
})

describe('deleteRole', () => {
  it('deletes an unused role', async () => {
    const role = await given(server.admin).role(sales as never)
    server.events()
    expect((await server.admin.delete(`/settings/roles/${role.id}`)).body).toEqual({ message: 'Role deleted.' })
    expect(server.events()).toEqual(['settings.role.delete.before', 'settings.role.delete.after'])
    expect((await server.admin.get(`/settings/roles/${role.id}`)).status).toBe(404)
  })

  it('refuses a role in use and names its users', async () => {
    const { id, roleId } = await someone(server, ['leads'])
    const { body } = await server.admin.delete(`/settings/roles/${roleId}`)
    expect(body).toMatchObject({
      status: 409,
      code: 'in_use',
      conflicts: [{ entity_type: 'users', id, field: 'role_id' }],
    })
    expect((await server.admin.get(`/settings/roles/${roleId}`)).status).toBe(200)
    // The before-event fires before the state is checked. No after-event fires.
    expect(server.events()).toEqual(['settings.role.delete.before'])
  })

  it('refuses the own role, and from below a role with every permission', async () => {
    expect((await server.admin.delete('/settings/roles/1')).body).toMatchObject({ status: 409, code: 'protected' })
    const spare = await given(server.admin).role({ name: 'Spare', permission_type: 'all', permissions: null })
    const { caller } = await someone(server, editor)
    expect((await caller.delete(`/settings/roles/${spare.id}`)).status).toBe(403)
    expect((await server.admin.delete(`/settings/roles/${spare.id}`)).status).toBe(200)
  })
})
