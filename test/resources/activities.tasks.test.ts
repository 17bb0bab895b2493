// Tasks: an owner, a due time, and a reminder that is sent once.
import { beforeEach, describe, expect, it } from 'vitest'
import { createMailer } from '../../src/mail/outbound.ts'
import type { Caller } from '../support/app.ts'
import { given } from '../support/given.ts'
import { useSmtp } from '../support/outside.ts'
import { useServer } from '../support/using.ts'
import { addUser } from '../support/viewers.ts'

const smtp = useSmtp()
const server = useServer(() => ({ mailer: createMailer({ url: smtp.url, domain: 'crm.example' }) }))
const { admin } = server
const make = given(admin)

const day = (date: number, time = '12:00') => `2026-07-${String(date).padStart(2, '0')}T${time}:00.000Z`
const task = (changes: object = {}) => make.activity({ type: 'task', title: 'Send the offer', ...changes } as any)
const read = async (id: number) => (await admin.get(`/activities/${id}`)).body.data
const ids = async (query: string, caller: Caller = admin): Promise<number[]> =>
  (await caller.get(`/activities?sort=id&type=task&${query}`)).body.data.map(({ id }: { id: number }) => id)

/** Runs the scheduler and the jobs at a time, and returns the recipients of the mails. */
async function at(time: string): Promise<string[]> {
  server.clock.set(time)
  await server.tick()
  await server.work()
  return smtp.received.splice(0).flatMap(({ to }) => to)
}

beforeEach(async () => {
  server.clock.set(day(1))
  await server.tick()
  smtp.received.length = 0
})

describe('a task', () => {
  it('has a due time in place of a start and an end', async () => {
    const { status, body } = await admin.post('/activities', {
      type: 'task',
      title: 'Send the offer',
      due_at: day(3),
      schedule_from: day(2),
    })
    expect(status).toBe(201)
    expect(body.data).toMatchObject({ due_at: day(3), remind_at: null, overdue: false, is_done: false })
    expect([body.data.schedule_from, body.meta.warnings.map(({ field }: any) => field)]).toEqual([
      null,
      ['schedule_from'],
    ])
    const untitled = await admin.post('/activities', { type: 'task', due_at: day(3) })
    expect([untitled.status, Object.keys(untitled.body.errors)]).toEqual([422, ['title']])
    const note = await admin.post('/activities', { type: 'note', comment: 'x', due_at: day(3) })
    expect([note.body.data.due_at, note.body.meta.warnings[0].field]).toEqual([null, 'due_at'])
  })

  it('is overdue from its due time until it is done, in replies, filters and the export', async () => {
    const late = await task({ due_at: day(3) })
    const later = await task({ due_at: day(9) })
    const undated = await task()
    expect(await ids('overdue=true')).toEqual([])
    server.clock.set(day(4))
    expect([(await read(late.id)).overdue, (await read(later.id)).overdue]).toEqual([true, false])
    expect(await ids('overdue=true')).toEqual([late.id])
    expect(await ids('overdue=1')).toEqual([late.id])
    expect(await ids('overdue=false')).toEqual([later.id, undated.id])
    expect(await ids('overdue[not]=true')).toEqual([later.id, undated.id])
    expect(await ids('due_at[null]=true')).toEqual([undated.id])
    expect(await ids(`due_at[gte]=${day(3)}&due_at[lt]=${day(9)}`)).toEqual([late.id])
    const sorted = (await admin.get('/activities?type=task&sort=-due_at')).body.data.map((each: any) => each.id)
    expect(sorted).toEqual([later.id, late.id, undated.id])
    const [head = '', ...rows] = (await admin.get('/activities/export?format=csv&overdue=true')).text.trim().split('\n')
    expect(head).toMatch(/due_at,remind_at,is_done,overdue/)
    expect(rows).toHaveLength(1)
    await admin.put(`/activities/${late.id}`, { is_done: true })
    expect([(await read(late.id)).overdue, await ids('overdue=true')]).toEqual([false, []])
  })

  it('is handed over with its lead, and keeps its times when it is restored', async () => {
    const next = await addUser(server, 'Next', { view: 'individual' })
    const lead = await make.lead({ user_id: 1 })
    const { id } = await task({ user_id: 1, lead_id: lead.id, due_at: day(3), remind_at: day(2) })
    const body = { lead_ids: [lead.id], user_ids: [next.id], with: ['activities'] }
    expect((await admin.post('/leads/hand-over', body)).body.data.activities).toBe(1)
    expect(await ids('', next)).toEqual([id])
    await admin.delete(`/activities/${id}`)
    await admin.post(`/activities/${id}/restore`)
    expect(await read(id)).toMatchObject({ user_id: next.id, due_at: day(3), remind_at: day(2) })
    expect(await at(day(2))).toEqual(['next@example.com'])
  })
})

describe('the reminder of a task', () => {
  it('reaches the owner once, at its time, and leaves an event', async () => {
    const { id } = await task({ user_id: 1, due_at: day(3), remind_at: day(2) })
    expect(await at(day(2, '11:55'))).toEqual([])
    server.events()
    expect(await at(day(2))).toEqual(['admin@example.com'])
    expect(server.events()).toContain('activity.reminded')
    expect(await at(day(2, '12:05'))).toEqual([])
    const { version } = await read(id)
    await admin.put(`/activities/${id}`, { title: 'Another title' })
    expect((await read(id)).version).toBe(version + 1)
    expect(await at(day(2, '12:10'))).toEqual([])
    await admin.put(`/activities/${id}`, { remind_at: day(4) })
    expect([await at(day(4)), await at(day(5))]).toEqual([['admin@example.com'], []])
  })

  it('is sent once after days without a server, and once after a failed attempt', async () => {
    await task({ user_id: 1, remind_at: day(2) })
    smtp.behave('greylist')
    expect(await at(day(9))).toEqual([])
    smtp.behave('accept')
    expect([await at(day(9, '12:10')), await at(day(10))]).toEqual([['admin@example.com'], []])
  })

  it('is not sent for a done task, and waits for an owner who is active', async () => {
    const gone = await addUser(server, 'Gone')
    await task({ user_id: 1, remind_at: day(2), is_done: true })
    const { id } = await task({ user_id: gone.id, remind_at: day(2) })
    await admin.put(`/settings/users/${gone.id}`, { is_active: false })
    expect(await at(day(2))).toEqual([])
    await admin.put(`/activities/${id}`, { user_id: 1 })
    expect([await at(day(3)), await at(day(4))]).toEqual([['admin@example.com'], []])
  })
})
