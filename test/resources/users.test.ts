// Rules of users that the generated contract tests do not check: the right to change another user,
// and the records that are deleted with a user.
import { describe, expect, it } from 'vitest'
import { adminPassword } from '../support/app.ts'
import { isPostgres } from '../support/engine.ts'
import { given } from '../support/given.ts'
import { password, someone } from '../support/people.ts'
import { useNewServers } from '../support/using.ts'

const server = useNewServers()

const manager = ['settings.user.users.create', 'settings.user.users.edit', 'settings.user.users.delete', 'leads.view']
const ada = { name: 'Ada Lovelace', email: 'ada@example.com', role_id: 1, password, password_confirmation: password }
const updated = ['settings.user.update.before', 'settings.user.update.after']

const login = (email: string, secret: string) =>
  server.anonymous.post('/login', { email, password: secret, device_name: 'laptop' })

/** The events of a change that revokes the user's only token. */
const ending = [updated[0], 'user.token.delete.before', 'user.token.delete.after', updated[1]]

describe('listUsers', () => {
  it('filters by address in any case, by group, role, status and words', async () => {
    const group = await given(server.admin).group({ name: 'Central', user_ids: [] })
    const ann = await someone(server, ['leads'], {
      name: 'Ann',
      email: 'Ann@Example.com',
      group_ids: [group.id],
      is_active: false,
    })
    for (const filter of [
      'email=ANN@example.com',
      `group_id=${group.id}`,
      `role_id=${ann.roleId}`,
      'is_active=false',
      'q=ann example.com',
      'role_id[not]=1',
    ]) {
      expect((await server.admin.get(`/settings/users?${filter}`)).body.data).toMatchObject([
        { id: ann.id, email: 'Ann@Example.com' },
      ])
    }
  })

  it('puts role and groups in full where the reference was, on demand', async () => {
    const group = await given(server.admin).group({ name: 'Central', user_ids: [1] })
    const { body } = await server.admin.get('/settings/users?include=role,groups')
    expect(body.data[0]).toMatchObject({ role: { id: 1, users_count: 1 }, groups: [{ id: group.id, user_ids: [1] }] })
    expect((await server.admin.get('/settings/users')).body.data[0].role).toEqual({
      id: 1,
      name: 'Administrator',
      permission_type: 'all',
    })
  })

  it('shows users with an individual view only their own row', async () => {
    const { id, caller } = await someone(server, manager, { view_permission: 'individual' })
    expect((await caller.get('/settings/users')).body.data).toMatchObject([{ id }])
    expect((await caller.get('/settings/users/1')).status).toBe(404)
  })
})

describe('createUser', () => {
  it('creates a user who can sign in, and tells no listener and no log the password', async () => {
    const { status, body, text } = await server.admin.post('/settings/users', ada)
    expect(status).toBe(201)
    expect(body.data).toMatchObject({
      email: 'ada@example.com',
      is_active: true,
      view_permission: 'global',
      groups: [],
      image_url: null,
      version: 1,
    })
    expect((await login('ADA@example.com', password)).status).toBe(200)
    const log = await server.store.db.selectFrom('events').selectAll().execute()
    for (const each of [text, JSON.stringify(server.seen), JSON.stringify(log)]) {
      expect(each).not.toContain(password)
      expect(each).not.toContain('argon2')
    }
    expect(server.events().slice(0, 2)).toEqual(['settings.user.create.before', 'settings.user.create.after'])
  })

  it('refuses a taken address in any case with 409', async () => {
    const { body } = await server.admin.post('/settings/users', { ...ada, email: 'ADMIN@Example.com' })
    expect(body).toMatchObject({
      status: 409,
      code: 'unique_violation',
      conflicts: [{ entity_type: 'users', id: 1, field: 'email' }],
    })
    expect(server.events()).toEqual([])
  })

  it('says everything that is wrong at once', async () => {
    const wrong = {
      ...ada,
      password: 'Ada@example.com',
      password_confirmation: 'other',
      role_id: 99,
      group_ids: [7],
      email: 'ada@example.com',
    }
    const { status, body } = await server.admin.post('/settings/users', wrong)
    expect(status).toBe(422)
    expect(body.errors).toEqual({
      password: ['Must not equal the e-mail address.'],
      password_confirmation: ['Must repeat the password.'],
      role_id: ['No role has id 99.'],
      'group_ids.0': ['No group has id 7.'],
    })
    expect((await server.admin.get('/settings/users')).body.meta.total).toBe(1)
  })

  it("refuses to give a role that holds more than the caller's own", async () => {
    const { caller, roleId } = await someone(server, manager)
    expect((await caller.post('/settings/users', ada)).body).toMatchObject({ status: 403, required: '*' })
    const greater = await given(server.admin).role({
      name: 'Greater',
      permission_type: 'custom',
      permissions: ['leads.delete'],
    })
    expect((await caller.post('/settings/users', { ...ada, role_id: greater.id })).body).toMatchObject({
      status: 403,
      required: 'leads.delete',
    })
    expect((await caller.post('/settings/users', { ...ada, role_id: roleId })).status).toBe(201)
  })
})

