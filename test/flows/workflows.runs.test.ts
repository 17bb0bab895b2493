// Interrupted workflow runs, and runs for deleted records: completed actions are not repeated, and
// impossible actions are reported.
import { sql } from 'kysely'
import { describe, expect, it } from 'vitest'
import { given } from '../support/given.ts'
import { startSmtp } from '../support/smtp.ts'
import { countTurns } from '../support/turns.ts'
import { useOne, useServer } from '../support/using.ts'
import { alone, note, path, set, workflowsOn } from '../support/workflows.ts'

const smtp = useOne(startSmtp)
const server = useServer(
  () => ({ config: { webhookAllowHttp: true, webhookAllowCidrs: ['127.0.0.1/32'], smtpUrl: smtp.url } }),
  alone,
)
const { workflow, runs, states, tagsOf } = workflowsOn(server)

describe('a run', () => {
  it('that is cut off between two actions goes on with the second, and repeats nothing', async () => {
    const id = await workflow({ actions: [note, { id: 'add_tag', value: 'Late' }, set('title', 'done')] })
    const lead = await given(server.admin).lead({ title: 'first' })
    await server.admin.put(`/leads/${lead.id}`, { lead_value: 1 })
    await sql`create trigger cut before insert on lead_tags begin select raise(abort, 'the power is gone'); end`.execute(
      server.store.db,
    )
    await server.work()
    expect((await runs(id))[0]).toMatchObject({
      state: 'matched',
      finished_at: null,
      actions: [{ state: 'succeeded' }, { state: 'pending' }, { state: 'pending' }],
    })
    // The tag that the interrupted action created was rolled back.
    expect((await server.admin.get('/tags')).body.data).toEqual([])
    // Planned actions run even if the workflow was changed later.
    await server.admin.put(`${path}/${id}`, { actions: [note] })
    await sql`drop trigger cut`.execute(server.store.db)
    server.clock.advanceMs(60_000)
    await server.work()
    expect((await runs(id))[0]).toMatchObject({
      state: 'succeeded',
      actions: [{ state: 'succeeded' }, { state: 'succeeded' }, { state: 'succeeded' }],
    })
    const notes = (await server.admin.get(`/activities?lead_id=${lead.id}`)).body.data
    expect(notes.map(({ comment }: { comment: string }) => comment)).toEqual(['Looked at first.'])
    expect(await tagsOf(lead.id)).toEqual(['Late'])
  })

  it('changes many leads in parts: other jobs run in between, and an interrupted run continues after its last part', async () => {
    const make = given(server.admin)
    const person = await make.person()
    const ids: number[] = []
    for (let count = 0; count < 60; count++) ids.push((await make.lead({ title: 'x', person_id: person.id })).id)
    const actions = [set('title', 'done', 'update_related_leads')]
    const id = await workflow({ entity_type: 'persons', event: 'contacts.person.update.after', actions })
    await server.work()
    await server.admin.put(`/contacts/persons/${person.id}`, { job_title: 'x' })
    await sql`create trigger cut before update on leads when new.id = ${sql.lit(ids[30])} begin
      select raise(abort, 'the power is gone'); end`.execute(server.store.db)
    await server.work()
    expect((await runs(id))[0]).toMatchObject({
      state: 'matched',
      actions: [{ state: 'pending', result: { lead_ids: ids.slice(0, 25) } }],
    })
    await sql`drop trigger cut`.execute(server.store.db)
    server.clock.advanceMs(60_000)
    const turns = countTurns()
    await server.work()
    turns.stop()
    expect(turns.count).toBeGreaterThanOrEqual(2)
    expect((await runs(id))[0]).toMatchObject({
      state: 'succeeded',
      actions: [{ state: 'succeeded', result: { lead_ids: ids } }],
    })
    const told = await server.store.db.selectFrom('events').select('entity_id').where('name', '=', 'lead.update.after')
    expect((await told.orderBy('id').execute()).map(({ entity_id }) => entity_id)).toEqual(ids)
  })
})

describe('a deletion', () => {
  it('is judged by the record as it was; what would write to it fails, what tells of it does not', async () => {
    const template = await server.admin.post('/settings/email-templates', {
      name: 'Gone',
      subject: 'Gone: {%leads.title%} of {%persons.name%}',
      content: '<p>{%leads.lead_value%}</p>',
    })
    const conditions = [{ attribute: 'title', operator: '{}', value: 'seats' }]
    const told = await workflow({
      event: 'lead.delete.before',
      conditions,
      actions: [{ id: 'send_email_to_sales_owner', value: template.body.data.id }],
    })
    const written = await workflow({
      event: 'lead.delete.before',
      conditions,
      actions: [{ id: 'add_tag', value: 'x' }],
    })
    const person = await given(server.admin).person({ name: 'Ada' })
    const lead = await given(server.admin).lead({ title: '40 seats', lead_value: 12, person_id: person.id })
    await server.admin.delete(`/leads/${lead.id}`)
    await server.work()
    expect((await runs(told))[0]).toMatchObject({ state: 'succeeded', event: 'lead.delete.after' })
    expect((await server.admin.get('/emails')).body.data).toMatchObject([
      { subject: 'Gone: 40 seats of Ada', html: '<p>$12.00</p>', to: ['admin@example.com'], lead_id: null },
    ])
    expect((await runs(written))[0]).toMatchObject({
      state: 'failed',
      actions: [{ state: 'failed', error: 'The lead has been deleted.' }],
    })
  })

  it('that is taken back counts as a creation where the workflow says so', async () => {
    const id = await workflow({ event: 'lead.create.after', run_on_restore: true })
    const lead = await given(server.admin).lead()
    await server.admin.delete(`/leads/${lead.id}`)
    await server.admin.post(`/leads/${lead.id}/restore`)
    await server.work()
    expect(await states(id)).toEqual(['succeeded', 'succeeded'])
  })
})
