// Lines of e-mails, users, roles and settings: the rules of their single operations hold for them.
import { describe, expect, it } from 'vitest'
import type { Schema } from '../../src/contract/types.ts'
import type { Caller } from '../support/app.ts'
import { newName } from '../support/names.ts'
import { useServer } from '../support/using.ts'
import { addUser } from '../support/viewers.ts'

const server = useServer()
const { admin } = server

type Answer = Schema<'BulkAnswer'>

async function send(lines: readonly object[], caller: Caller = admin, headers: object = {}): Promise<Answer[]> {
  const text = lines.map((line) => JSON.stringify(line)).join('\n')
  const reply = await caller.post('/bulk', text, { headers: { 'content-type': 'application/x-ndjson', ...headers } })
  expect(reply.status, reply.text).toBe(200)
  return reply.text
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Answer)
}

const did = (answers: readonly Answer[]) => answers.map((each) => each.did ?? each.problem?.code)
const newId = () => newName('id').toLowerCase().replaceAll(' ', '-')
const upsert = (type: string, id: string, fields: object) => ({
  op: 'upsert',
  type,
  external_id: `shop:${id}`,
  fields,
})
const by = (id: string) => ({ external_id: `shop:${id}` })
const user = (id: string, role: unknown, more: object = {}) =>
  upsert('users', id, { name: newName('User'), email: `${id}@example.com`, role_id: role, ...more })
const role = (id: string, more: object = {}) =>
  upsert('roles', id, { name: newName('Role'), permission_type: 'custom', permissions: ['leads'], ...more })
const email = (id: string, more: object = {}) =>
  upsert('emails', id, { subject: 'Offer', html: '<p>Hello</p>', to: [`${id}@example.com`], ...more })

const jobs = async (kind: string): Promise<unknown[]> =>
  (await server.store.db.selectFrom('jobs').select('payload').where('kind', 'like', kind).orderBy('id').execute()).map(
    ({ payload }) => JSON.parse(payload),
  )

describe('lines of users and roles', () => {
  it('create each with a reference to an earlier line, and write nothing when they are repeated', async () => {
    const id = newId()
    const lines = [
      role(id),
      upsert('groups', id, { name: newName('Group') }),
      user(id, by(id), { group_ids: [by(id)] }),
      upsert('persons', id, { name: 'Ada', user_id: by(id) }),
    ]
    const answers = await send(lines)
    expect(did(answers)).toEqual(['created', 'created', 'created', 'created'])
    const shown = (await admin.get(`/settings/users/${answers[2]?.id}`)).body.data
    expect(shown).toMatchObject({ role_id: answers[0]?.id, group_ids: [answers[1]?.id], external_ids: { shop: id } })
    const links = await jobs('%password%')
    expect(links).toEqual([{ user_id: answers[2]?.id }])
    expect(did(await send(lines))).toEqual(['unchanged', 'unchanged', 'unchanged', 'unchanged'])
    expect(await jobs('%password%')).toEqual(links)
    const after = await send([
      { op: 'update', type: 'users', external_id: `shop:${id}`, fields: { is_active: false } },
      { op: 'delete', type: 'users', external_id: `shop:${id}` },
      { op: 'delete', type: 'roles', external_id: `shop:${id}` },
    ])
    expect(did(after)).toEqual(['updated', 'deleted', 'deleted'])
  })

  it('take no password, in a new user or a known one', async () => {
    const password = { password: 'correct horse battery', password_confirmation: 'correct horse battery' }
    const id = newId()
    const answers = await send([
      user(id, 1, password),
      user(`${id}2`, 1),
      { op: 'update', type: 'users', external_id: `shop:${id}2`, fields: password },
      { op: 'update', type: 'users', id: 1, fields: password },
    ])
    expect(did(answers)).toEqual(['validation_failed', 'created', 'validation_failed', 'validation_failed'])
    for (const answer of [answers[0], answers[2]])
      expect(answer?.problem?.errors).toEqual({ password: [expect.stringContaining('Must be left out of a line.')] })
  })

  it('grant no right that the caller lacks, by its permissions, abilities and own role', async () => {
    const [id, boss] = [newId(), newId()]
    await admin.put('/settings/users/1', { external_ids: { shop: boss } })
    const keys = ['settings.user.users', 'settings.user.users.create', 'settings.user.users.edit']
    const permissions = [
      ...keys,
      'settings',
      'settings.user',
      'settings.user.roles',
      'settings.user.roles.create',
      'settings.user.roles.edit',
    ]
    const caller = await addUser(server, newName('Manager'), { permissions })
    const lines = [
      role(id, { permission_type: 'all' }),
      role(id, { permissions: ['settings.user.users'] }),
      { op: 'update', type: 'roles', external_id: `shop:${id}`, fields: { permissions: ['leads.create'] } },
      user(id, 1),
      upsert('users', boss, { name: 'Taken over' }),
      { op: 'delete', type: 'users', external_id: `shop:${boss}` },
      user(`${id}3`, by(id)),
    ]
    const answers = await send(lines, caller)
    expect(did(answers)).toEqual([
      'forbidden',
      'created',
      'forbidden',
      'forbidden',
      'forbidden',
      'forbidden',
      'created',
    ])
    const token = await server.as(1, ['leads:write'])
    expect(did(await send([user(newId(), 1), role(newId())], token))).toEqual(['forbidden', 'forbidden'])
    const readers = await addUser(server, newName('Reader'), { permissions: keys.slice(0, 1) })
    expect(did(await send([user(newId(), 1)], readers))).toEqual(['forbidden'])
  })

  it('leave nothing of a refused line, and tell its event of an accepted one', async () => {
    const id = newId()
    const count = async () => Number((await server.store.db.selectFrom('users').select('id').execute()).length)
    const users = await count()
    server.events()
    const answers = await send([user(id, 1, { group_ids: [999_999] }), user(id, 1, { external_ids: { shop: 'x' } })])
    expect(did(answers)).toEqual(['validation_failed', 'validation_failed'])
    expect([await count(), (await jobs('%password%')).length]).toEqual([users, expect.any(Number)])
    const [made] = await send([user(id, 1)])
    const logged = await server.store.db.selectFrom('events').select(['name', 'entity_id']).orderBy('id').execute()
    expect(logged.at(-1)).toEqual({ name: 'settings.user.create.after', entity_id: made?.id })
  })
})

