// Upserts of users, roles, groups and webhooks: the rules of the operations that create and update
// hold for them too, and references by external id lead to no further rights.
import { describe, expect, it } from 'vitest'
import { given, validBody } from '../support/given.ts'
import { newName } from '../support/names.ts'
import { useServer } from '../support/using.ts'
import { addUser } from '../support/viewers.ts'

const server = useServer()
const { admin } = server
const make = given(admin)

const userKeys = ['settings.user.users', 'settings.user.users.create', 'settings.user.users.edit']
const roleKeys = ['settings.user.roles', 'settings.user.roles.create', 'settings.user.roles.edit']
const manager = async () =>
  addUser(server, newName('Manager'), { permissions: [...userKeys, ...roleKeys, 'settings', 'settings.user'] })
const newRole = (changes: object = {}) => ({ name: newName('Role'), permission_type: 'custom', ...changes })
const newUser = (role_id: unknown, changes: object = {}) => {
  const name = newName('User')
  return { name, email: `${name.toLowerCase().replaceAll(' ', '.')}@example.com`, role_id, ...changes }
}

describe('upsertRole', () => {
  it('grants no permission that the caller lacks, neither new nor by a change', async () => {
    const caller = await manager()
    const role = '/settings/roles/external/sso/low'
    expect((await caller.put(role, newRole({ permission_type: 'all' }))).status).toBe(403)
    expect((await caller.put(role, newRole({ permissions: ['leads.create'] }))).status).toBe(403)
    const made = await caller.put(role, newRole({ permissions: ['settings.user.users'] }))
    expect(made.status).toBe(201)
    expect((await caller.put(role, { permission_type: 'all' })).status).toBe(403)
    expect((await caller.put(role, { permissions: ['leads.create'] })).status).toBe(403)
    expect((await admin.get(`/settings/roles/${made.body.data.id}`)).body.data).toEqual(made.body.data)
  })

  it('gives no other external id to a role that the caller could not change', async () => {
    const caller = await manager()
    expect((await admin.put('/settings/roles/1', { external_ids: { sso: 'admin' } })).status).toBe(200)
    const put = async (external_ids: object) => caller.put('/settings/roles/1', { external_ids })
    for (const ids of [{ sso: 'low-2' }, { sso: null }, { other: '1' }]) expect((await put(ids)).status).toBe(403)
    expect((await caller.put('/settings/roles/external/sso/admin', { external_ids: { other: '1' } })).status).toBe(403)
    expect((await put({ sso: 'admin' })).status).toBe(200)
    expect((await caller.put('/settings/roles/external/sso/admin', {})).status).toBe(200)
    expect((await admin.get('/settings/roles/1')).body.data.external_ids).toEqual({ sso: 'admin' })
  })
})

describe('upsertUser', () => {
  it('creates a user who gets a link to choose a password, like createUser', async () => {
    const jobs = async () =>
      (await server.store.db.selectFrom('jobs').select('payload').where('kind', 'like', '%password%').execute()).map(
        ({ payload }) => JSON.parse(payload).user_id,
      )
    const role = await make.role({ external_ids: { sso: 'sales' } })
    const group = await make.group({ external_ids: { sso: 'emea' } })
    const body = newUser({ external_id: 'sso:sales' }, { group_ids: [{ external_id: 'sso:emea' }] })
    const { status, body: reply } = await admin.put('/settings/users/external/sso/u1', body)
    expect(status).toBe(201)
    expect(reply.data).toMatchObject({ role_id: role.id, group_ids: [group.id], external_ids: { sso: 'u1' } })
    expect(await jobs()).toEqual([reply.data.id])
    await admin.put('/settings/users/external/sso/u1', { name: newName('Renamed') })
    const dry = { headers: { 'accord-dry-run': 'true' } }
    expect((await admin.put('/settings/users/external/sso/u2', newUser(1), dry)).status).toBe(200)
    expect(await jobs()).toEqual([reply.data.id])
  })

  it('reads passwords by the rules of createUser, and stores them', async () => {
    const path = '/settings/users/external/sso/password'
    const password = 'correct horse battery'
    const weak = await admin.put(path, newUser(1, { password: 'password', password_confirmation: 'password' }))
    expect(Object.keys(weak.body.errors)).toEqual(['password'])
    expect(Object.keys((await admin.put(path, newUser(1, { password }))).body.errors)).toEqual([
      'password_confirmation',
    ])
    const body = newUser(1, { password, password_confirmation: password })
    expect((await admin.put(path, body)).status).toBe(201)
    const signIn = async (word: string) =>
      (await server.anonymous.post('/login', { email: body.email, password: word, device_name: 'x' })).status
    expect(await signIn(password)).toBe(200)
    const next = 'another horse battery'
    expect((await admin.put(path, { password: next, password_confirmation: next })).status).toBe(200)
    expect([await signIn(password), await signIn(next)]).toEqual([401, 200])
  })

  it('changes no user with more rights than the caller, and nothing of the own role', async () => {
    const caller = await manager()
    await admin.put('/settings/users/1', { external_ids: { sso: 'boss' } })
    const boss = '/settings/users/external/sso/boss'
    for (const body of [{ name: 'Taken over' }, { external_ids: { sso2: '1' } }, { is_active: false }])
      expect((await caller.put(boss, body)).status).toBe(403)
    expect((await caller.put('/settings/users/1', { external_ids: { sso: null } })).status).toBe(403)
    expect((await caller.put('/settings/users/external/sso/new', newUser(1))).status).toBe(403)
    await admin.put(`/settings/users/${caller.id}`, { external_ids: { sso: 'self' } })
    const self = await caller.put('/settings/users/external/sso/self', { role_id: 1 })
    expect(self.status).toBe(422)
    expect((await admin.get('/settings/users/1')).body.data.external_ids).toEqual({ sso: 'boss' })
  })
})

