// Workflows that start relative to a date or to silence: once for each date of a record, also after
// days without a server, and never in one long turn.
import { beforeEach, describe, expect, it } from 'vitest'
import { given } from '../support/given.ts'
import { useServer } from '../support/using.ts'
import { alone, path, workflowsOn } from '../support/workflows.ts'

const server = useServer({}, alone)
const { admin } = server
const make = given(admin)
const { workflow, runs, tagsOf } = workflowsOn(server)

const timed = (field: string, days: number, changes: object = {}) =>
  workflow({ event: 'lead.due', timing: { field, days }, ...changes })
const hours = async (time: string): Promise<void> => {
  server.clock.set(time)
  await server.tick()
  await server.work()
}
const day = (date: number, time = '12:00') => hours(`2026-07-${String(date).padStart(2, '0')}T${time}:00.000Z`)
const idsOf = async (id: number) =>
  (await runs(id, admin, '&per_page=100')).map(({ entity_id }: { entity_id: number }) => entity_id)
const errorsOf = async (changes: object) => {
  const body = { name: 'One more', entity_type: 'leads', event: 'lead.due', actions: [{ id: 'add_tag', value: 'x' }] }
  return Object.keys((await admin.post(path, { ...body, ...changes })).body.errors ?? {})
}

beforeEach(() => day(1))

describe('a workflow before or after a date', () => {
  it('runs once on the day, names its event, and runs again for another date', async () => {
    const id = await timed('expected_close_date', -3)
    const lead = await make.lead({ expected_close_date: '2026-07-08' })
    await make.lead({ expected_close_date: null })
    await day(4)
    expect(await idsOf(id)).toEqual([])
    server.events()
    await day(5, '01:00')
    expect(await runs(id)).toMatchObject([{ event: 'lead.due', entity_id: lead.id, state: 'succeeded' }])
    expect(await tagsOf(lead.id)).toEqual(['Seen'])
    expect(server.events()).toContain('lead.due')
    const history = (await admin.get(`/leads/${lead.id}/history`)).body.data
    expect(history.some(({ workflow }: { workflow: { id: number } | null }) => workflow?.id === id)).toBe(true)
    await day(5, '05:00')
    await day(6)
    expect(await idsOf(id)).toEqual([lead.id])
    await admin.put(`/leads/${lead.id}`, { expected_close_date: '2026-07-12' })
    await day(9)
    await day(10)
    expect(await idsOf(id)).toEqual([lead.id, lead.id])
  })

  it('makes up for missed days once, and passes over what had passed when it was switched on', async () => {
    await make.lead({ expected_close_date: '2026-06-20' })
    const id = await timed('expected_close_date', 0)
    const missed = await make.lead({ expected_close_date: '2026-07-03' })
    const second = await make.lead({ expected_close_date: '2026-07-09' })
    await make.lead({ expected_close_date: '2026-07-25' })
    await day(20)
    expect(await idsOf(id)).toEqual([missed.id, second.id])
    await day(21)
    expect(await idsOf(id)).toEqual([missed.id, second.id])
    await admin.put(`${path}/${id}`, { is_active: false })
    await day(26)
    await admin.put(`${path}/${id}`, { is_active: true })
    await day(27)
    expect(await idsOf(id)).toHaveLength(2)
  })

  it('starts no run twice when a look is repeated, or two processes look', async () => {
    const id = await timed('expected_close_date', 0)
    const leads: number[] = []
    for (let index = 0; index < 60; index++) leads.push((await make.lead({ expected_close_date: '2026-07-03' })).id)
    await day(3)
    // As after a crash that lost the end of the look.
    await server.store.db
      .updateTable('workflows')
      .set({ due_until: '2026-07-01T12:00:00.000Z' })
      .where('id', '=', id)
      .execute()
    await Promise.all([day(3, '13:00'), server.work()])
    expect((await idsOf(id)).sort((a: number, b: number) => a - b)).toEqual(leads)
  })

  it('takes custom dates, and times of activities and quotes', async () => {
    const attribute = { entity_type: 'leads', code: 'renewal', name: 'Renewal', type: 'date' }
    const { body } = await admin.post('/settings/attributes', attribute)
    const custom = await timed('renewal', -7)
    const lead = await make.lead({ custom_attributes: { renewal: '2026-07-10' } })
    const tasks = await timed('due_at', 1, {
      entity_type: 'activities',
      event: 'activity.due',
      conditions: [{ attribute: 'is_done', operator: '==', value: false }],
      actions: [{ id: 'notify', notice: { user_id: 1, subject: 'x', text: 'y' } }],
    })
    const task = await make.activity({ type: 'task', title: 'x', due_at: '2026-07-02T12:00:00.000Z' } as any)
    await day(3, '11:00')
    expect([await idsOf(custom), await idsOf(tasks)]).toEqual([[lead.id], []])
    await day(3, '12:00')
    expect(await idsOf(tasks)).toEqual([task.id])
    const refused = await admin.delete(`/settings/attributes/${body.data.id}`)
    expect([refused.status, refused.body.conflicts]).toEqual([
      409,
      [{ entity_type: 'workflows', id: custom, field: 'timing' }],
    ])
  })
})

describe('a workflow after silence', () => {
  it('runs after days without a change of stage, an activity or an e-mail, once for each silence', async () => {
    const id = await timed('touched_at', 7)
    const silent = await make.lead()
    const [called, mailed, moved, done] = [await make.lead(), await make.lead(), await make.lead(), await make.lead()]
    const won = await make.lead()
    await admin.put(`/leads/${won.id}/stage`, { lead_pipeline_stage_id: 5 })
    const task = await make.activity({ type: 'task', title: 'x', lead_id: done.id } as any)
    await day(4)
    await make.activity({ type: 'note', comment: 'x', lead_id: called.id })
    await admin.post('/emails', { to: ['ada@example.com'], subject: 'x', html: 'y', lead_id: mailed.id })
    await admin.put(`/leads/${moved.id}/stage`, { lead_pipeline_stage_id: 2 })
    await admin.put(`/activities/${task.id}`, { is_done: true })
    await admin.put(`/leads/${silent.id}`, { description: 'A change is no touch.' })
    await day(8, '12:00')
    expect(await idsOf(id)).toEqual([silent.id])
    await day(11, '12:00')
    expect((await idsOf(id)).slice(1).sort()).toEqual([called.id, mailed.id, moved.id, done.id].sort())
    await make.activity({ type: 'note', comment: 'y', lead_id: silent.id })
    await day(25)
    expect((await idsOf(id)).filter((lead: number) => lead === silent.id)).toHaveLength(2)
  })
})

describe('the timing of a workflow', () => {
  it('belongs to its event', async () => {
    expect(await errorsOf({})).toEqual(['timing'])
    expect(await errorsOf({ event: 'lead.won', timing: { field: 'created_at', days: 1 } })).toEqual(['timing'])
    expect(await errorsOf({ timing: { field: 'title', days: 1 } })).toEqual(['timing.field'])
    expect(await errorsOf({ timing: { field: 'created_at', days: 9999 } })).toEqual(['timing.days'])
    expect(await errorsOf({ event: 'quote.due', timing: { field: 'created_at', days: 1 } })).toEqual(['event'])
    const id = await timed('created_at', 1)
    const { data } = (await admin.put(`${path}/${id}`, { event: 'lead.won' })).body
    expect(data.timing).toBe(null)
    expect((await admin.put(`${path}/${id}`, { event: 'lead.due' })).status).toBe(422)
  })
})
