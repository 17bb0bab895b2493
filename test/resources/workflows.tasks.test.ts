// The workflow actions that create an activity, and that notify users.
import { beforeEach, describe, expect, it } from 'vitest'
import { createMailer } from '../../src/mail/outbound.ts'
import { given } from '../support/given.ts'
import { useSmtp } from '../support/outside.ts'
import { useServer } from '../support/using.ts'
import { addUser } from '../support/viewers.ts'
import { alone, path, workflowsOn } from '../support/workflows.ts'

const smtp = useSmtp()
const server = useServer(() => ({ mailer: createMailer({ url: smtp.url, domain: 'crm.example' }) }), alone)
const { admin } = server
const make = given(admin)
const { workflow, runs } = workflowsOn(server)

const onCreation = (...actions: object[]) => workflow({ event: 'lead.create.after', actions })
const errorsOf = async (action: object) =>
  Object.keys(
    (
      await admin.post(path, {
        name: 'One more',
        entity_type: 'leads',
        event: 'lead.create.after',
        actions: [action],
      })
    ).body.errors ?? {},
  )
const mails = () => smtp.received.splice(0).map(({ to, raw }) => [to[0], /^Subject: (.*)$/m.exec(raw)?.[1]?.trim()])

beforeEach(() => {
  server.clock.set('2026-07-01T12:00:00.000Z')
  smtp.received.length = 0
})

describe('create_activity', () => {
  const task = { type: 'task', title: 'Call about {%leads.title%}', due_in_days: 3 }

  it('creates a task for the owner of the record, due at the end of its day, once', async () => {
    const rep = await addUser(server, 'Rep')
    const id = await onCreation({ id: 'create_activity', activity: task })
    const lead = await make.lead({ title: 'Seats', user_id: rep.id })
    await server.work()
    const { data } = (await admin.get(`/activities?lead_id=${lead.id}`)).body
    expect(data).toMatchObject([
      { type: 'task', title: 'Call about Seats', due_at: '2026-07-04T23:59:59.999Z', user_id: rep.id, is_done: false },
    ])
    expect((await runs(id))[0].actions).toMatchObject([{ state: 'succeeded', result: { activity_id: data[0].id } }])
    const { body } = await admin.post(`${path}/${id}/test`, { entity_id: lead.id })
    expect(body.data.actions).toEqual([{ id: 'create_activity', would: 'Create the task: Call about Seats' }])
  })

  it('creates a meeting of a whole day and a note for a named user', async () => {
    const rep = await addUser(server, 'Rep')
    const user_id = { email: 'rep@example.com' }
    await onCreation(
      { id: 'create_activity', activity: { type: 'meeting', title: 'Visit', due_in_days: 1, user_id } },
      { id: 'create_activity', activity: { type: 'note', comment: 'New: {%leads.title%}', user_id } },
    )
    const lead = await make.lead({ title: 'Seats', user_id: 1 })
    await server.work()
    const { data } = (await admin.get(`/activities?lead_id=${lead.id}&sort=id`)).body
    expect(data).toMatchObject([
      { type: 'meeting', user_id: rep.id, is_all_day: true, schedule_from: '2026-07-02T00:00:00.000Z' },
      { type: 'note', user_id: rep.id, comment: 'New: Seats', is_done: true },
    ])
  })

  it('is refused without what its type needs', async () => {
    const of = (activity: object) => errorsOf({ id: 'create_activity', activity })
    expect(await errorsOf({ id: 'create_activity' })).toEqual(['actions.0.activity'])
    expect(await errorsOf({ id: 'add_tag', value: 'x', activity: task })).toEqual(['actions.0.activity'])
    expect(await of({ type: 'task' })).toEqual(['actions.0.activity.title'])
    expect(await of({ type: 'note' })).toEqual(['actions.0.activity.comment'])
    expect(await of({ type: 'file', title: 'x' })).toEqual(['actions.0.activity.type'])
    expect(await of({ ...task, user_id: 999 })).toEqual(['actions.0.activity.user_id'])
    expect(await of({ ...task, title: '{%leads.unknown%}' })).toEqual(['actions.0.activity.title'])
  })
})

describe('notify', () => {
  const text = { subject: 'New: {%leads.title%}', text: 'Look at it.\n\nSoon.' }
  const notify = (changes: object = {}) => ({ id: 'notify', notice: { ...text, ...changes } })

  it('mails the owner, a user, and the active users of a group, once each', async () => {
    const one = await addUser(server, 'One', { group: 'Managers' })
    await addUser(server, 'Two', { group: 'Managers' })
    await addUser(server, 'Gone', { group: 'Managers', isActive: false })
    const id = await onCreation(notify(), notify({ user_id: one.id }), notify({ group_id: { name: 'Managers' } }))
    await make.lead({ title: 'Seats', user_id: 1 })
    await server.work()
    await server.work()
    expect(mails().sort()).toEqual([
      ['admin@example.com', 'New: Seats'],
      ['one@example.com', 'New: Seats'],
      ['one@example.com', 'New: Seats'],
      ['two@example.com', 'New: Seats'],
    ])
    expect((await runs(id))[0].state).toBe('succeeded')
    expect((await admin.get('/emails')).body.data).toEqual([])
  })

  it('fails with a reason when no active user would get it', async () => {
    const id = await onCreation(notify())
    await make.lead({ user_id: null })
    await server.work()
    expect((await runs(id))[0]).toMatchObject({ state: 'failed', reason: /no owner/ })
  })

  it('is refused for two kinds of recipients and for unknown ones', async () => {
    expect(await errorsOf({ id: 'notify', value: 'x' })).toEqual(['actions.0.notice', 'actions.0.value'])
    expect(await errorsOf(notify({ user_id: 999 }))).toEqual(['actions.0.notice.user_id'])
    expect(await errorsOf(notify({ group_id: 999 }))).toEqual(['actions.0.notice.group_id'])
    expect(await errorsOf(notify({ text: '{%persons.unknown%}' }))).toEqual(['actions.0.notice.text'])
  })
})

describe('a user and a group that an action names', () => {
  it('cannot be deleted without a replacement', async () => {
    const rep = await addUser(server, 'Rep', { group: 'Managers' })
    const next = await addUser(server, 'Next')
    const { data } = (await admin.get('/settings/groups')).body
    const group = data.find(({ name }: { name: string }) => name === 'Managers')
    const id = await onCreation(
      { id: 'create_activity', activity: { type: 'task', title: 'x', user_id: rep.id } },
      { id: 'notify', notice: { group_id: group.id, subject: 'x', text: 'y' } },
    )
    expect((await admin.delete(`/settings/groups/${group.id}`)).body.code).toBe('in_use')
    const refused = await admin.delete(`/settings/users/${rep.id}`)
    expect([refused.status, refused.body.code, refused.body.conflicts]).toEqual([
      409,
      'in_use',
      [{ entity_type: 'workflows', id, field: 'actions' }],
    ])
    const done = await admin.delete(`/settings/users/${rep.id}?replace_with=${next.id}`)
    expect(done.status).toBeLessThan(300)
    await server.work()
    expect((await admin.get(`${path}/${id}`)).body.data.actions[0].activity.user_id).toBe(next.id)
  })
})