describe('updateUser', () => {
  it("refuses to change a user whose role holds more than the caller's own, by any field", async () => {
    const { caller, roleId } = await someone(server, manager)
    const { body } = await caller.get('/settings/users/1')
    const fresh = { password: 'another password', password_confirmation: 'another password' }
    for (const change of [
      fresh,
      { email: 'mine@example.com' },
      { is_active: false },
      { name: 'Hi' },
      { role_id: roleId },
      { view_permission: 'group' },
    ]) {
      expect((await caller.put('/settings/users/1', change)).status).toBe(403)
    }
    expect(server.events()).toEqual([])
    expect((await caller.put('/settings/users/1', body.data)).body.data).toEqual(body.data)
    expect((await login('admin@example.com', adminPassword)).status).toBe(200)
  })

  it('ends every token of a user who gets another password', async () => {
    const ann = await someone(server, ['leads'])
    server.events()
    const { body } = await server.admin.put(`/settings/users/${ann.id}`, {
      password: 'another password',
      password_confirmation: 'another password',
    })
    expect(body.data.version).toBe(2)
    expect(server.seen.at(-1)?.changed).toEqual(['password'])
    expect(server.events()).toEqual(ending)
    expect((await ann.caller.get('/account')).status).toBe(401)
    expect((await login(ann.email, password)).status).toBe(401)
    expect((await login(ann.email, 'another password')).status).toBe(200)
  })

  it('ends every token of a user who is made inactive, and lets an administrator undo it', async () => {
    const ann = await someone(server, ['leads'])
    await server.admin.put(`/settings/users/${ann.id}`, { is_active: false })
    expect((await ann.caller.get('/account')).body.code).toBe('unauthenticated')
    expect((await login(ann.email, password)).body.code).toBe('account_inactive')
    await server.admin.put(`/settings/users/${ann.id}`, { is_active: true })
    expect((await ann.caller.get('/account')).status).toBe(401)
    expect((await login(ann.email, password)).status).toBe(200)
  })

  it('keeps the own role, view permission and status as they are, but not the own name', async () => {
    const other = await given(server.admin).role({ name: 'Other', permission_type: 'all', permissions: null })
    server.events()
    expect((await server.admin.put('/settings/users/1', { is_active: false })).body).toMatchObject({
      status: 409,
      code: 'protected',
    })
    const refused = await server.admin.put('/settings/users/1', { role_id: other.id, view_permission: 'individual' })
    expect(Object.keys(refused.body.errors)).toEqual(['role_id', 'view_permission'])
    expect(server.events()).toEqual([])
    const { body } = await server.admin.put('/settings/users/1', {
      name: 'Boss',
      is_active: true,
      role_id: 1,
      view_permission: 'global',
    })
    expect(body.data).toMatchObject({ name: 'Boss', version: 2 })
  })

  it('lets a user with every permission deactivate and demote another, but not themselves', async () => {
    const ann = await someone(server, manager)
    const second = await someone(server, 'all')
    expect((await second.caller.put('/settings/users/1', { is_active: false })).status).toBe(200)
    expect((await second.caller.put('/settings/users/1', { role_id: ann.roleId })).status).toBe(200)
    expect((await second.caller.put(`/settings/users/${second.id}`, { is_active: false })).body.code).toBe('protected')
    expect((await second.caller.get('/settings/users?is_active=true&role_id=1')).body.data).toEqual([])
    expect((await second.caller.get('/account')).body.data.permissions).toEqual(['*'])
  })

  it('makes the groups that are sent the complete set', async () => {
    const group = await given(server.admin).group({ name: 'Central', user_ids: [1] })
    server.events()
    expect((await server.admin.put('/settings/users/1', { group_ids: [group.id] })).body.data.version).toBe(1)
    const { body } = await server.admin.put('/settings/users/1', { group_ids: [] })
    expect(body.data).toMatchObject({ group_ids: [], groups: [], version: 2 })
    expect(server.seen.at(-1)?.changed).toEqual(['group_ids', 'groups'])
  })

  it('refuses a change to a version that is gone and answers the new one', async () => {
    const put = (match: string) =>
      server.admin.put('/settings/users/1', { name: `Admin ${match}` }, { headers: { 'if-match': match } })
    expect((await put('"1"')).headers.etag).toBe('"2"')
    expect((await put('"1"')).status).toBe(412)
    expect(server.events()).toEqual(updated)
  })
})

