// `accord doctor` compares the ledger of reports with the leads: every way to close, change,
// reopen, delete and restore a lead leaves them equal, and a lead that differs is named.
import { expect, it } from 'vitest'
import { checkLedger } from '../../src/commands/doctor/ledger.ts'
import { given } from '../support/given.ts'
import { useServer } from '../support/using.ts'

const server = useServer()

it('the ledger follows a lead wherever it goes', async () => {
  const { admin, store } = server
  const make = given(admin)
  const { stages } = (await admin.get('/pipelines/1')).body.data as { stages: { id: number; code: string }[] }
  const stage = (code: string): number => stages.find((each) => each.code === code)?.id ?? 0
  const move = (id: number, code: string) => admin.put(`/leads/${id}/stage`, { lead_pipeline_stage_id: stage(code) })
  const ids: number[] = []
  for (const code of ['won', 'lost', 'new'])
    ids.push((await make.lead({ lead_pipeline_stage_id: stage(code), lead_value: 10.05 })).id)
  const [won = 0, lost = 0, open = 0] = ids
  expect(await checkLedger(store)).toBeNull()
  const steps = [
    () => admin.put(`/leads/${won}`, { lead_value: 99.99 }),
    () => move(won, 'lost'),
    () => move(lost, 'new'),
    () => move(open, 'won'),
    () => admin.delete(`/leads/${open}`),
    () => admin.post(`/leads/${open}/restore`),
    () => admin.post('/leads/mass-update', { ids: [won, lost], value: stage('won') }),
    () => admin.post('/leads/mass-delete', { ids: [won] }),
  ]
  for (const step of steps) {
    const { status, text } = await step()
    expect(status, text).toBeLessThan(300)
    expect(await checkLedger(store)).toBeNull()
  }

  for (const [change, by] of [
    [{ lead_value: 1 }, 'new'],
    [{ status: 1, lead_pipeline_stage_id: stage('new') }, 'lost'],
  ] as const) {
    await store.db.updateTable('leads').set(change).where('id', '=', open).execute()
    expect(await checkLedger(store)).toMatch(new RegExp(`^reports count the leads ${open} otherwise than they are`))
    const back = by === 'new' ? 'won' : 'new'
    for (const code of [by, back]) expect((await move(open, code)).status).toBe(200)
    expect(await checkLedger(store)).toBeNull()
  }
})