describe('lines of e-mails', () => {
  it('queue each e-mail once, however often they are sent', async () => {
    const id = newId()
    const lines = [email(id), email(`${id}2`, { parent_id: by(id) }), email(`${id}3`, { is_draft: true })]
    const dry = await send(lines, admin, { 'accord-dry-run': 'true' })
    expect([did(dry), await jobs('emails.send')]).toEqual([['created', 'created', 'created'], []])
    const key = { 'idempotency-key': newId() }
    const answers = await send(lines, admin, key)
    expect(did(answers)).toEqual(['created', 'created', 'created'])
    const queued = [{ email_id: answers[0]?.id }, { email_id: answers[1]?.id }]
    expect(await jobs('emails.send')).toEqual(queued)
    expect((await admin.get(`/emails/${answers[1]?.id}`)).body.data.parent_id).toBe(answers[0]?.id)
    expect(await send(lines, admin, key)).toEqual(answers)
    expect(did(await send(lines))).toEqual(['unchanged', 'unchanged', 'unchanged'])
    expect(await jobs('emails.send')).toEqual(queued)
  })

  it('move an e-mail to the trash, and delete it from there', async () => {
    const id = newId()
    const remove = { op: 'delete', type: 'emails', external_id: `shop:${id}` }
    expect(did(await send([email(id, { is_draft: true }), remove, remove, remove]))).toEqual([
      'created',
      'updated',
      'deleted',
      'not_found',
    ])
  })

  it('are refused without the permission, and hide what the caller does not see', async () => {
    const id = newId()
    await send([email(id)])
    const reader = await addUser(server, newName('Reader'), { permissions: ['mail', 'mail.inbox'] })
    const update = { op: 'update', type: 'emails', external_id: `shop:${id}`, fields: { is_read: false } }
    expect(did(await send([email(newId())], reader))).toEqual(['forbidden'])
    const all = ['mail', 'mail.inbox', 'mail.outbox', 'mail.compose', 'mail.edit', 'mail.delete']
    const other = await addUser(server, newName('Other'), { permissions: all, view: 'individual' })
    expect(did(await send([update], other))).toEqual(['not_found'])
  })
})

describe('lines of settings', () => {
  it('hold for later lines, and for nothing after a dry run', async () => {
    const code = newName('size').toLowerCase().replaceAll(/\W/g, '_')
    const attribute = { code, name: 'Size', type: 'text', entity_type: 'leads' }
    const lead = { op: 'create', type: 'leads', fields: { title: 'Big', custom_attributes: { [code]: 'big' } } }
    const id = newId()
    const lines = [
      { op: 'create', type: 'attributes', fields: { ...attribute, type: 'nothing' } },
      lead,
      upsert('attributes', id, attribute),
      lead,
    ]
    const expected = ['validation_failed', 'validation_failed', 'created', 'created']
    expect(did(await send(lines, admin, { 'accord-dry-run': 'true' }))).toEqual(expected)
    expect(did(await send([lead]))).toEqual(['validation_failed'])
    expect(did(await send(lines))).toEqual(expected)
    expect(did(await send(lines.slice(2, 3)))).toEqual(['unchanged'])
  })

  it('are not those of webhooks, whose secret only the single operation shows', async () => {
    const [answer] = await send([upsert('webhooks', newId(), { name: 'Hook', url: 'https://example.com/hook' })])
    expect(answer?.problem?.errors).toEqual({ type: [expect.stringContaining('Must be one of')] })
  })
})