describe('the own account among the users', () => {
  const fresh = { password: 'another password', password_confirmation: 'another password' }
  const inAccount = ['Change your own with PUT /api/admin/account, which asks for the current password.']

  it('changes neither its password nor its e-mail here, whatever the token and the route', async () => {
    const { body: before } = await server.admin.get('/settings/users/1')
    const narrow = await server.as(1, ['users:write'])
    for (const caller of [server.admin, narrow]) {
      const both = await caller.put('/settings/users/1', { ...fresh, email: 'mine@example.com' })
      expect([both.status, both.body.errors]).toEqual([422, { email: inAccount, password: inAccount }])
      for (const atomic of [true, false]) {
        const changes = { ...fresh, name: 'Mine' }
        const mass = await caller.post('/settings/users/mass-update', { ids: [1], changes, atomic })
        expect([mass.status, mass.body.failed]).toMatchObject([422, [{ id: 1, status: 422, detail: inAccount[0] }]])
      }
    }
    expect(server.events()).toEqual([])
    expect((await server.admin.get('/settings/users/1')).body).toEqual(before)
    expect((await login('admin@example.com', adminPassword)).status).toBe(200)
  })

  it('may be put back as it was read', async () => {
    const { body } = await server.admin.get('/settings/users/1')
    const again = await server.admin.put('/settings/users/1', { ...body.data, name: 'Boss' })
    expect([again.status, again.body.data.name, again.body.data.email]).toEqual([200, 'Boss', 'admin@example.com'])
  })
})

describe('the ability users', () => {
  const paths = ['/settings/users', '/settings/users/1', '/settings/users/1/history', '/settings/roles']
  const others = ['/settings/roles/1', '/settings/roles/permissions', '/settings/groups']

  it('is apart from settings, in both directions', async () => {
    const [settings, users] = [await server.as(1, ['settings:*']), await server.as(1, ['users:*'])]
    for (const path of [...paths, ...others]) {
      expect((await settings.get(path)).body).toMatchObject({ status: 403, required: 'users:read' })
      expect((await users.get(path)).status).toBe(200)
    }
    for (const refused of [
      await settings.post('/settings/users', ada),
      await settings.put('/settings/users/1', { name: 'Mine' }),
      await settings.put('/settings/roles/1', { name: 'Mine' }),
      await settings.post('/settings/groups', { name: 'Mine' }),
    ])
      expect(refused.body).toMatchObject({ status: 403, required: 'users:write' })
    expect(server.events()).toEqual([])
    expect((await settings.get('/sources')).status).toBe(200)
    expect((await users.get('/sources')).body).toMatchObject({ status: 403, required: 'settings:read' })
    expect((await users.post('/settings/users', ada)).status).toBe(201)
  })
})

