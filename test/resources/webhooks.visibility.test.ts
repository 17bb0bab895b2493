// A webhook sends only records that the user who last changed it may see.
import { beforeEach, describe, expect, it } from 'vitest'
import { permissionKeys } from '../../src/contract/operations.gen.ts'
import type { Caller } from '../support/app.ts'
import { given, unique } from '../support/given.ts'
import { useReceiver } from '../support/outside.ts'
import { useServer } from '../support/using.ts'
import { addUser, type Someone } from '../support/viewers.ts'

const path = '/settings/webhooks'
const gone =
  'The user who changed this webhook last is deleted or inactive. Save a change to it so that it acts with your rights.'

const lines: string[] = []
const receiver = useReceiver()
const server = useServer({
  config: { webhookAllowHttp: true, webhookAllowCidrs: ['127.0.0.0/8'] },
  lines: { write: (line: string) => lines.push(line) },
})
beforeEach(() => {
  lines.length = 0
})

const all = [...permissionKeys]
const without = (key: string): string[] => all.filter((each) => each !== key && !each.startsWith(`${key}.`))
const eve = (about: Someone = {}) => addUser(server, 'Eve', { view: 'individual', permissions: all, ...about })
async function hook(caller: Caller, changes: object = {}): Promise<number> {
  const body = { name: `Hook ${unique()}`, url: `${receiver.url}/hooks`, events: ['lead.*.after'], ...changes }
  const { status, body: reply, text } = await caller.post(path, body)
  expect(status, text).toBe(201)
  return reply.data.id
}
const get = async (id: number) => (await server.admin.get(`${path}/${id}`)).body.data
const deliveries = async (id: number) => (await server.admin.get(`${path}/${id}/deliveries?sort=id`)).body.data
const sent = () => receiver.received.map(({ body }) => JSON.parse(body))
const titles = () => sent().map(({ data }) => (data.after ?? data.before).title)
const warned = () => lines.filter((line) => line.includes('A webhook sends nothing'))

describe('of records', () => {
  it('of others it is sent nothing, while they exist and when they are deleted', async () => {
    const user = await eve()
    await hook(user)
    const own = await given(user).lead({ title: 'Own' })
    const other = await given(server.admin).lead({ title: 'Other', user_id: 1 })
    await server.work()
    expect(titles()).toEqual(['Own'])
    await server.admin.delete(`/leads/${other.id}`)
    await server.admin.delete(`/leads/${own.id}`)
    await server.work()
    expect(sent().map(({ type, data }) => [type, (data.after ?? data.before).title])).toEqual([
      ['lead.create.after', 'Own'],
      ['lead.delete.after', 'Own'],
    ])
  })

  it('lead.won follows the sight of the lead', async () => {
    const user = await eve()
    await hook(user, { events: ['lead.won'] })
    const { stages } = (await server.admin.get('/pipelines/1')).body.data
    const won = stages.find(({ code }: { code: string }) => code === 'won').id
    const other = await given(server.admin).lead({ title: 'Other', user_id: 1 })
    const own = await given(user).lead({ title: 'Own' })
    for (const { id } of [other, own])
      expect((await server.admin.put(`/leads/${id}/stage`, { lead_pipeline_stage_id: won })).status).toBe(200)
    await server.work()
    expect(sent().map(({ type, data }) => [type, data.entity_id])).toEqual([['lead.won', own.id]])
  })

  it('the user who changes it narrows or widens it', async () => {
    const user = await eve()
    const id = await hook(server.admin)
    expect((await get(id)).changed_by).toMatchObject({ id: 1 })
    await given(server.admin).lead({ title: 'First', user_id: 1 })
    await server.work()
    await user.put(`${path}/${id}`, { url: `${receiver.url}/elsewhere` })
    expect((await get(id)).changed_by).toMatchObject({ id: user.id })
    await given(server.admin).lead({ title: 'Second', user_id: 1 })
    await server.work()
    // Saving the same value is not a change.
    await server.admin.put(`${path}/${id}`, { url: `${receiver.url}/elsewhere` })
    expect((await get(id)).changed_by).toMatchObject({ id: user.id })
    await server.admin.post(`${path}/${id}/rotate-secret`)
    await given(server.admin).lead({ title: 'Third', user_id: 1 })
    await server.work()
    expect(titles()).toEqual(['First', 'Third'])
  })

  it('the past is sent again only as far as the user sees it', async () => {
    const user = await eve()
    const after = (await server.admin.get('/events?per_page=1')).body.meta
    const own = await given(user).lead({ title: 'Own' })
    await given(server.admin).lead({ title: 'Other', user_id: 1 })
    const id = await hook(user, { events: ['lead.create.after'] })
    const { status, body } = await server.admin.post(`${path}/${id}/replay`, { after_event_id: after.next_after })
    expect([status, body.data.queued]).toEqual([202, 1])
    await server.work()
    expect(sent().map(({ data }) => data.entity_id)).toEqual([own.id])
  })

  it('a record that is given to another user before the next attempt is not sent', async () => {
    const user = await eve()
    const id = await hook(user, { events: ['lead.create.after'] })
    receiver.behave({ mode: 'status', status: 500 })
    const lead = await given(user).lead({ title: 'Own' })
    await server.work()
    expect(sent()).toHaveLength(1)
    await server.admin.put(`/leads/${lead.id}`, { user_id: 1 })
    receiver.behave('ok')
    await server.store.db.updateTable('jobs').set({ run_at: '2000-01-01T00:00:00.000Z' }).execute()
    await server.work()
    expect(sent()).toHaveLength(1)
    const [delivery] = await deliveries(id)
    expect([delivery.state, delivery.attempts.at(-1).error]).toEqual([
      'failed',
      'Eve, who changed this webhook last, does not see the record.',
    ])
  })

  it('the record is told as the feed shows it to a user who does not see everything', async () => {
    const user = await eve()
    const person = await given(user).person({ name: 'Ada', emails: [{ value: 'ada@example.com' }] })
    await hook(user, { events: ['lead.create.after'] })
    await given(user).lead({ title: 'Own', person_id: person.id })
    await server.work()
    const { body } = await user.get('/events?name=lead.create.after')
    expect(sent().map(({ data }) => data.after)).toEqual([body.data[0].after])
    expect(sent()[0].data.after).toMatchObject({ person: { name: 'Ada' } })
  })

  it('a workflow tells it no more than both users see', async () => {
    const user = await eve()
    const id = await hook(user, { events: [] })
    const workflow = {
      name: 'Calls',
      entity_type: 'leads',
      event: 'lead.create.after',
      conditions: [],
      actions: [{ id: 'trigger_webhook', attribute: null, value: id }],
    }
    expect((await server.admin.post('/settings/workflows', workflow)).status).toBe(201)
    await given(server.admin).lead({ title: 'Other', user_id: 1 })
    await given(user).lead({ title: 'Own' })
    await server.work()
    expect(titles()).toEqual(['Own'])
    // The two runs have no order.
    const states = (await deliveries(id)).map(({ state }: { state: string }) => state)
    expect(states.toSorted()).toEqual(['failed', 'succeeded'])
  })
})

