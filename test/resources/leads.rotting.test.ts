// The rotten days of a lead count from its last change of stage, activity or e-mail.
import { describe, expect, it } from 'vitest'
import { given } from '../support/given.ts'
import { useServer } from '../support/using.ts'

const server = useServer()
const { admin } = server
const make = given(admin)
const day = (date: number) => server.clock.set(`2026-07-${String(date).padStart(2, '0')}T12:00:00.000Z`)
const rottenOf = async (id: number) => (await admin.get(`/leads/${id}`)).body.data.rotten_days
const rotten = async (): Promise<number[]> =>
  (await admin.get('/leads?is_rotten=true&sort=id')).body.data.map(({ id }: { id: number }) => id)

describe('the rotten days of a lead', () => {
  it('start again with each touch, in the lead, the filter and the board', async () => {
    day(1)
    await admin.put('/pipelines/1', { rotten_days: 5 })
    const [idle, moved, called, linked] = [await make.lead(), await make.lead(), await make.lead(), await make.lead()]
    const mail = (await admin.post('/emails', { to: ['ada@example.com'], subject: 'x', html: 'y', is_draft: true }))
      .body
    day(5)
    await admin.put(`/leads/${moved.id}/stage`, { lead_pipeline_stage_id: 2 })
    const call = { type: 'call', title: 'x', schedule_from: '2026-07-30', schedule_to: '2026-07-31' } as const
    await make.activity({ ...call, lead_id: called.id })
    await admin.put(`/emails/${mail.data.id}`, { lead_id: linked.id })
    day(8)
    const all = [idle.id, moved.id, called.id, linked.id]
    expect(await Promise.all(all.map(rottenOf))).toEqual([2, 0, 0, 2])
    expect(await rotten()).toEqual([idle.id, linked.id])
    await admin.post(`/emails/${mail.data.id}/send`)
    expect(await rotten()).toEqual([idle.id])
    day(12)
    expect(await Promise.all(all.map(rottenOf))).toEqual([6, 2, 2, 0])
    const board = (await admin.get('/leads/kanban?pipeline_id=1&is_rotten=true')).text
    expect(
      JSON.parse(board)
        .data.flatMap(({ leads }: any) => leads.data.map(({ id }: any) => id))
        .sort(),
    ).toEqual([idle.id, moved.id, called.id].sort())
  })

  it('stay after a deletion and a restore', async () => {
    day(1)
    await admin.put('/pipelines/1', { rotten_days: 5 })
    const lead = await make.lead()
    day(4)
    await make.activity({ type: 'note', comment: 'x', lead_id: lead.id })
    await admin.delete(`/leads/${lead.id}`)
    await admin.post(`/leads/${lead.id}/restore`)
    day(11)
    expect(await rottenOf(lead.id)).toBe(2)
  })
})