describe('users and the view of the caller', () => {
  const keys = ['settings.user.users', 'settings.user.users.create', 'settings.user.users.edit']
  const body = (roleId: number, changes: object) => ({
    name: 'New',
    email: 'new@example.com',
    role_id: roleId,
    password,
    password_confirmation: password,
    ...changes,
  })

  it("refuse a wider view than the caller's own", async () => {
    const ann = await someone(server, keys, { view_permission: 'group' })
    for (const changes of [{ view_permission: 'global' }, {}]) {
      const refused = await ann.caller.post('/settings/users', body(ann.roleId, changes))
      expect([refused.status, refused.body.required]).toEqual([403, 'view_permission=global'])
    }
    expect(server.events()).toEqual([])
    const group = await given(server.admin).group({ user_ids: [ann.id] })
    const sent = body(ann.roleId, { view_permission: 'individual', group_ids: [group.id] })
    const { id } = (await ann.caller.post('/settings/users', sent)).body.data
    server.events()
    const widened = await ann.caller.put(`/settings/users/${id}`, { view_permission: 'global' })
    expect(widened.body.required).toBe('view_permission=global')
    expect(server.events()).toEqual([])
    expect((await ann.caller.put(`/settings/users/${id}`, { view_permission: 'group' })).status).toBe(200)
  })

  it('refuse to set the password of a colleague whose view is wider', async () => {
    const ann = await someone(server, keys, { view_permission: 'group' })
    const { body: wide } = await server.admin.post('/settings/users', body(ann.roleId, { view_permission: 'global' }))
    await given(server.admin).group({ user_ids: [ann.id, wide.data.id] })
    server.events()
    const fresh = { password: 'another password', password_confirmation: 'another password' }
    const refused = await ann.caller.put(`/settings/users/${wide.data.id}`, fresh)
    expect([refused.status, refused.body.required]).toEqual([403, 'view_permission=global'])
    expect(server.events()).toEqual([])
  })

  it('refuse callers without a global view who add a user to a group they are not in', async () => {
    const ann = await someone(server, keys, { view_permission: 'individual' })
    const foreign = await given(server.admin).group({ name: 'Central', user_ids: [1] })
    server.events()
    for (const refused of [
      await ann.caller.put(`/settings/users/${ann.id}`, { group_ids: [foreign.id] }),
      await ann.caller.post(
        '/settings/users',
        body(ann.roleId, { view_permission: 'individual', group_ids: [foreign.id] }),
      ),
    ])
      expect([refused.status, refused.body.required]).toEqual([403, 'view_permission=global'])
    expect(server.events()).toEqual([])
    await server.admin.put(`/settings/groups/${foreign.id}`, { user_ids: [1, ann.id] })
    expect((await ann.caller.put(`/settings/users/${ann.id}`, { group_ids: [foreign.id] })).status).toBe(200)
    expect((await ann.caller.put(`/settings/users/${ann.id}`, { group_ids: [] })).body.data.groups).toEqual([])
  })

  it('refuse a group view that changes a user who sees other groups too, by any route', async () => {
    const [ann, peer] = [
      await someone(server, 'all', { view_permission: 'group' }),
      await someone(server, 'all', { view_permission: 'group' }),
    ]
    const { admin } = server
    const stranger = await someone(server, 'all')
    const shared = await given(admin).group({ name: 'Shared', user_ids: [ann.id, peer.id] })
    await given(admin).group({ name: 'Beyond', user_ids: [peer.id, stranger.id] })
    const path = `/settings/users/${peer.id}`
    const fresh = { password: 'another password', password_confirmation: 'another password' }
    const mass = { ids: [peer.id] }
    server.events()
    for (const refused of [
      await ann.caller.put(path, fresh),
      await ann.caller.put(path, { email: 'mine@example.com' }),
      await ann.caller.put(path, { name: 'Peer' }),
      await ann.caller.put(path, { is_active: false }),
      await ann.caller.put(path, { role_id: 1 }),
      await ann.caller.put(path, { view_permission: 'individual' }),
      await ann.caller.put(path, { group_ids: [] }),
      await ann.caller.put(`/settings/groups/${shared.id}`, { user_ids: [ann.id] }),
    ])
      expect([refused.status, refused.body.required]).toEqual([403, 'view_permission=global'])
    for (const refused of [
      await ann.caller.post('/settings/users/mass-update', { ...mass, changes: fresh }),
      await ann.caller.post('/settings/users/mass-update', { ...mass, value: false }),
    ])
      expect(refused.body.failed).toMatchObject([{ id: peer.id, status: 403 }])
    expect(server.events()).toEqual([])
    expect((await ann.caller.delete(path)).body.required).toBe('view_permission=global')
    expect((await ann.caller.post('/settings/users/mass-delete', mass)).body.failed).toMatchObject([{ status: 403 }])
    expect((await login(peer.email, password)).status).toBe(200)
    // A user may change another user with the same groups. A body from GET can be sent with PUT.
    expect((await ann.caller.put(path, (await ann.caller.get(path)).body.data)).status).toBe(200)
    await admin.put(path, { group_ids: [shared.id] })
    expect((await ann.caller.put(path, fresh)).status).toBe(200)
  })

  it('refuse to widen a user by a group view of groups the caller does not see', async () => {
    const ann = await someone(server, 'all', { view_permission: 'group' })
    const bob = await someone(server, 'all', { view_permission: 'individual' })
    await given(server.admin).group({ name: 'Shared', user_ids: [ann.id, bob.id] })
    const beyond = await given(server.admin).group({ name: 'Beyond', user_ids: [1, bob.id] })
    const widen = () => ann.caller.put(`/settings/users/${bob.id}`, { view_permission: 'group' })
    expect((await widen()).body).toMatchObject({ status: 403, required: 'view_permission=global' })
    await server.admin.put(`/settings/groups/${beyond.id}`, { user_ids: [1] })
    expect((await widen()).status).toBe(200)
  })

  // Not on PostgreSQL: only where writes run one after another does the listener's change precede
  // the next write.
  it.runIf(!isPostgres)('count as they are when the change is made, not when the call came in', async () => {
    const ann = await someone(server, 'all', { view_permission: 'group' })
    const [bob, cid] = [await someone(server, 'all'), await someone(server, 'all')]
    const { db } = server.store
    await db.updateTable('users').set({ view_permission: 'individual' }).where('id', 'in', [bob.id, cid.id]).execute()
    const { id } = await given(server.admin).group({ name: 'Shared', user_ids: [ann.id, bob.id, cid.id] })
    server.app.services.events.on('settings.user.update.after', async (event) => {
      if (event.entityId === bob.id) await db.deleteFrom('user_groups').where('group_id', '=', id).execute()
    })
    const { body } = await ann.caller.post('/settings/users/mass-update', { ids: [bob.id, cid.id], value: false })
    expect(body.data).toMatchObject({ processed: [bob.id], failed: [{ id: cid.id, status: 403 }] })
  })

  it('show role and groups in full only to callers who may show those', async () => {
    const ann = await someone(server, keys)
    await given(server.admin).group({ name: 'Central', user_ids: [ann.id] })
    const { body } = await ann.caller.get(`/settings/users/${ann.id}?include=role,groups`)
    expect(body.data.role).not.toHaveProperty('permissions')
    expect(body.data.groups).toEqual([{ id: expect.any(Number), name: 'Central' }])
  })
})