describe('upsertWebhook', () => {
  it('shows the secret of a new webhook once', async () => {
    const path = '/settings/webhooks/external/erp/hook'
    const body = { name: newName('Hook'), url: 'https://example.com/hooks' }
    const made = await admin.put(path, body)
    expect([made.status, made.body.data.secret]).toEqual([201, expect.stringMatching(/^whsec_/)])
    const again = await admin.put(path, body)
    expect([again.status, again.body.data.secret]).toEqual([200, undefined])
  })
})

describe('upsertEmail', () => {
  it('sends a new e-mail unless it is a draft, and never again', async () => {
    const body = { subject: 'Hello', html: '<p>Hello</p>', to: ['ada@example.com'] }
    const draft = await admin.put('/emails/external/erp/draft', { ...body, is_draft: true })
    expect([draft.status, draft.body.data.status]).toEqual([201, 'draft'])
    const changed = await admin.put('/emails/external/erp/draft', { subject: 'Hi', is_draft: false })
    expect([changed.status, changed.body.data.status]).toEqual([200, 'draft'])
    const jobs = async () =>
      (await server.store.db.selectFrom('jobs').select('id').where('kind', '=', 'emails.send').execute()).length
    const before = await jobs()
    expect((await admin.put('/emails/external/erp/now', body)).body.data.status).toBe('queued')
    expect((await admin.put('/emails/external/erp/now', { is_read: false })).status).toBe(200)
    expect(await jobs()).toBe(before + 1)
  })
})

describe('an upsert with tags', () => {
  const mail = { subject: 'Hello', html: '<p>Hello</p>', to: [], is_draft: true }

  it.each([
    ['emails', '/emails/external/erp/tagged', mail],
    ['warehouses', '/settings/warehouses/external/erp/tagged', validBody('createWarehouse', () => 1, 'required')],
  ])('tags and untags records of %s', async (type, path, body) => {
    const { id } = await make.tag()
    server.events()
    expect((await admin.put(path, { ...(body as object), tag_ids: [id] })).status).toBe(201)
    expect(server.events()).toContain(`${type}.tag.create.after`)
    expect((await admin.put(path, { tag_ids: [] })).status).toBe(200)
    expect(server.events()).toContain(`${type}.tag.delete.after`)
  })
})

describe('an external id in the path', () => {
  it('is one segment with any characters but a comma, of at most 255', async () => {
    const put = async (source: string, id: string, name = newName('Tag')) =>
      admin.put(`/tags/external/${source}/${id}`, { name })
    const id = async (sent: string) => (await put('erp', sent)).body.data?.external_ids.erp
    expect(await id('a%2Fb%25c%3Ad')).toBe('a/b%c:d')
    expect(await id('%E2%98%83')).toBe('\u2603')
    expect(await id('x'.repeat(255))).toHaveLength(255)
    const long = await put('erp', 'x'.repeat(256))
    expect([long.status, Object.keys(long.body.errors)]).toEqual([422, ['path.external_id']])
    expect((await put('erp', 'a%2Cb')).status).toBe(422)
    for (const source of ['ERP', 'a.b', '%C3%BC', 's'.repeat(51)]) expect((await put(source, '1')).status).toBe(422)
    expect((await put('erp', 'a/b')).status).toBe(404)
    expect((await put('erp', '%ZZ')).status).toBe(400)
    const other = await admin.put('/sources/external/erp/a%2Fb%25c%3Ad', { name: newName('Source') })
    expect(other.status).toBe(201)
    expect((await admin.get('/tags?external_id=erp:a%2Fb%25c%3Ad')).body.data).toHaveLength(1)
  })
})

describe('a reference by external id to settings', () => {
  it('stands in the places of their ids', async () => {
    const own = (id: string) => ({ external_ids: { erp: id } })
    const [source, type, tag] = [await make.source(own('s')), await make.type(own('t')), await make.tag(own('g'))]
    const user = await make.user(own('u'))
    const at = (id: string) => ({ external_id: `erp:${id}` })
    const { status, body } = await admin.post('/leads', {
      ...{ title: 'Deal', lead_value: 1, lead_source_id: at('s'), lead_type_id: at('t') },
      ...{ user_id: at('u'), tag_ids: [at('g')] },
    })
    expect(status).toBe(201)
    expect(body.data).toMatchObject({
      ...{ lead_source_id: source.id, lead_type_id: type.id, user_id: user.id },
      tags: [{ id: tag.id }],
    })
    await admin.put('/settings/attributes/external/erp/industry', {
      ...{ entity_type: 'leads', code: 'industry', name: 'Industry', type: 'text' },
    })
    const form = await admin.put('/settings/web-forms/external/erp/contact', {
      ...{ title: 'Contact', submit_button_label: 'Send', submit_success_action: 'message' },
      ...{ submit_success_content: 'Thanks', create_lead: true, attributes: [{ attribute_id: at('industry') }] },
    })
    expect(form.body.data.attributes[0]).toMatchObject({ attribute: { code: 'industry' } })
    const wrong = await admin.post('/leads', { title: 'Deal', lead_value: 1, lead_source_id: at('t') })
    expect(wrong.body.errors).toEqual({ lead_source_id: ['No source has the external id erp:t.'] })
  })
})