describe('nothing is sent, and the webhook and the log say so', () => {
  it.each([
    ['is disabled', { is_active: 0 }],
    ['is gone', null],
  ])('when the user %s', async (_what, change) => {
    const user = await eve()
    const id = await hook(user)
    await given(server.admin).lead({ title: 'Before', user_id: user.id })
    const { db } = server.store
    if (change) await db.updateTable('users').set(change).where('id', '=', user.id).execute()
    else {
      await db.updateTable('leads').set({ user_id: 1 }).execute()
      expect((await server.admin.delete(`/settings/users/${user.id}`)).status).toBeLessThan(300)
    }
    await given(server.admin).lead({ title: 'After', user_id: 1 })
    await server.work()
    await given(server.admin).lead({ title: 'Later', user_id: 1 })
    await server.work()
    expect(sent()).toEqual([])
    expect(await get(id)).toMatchObject({ silent_reason: gone, is_active: true })
    expect(warned()).toHaveLength(1)
    expect(JSON.parse(warned()[0] ?? '{}')).toMatchObject({ webhook: id, reason: gone })
    const replay = await server.admin.post(`${path}/${id}/replay`, { after_event_id: 0 })
    expect([replay.status, replay.body.detail]).toEqual([409, gone])
    await server.admin.put(`${path}/${id}`, { description: 'Mine now' })
    expect((await get(id)).silent_reason).toBeNull()
    await given(server.admin).lead({ title: 'Again', user_id: 1 })
    await server.work()
    expect(titles()).toContain('Again')
  })

  it.each([
    ['of the type', { entity_type: 'leads', events: ['*'] }],
    ['of the events', {}],
  ])('when the user lacks the permission %s', async (_what, about) => {
    const user = await eve({ view: 'global' })
    const id = await hook(user, about)
    const role = { permissions: JSON.stringify(without('leads')) }
    await server.store.db.updateTable('roles').set(role).where('name', '=', 'Eve').execute()
    await given(server.admin).lead({ title: 'After', user_id: 1 })
    await server.work()
    expect(sent()).toEqual([])
    expect((await get(id)).silent_reason).toBe(
      'The user who changed this webhook last lacks the permission leads to read its records.',
    )
    expect(warned()).toHaveLength(1)
    await server.admin.put(`${path}/${id}`, { description: 'Mine now' })
    await given(server.admin).lead({ title: 'Again', user_id: 1 })
    await server.work()
    expect(titles()).toContain('Again')
  })

  it('says nothing while some of its events may be read', async () => {
    const user = await eve({ view: 'global', permissions: without('leads') })
    const id = await hook(user, { events: ['lead.*.after', 'contacts.person.*.after'] })
    await given(server.admin).lead({ title: 'Hidden', user_id: 1 })
    await given(server.admin).person({ name: 'Shown' })
    await server.work()
    expect((await get(id)).silent_reason).toBeNull()
    expect(new Set(sent().map(({ data }) => data.entity_type))).toEqual(new Set(['persons']))
  })
})