describe('deleteUser', () => {
  it('deletes the account with its tokens and memberships; its records have no owner then', async () => {
    const ann = await someone(server, ['leads'])
    await given(server.admin).group({ name: 'Central', user_ids: [ann.id] })
    const organization = await given(server.admin).organization({ name: 'Acme', user_id: ann.id })
    const other = await given(server.admin).organization({ name: 'Other' })
    server.events()
    expect((await server.admin.delete(`/settings/users/${ann.id}`)).body).toEqual({ message: 'User deleted.' })
    expect(server.events()).toEqual([
      'settings.user.delete.before',
      'user.token.delete.before',
      'user.token.delete.after',
      'settings.user.delete.after',
    ])
    expect((await ann.caller.get('/account')).status).toBe(401)
    for (const [{ id }, owner, version] of [
      [organization, null, 2],
      [other, 1, 1],
    ] as const)
      expect((await server.admin.get(`/contacts/organizations/${id}`)).body.data).toMatchObject({
        user_id: owner,
        version,
      })
    expect((await server.admin.get('/settings/groups')).body.data[0].users_count).toBe(0)
  })

  it('gives its records to a successor first, with one update event each', async () => {
    const [ann, bob] = [await someone(server, ['leads']), await someone(server, ['leads'])]
    const make = given(server.admin)
    const organization = await make.organization({ name: 'Acme', user_id: ann.id })
    const person = await make.person({ user_id: ann.id })
    const lead = await make.lead({ user_id: ann.id, person: { id: person.id } } as never)
    const activity = await make.activity({ user_id: ann.id } as never)
    const mine = await make.organization({ name: 'Mine', user_id: 1 })
    // No reassigned record has this version, because If-Match applies only to the user.
    await server.admin.put(`/settings/users/${ann.id}`, { name: 'Ann' })
    server.events()
    const match = { headers: { 'if-match': '"2"' } }
    expect((await server.admin.delete(`/settings/users/${ann.id}?reassign_to=${bob.id}`, match)).status).toBe(200)
    const pairs = ['lead.update', 'contacts.person.update', 'contacts.organization.update', 'activity.update']
    const ending = ['settings.user.delete', 'user.token.delete']
    expect(server.events()).toEqual([
      ...[...pairs, ...ending].map((base) => `${base}.before`),
      ...[...pairs, ...ending.reverse()].map((base) => `${base}.after`),
    ])
    for (const path of [
      `contacts/organizations/${organization.id}`,
      `contacts/persons/${person.id}`,
      `leads/${lead.id}`,
      `activities/${activity.id}`,
    ]) {
      expect((await server.admin.get(`/${path}`)).body.data.user_id).toBe(bob.id)
    }
    expect((await server.admin.get(`/contacts/organizations/${mine.id}`)).body.data.user_id).toBe(1)
  })

  it('refuses a deleted or inactive successor and the user in question, and deletes no user', async () => {
    const ann = await someone(server, ['leads'])
    const idle = await someone(server, ['leads'], { is_active: false })
    for (const to of [99, idle.id, ann.id]) {
      const { status, body } = await server.admin.delete(`/settings/users/${ann.id}?reassign_to=${to}`)
      expect(status).toBe(422)
      expect(Object.keys(body.errors)).toEqual(['query.reassign_to'])
    }
    expect(server.events()).toEqual([])
    expect((await ann.caller.get('/account')).status).toBe(200)
  })

  it('refuses the own account, and a user whose role holds more than the own', async () => {
    expect((await server.admin.delete('/settings/users/1')).body).toMatchObject({ status: 409, code: 'protected' })
    const { caller } = await someone(server, manager)
    expect((await caller.delete('/settings/users/1')).status).toBe(403)
    expect(server.events()).toEqual([])
  })
})

describe('massUpdateUsers', () => {
  it('deactivates the users one by one and says why one was left', async () => {
    const ann = await someone(server, ['leads'])
    const { status, body } = await server.admin.post('/settings/users/mass-update', {
      ids: [ann.id, 1, 99, ann.id],
      value: false,
    })
    expect(status).toBe(200)
    expect(body.data.processed).toEqual([ann.id])
    expect(body.data.failed).toMatchObject([
      { id: 1, status: 409, code: 'protected' },
      { id: 99, status: 404, code: 'not_found' },
    ])
    expect(server.events()).toEqual(ending)
  })

  it('does all or nothing when asked to', async () => {
    const ann = await someone(server, ['leads'])
    const { status, body } = await server.admin.post('/settings/users/mass-update', {
      ids: [ann.id, 1],
      value: false,
      atomic: true,
    })
    expect(status).toBe(422)
    expect(body).toMatchObject({ code: 'mass_failed', failed: [{ id: 1, code: 'protected' }] })
    expect((await ann.caller.get('/account')).status).toBe(200)
    expect(server.events().filter((name) => name.endsWith('.after'))).toEqual([])
  })

  it('sets a password for several at once, still within the ceiling', async () => {
    const [ann, boss] = [await someone(server, manager), await someone(server, 'all')]
    const bob = await someone(server, ['leads.view'])
    const changes = { password: 'another password', password_confirmation: 'another password' }
    const { body } = await ann.caller.post('/settings/users/mass-update', {
      ids: [bob.id, boss.id],
      changes,
      atomic: false,
    })
    expect(body.data).toMatchObject({ processed: [bob.id], failed: [{ id: boss.id, status: 403 }] })
    expect((await login(bob.email, 'another password')).status).toBe(200)
    expect((await login(boss.email, 'another password')).status).toBe(401)
  })
})

describe('massDeleteUsers', () => {
  it('deletes whom it may and never the caller', async () => {
    const ann = await someone(server, ['leads'])
    const { body } = await server.admin.post('/settings/users/mass-delete', { ids: [1, ann.id] })
    expect(body.data).toMatchObject({ processed: [ann.id], failed: [{ id: 1, code: 'protected' }] })
    expect((await server.admin.get('/settings/users')).body.meta.total).toBe(1)
  })
})
