// Workflows end to end: a won lead over 5,000 is tagged, gets a note, and causes an e-mail and a
// webhook, once for each event. Loops are prevented, and the log of runs gives the reasons.
import { describe, expect, it } from 'vitest'
import { given } from '../support/given.ts'
import { startReceiver } from '../support/receiver.ts'
import { startSmtp } from '../support/smtp.ts'
import { useOne, useServer } from '../support/using.ts'
import { alone, note, set, workflowsOn } from '../support/workflows.ts'

const won = 5

const receiver = useOne(startReceiver)
const smtp = useOne(startSmtp)
const server = useServer(
  () => ({ config: { webhookAllowHttp: true, webhookAllowCidrs: ['127.0.0.1/32'], smtpUrl: smtp.url } }),
  alone,
)
const { workflow, runs, states, tagsOf } = workflowsOn(server)

describe('a lead won over 5,000', () => {
  it('is tagged and noted, its owner is written to and the other system told, once, and the log says why', async () => {
    const make = given(server.admin)
    const owner = await make.user({ name: 'Ina', email: 'ina@example.com', is_active: true })
    const about = { name: 'Warehouse', url: `${receiver.url}/won` }
    const webhook = await server.admin.post('/settings/webhooks', about)
    const template = await server.admin.post('/settings/email-templates', {
      name: 'Won',
      subject: 'Won: {%leads.title%}',
      content: '<p>{%leads.lead_value%} from {%persons.name%}, {%users.name%}!</p>',
    })
    const conditions = [
      { attribute: 'status', operator: '==', value: 2 },
      { attribute: 'lead_value', operator: '>', value: 5000 },
    ]
    const id = await workflow({
      conditions,
      actions: [
        { id: 'add_tag', value: 'Big win' },
        { id: 'add_note_as_activity', value: '{%leads.title%} is ours.' },
        { id: 'send_email_to_sales_owner', value: template.body.data.id },
        { id: 'trigger_webhook', value: webhook.body.data.id },
      ],
    })
    const person = await make.person({ name: 'Ada' })
    const open = { lead_pipeline_stage_id: 1, user_id: owner.id, person_id: person.id }
    const big = await make.lead({ ...open, title: '40 seats', lead_value: 5000.5 })
    const small = await make.lead({ ...open, title: 'One seat', lead_value: 5000 })
    server.events()

    await server.admin.put(`/leads/${big.id}/stage`, { lead_pipeline_stage_id: won })
    await server.admin.put(`/leads/${small.id}/stage`, { lead_pipeline_stage_id: won })
    expect(server.events().filter((name) => name.endsWith('.after'))).toEqual([
      'lead.update.after',
      'lead.update.after',
    ])
    await server.work()
    await server.work()

    const [run, other, ...more] = await runs(id)
    expect(more).toEqual([])
    expect(run).toMatchObject({
      entity_type: 'leads',
      entity_id: big.id,
      event: 'lead.update.after',
      state: 'succeeded',
      reason: null,
      matched_conditions: conditions,
      actions: [
        { id: 'add_tag', state: 'succeeded', error: null },
        { id: 'add_note_as_activity', state: 'succeeded', error: null },
        { id: 'send_email_to_sales_owner', state: 'succeeded', error: null },
        { id: 'trigger_webhook', state: 'succeeded', error: null, result: { delivery_id: expect.any(Number) } },
      ],
    })
    expect(other).toMatchObject({
      entity_id: small.id,
      state: 'skipped',
      reason: 'The record does not meet the conditions.',
      matched_conditions: conditions.slice(0, 1),
      actions: [],
    })
    expect([await tagsOf(big.id), await tagsOf(small.id)]).toEqual([['Big win'], []])
    const notes = (await server.admin.get(`/activities?lead_id=${big.id}`)).body.data
    expect(notes).toMatchObject([{ type: 'note', comment: '40 seats is ours.', is_done: true, user_id: owner.id }])
    const mails = (await server.admin.get(`/emails?lead_id=${big.id}`)).body.data
    const html = '<p>$5,000.50 from Ada, Ina!</p>'
    expect(mails).toMatchObject([{ subject: 'Won: 40 seats', html, status: 'sent', user_id: null }])
    expect(smtp.received.map(({ to }) => to)).toEqual([['ina@example.com']])
    expect(await runs(id, server.admin, `&event_id=${run.event_id}`)).toHaveLength(1)
    expect(await runs(id, server.admin, '&state=skipped')).toHaveLength(1)

    expect(receiver.received.map(({ path: at, body }) => [at, JSON.parse(body).data.after.title])).toEqual([
      ['/won', '40 seats'],
    ])

    const events = server.seen.filter(({ origin }) => origin === 'workflow')
    expect(events.every(({ actor }) => actor.type === 'system')).toBe(true)
    const history = (await server.admin.get(`/leads/${big.id}/history`)).body.data
    expect(history[0]).toMatchObject({ name: 'leads.tag.create.after', origin: 'workflow', actor: { type: 'system' } })
    const { name } = (await server.admin.get(`/settings/workflows/${id}`)).body.data
    expect(history.map((entry: { workflow: unknown }) => entry.workflow)).toContainEqual({ id, name })
    expect(history.at(-1).workflow).toBeNull()
    await server.admin.delete(`/settings/workflows/${id}`)
    expect((await server.admin.get(`/leads/${big.id}/history`)).body.data[0].workflow).toBeNull()
  })
})

describe('workflows that set each other off', () => {
  it('do not run twice on the same record in one chain', async () => {
    const a = await workflow({
      conditions: [{ attribute: 'title', operator: '!{}', value: 'A' }],
      actions: [set('title', 'A')],
    })
    const b = await workflow({
      conditions: [{ attribute: 'title', operator: '==', value: 'A' }],
      actions: [set('title', 'B')],
    })
    const lead = await given(server.admin).lead({ title: 'x' })
    await server.admin.put(`/leads/${lead.id}`, { lead_value: 7 })
    await server.work()
    // The first workflow changes x to A, the second A to B. No third change follows.
    expect((await server.admin.get(`/leads/${lead.id}`)).body.data.title).toBe('B')
    const [first, ...circles] = await runs(a)
    expect(first).toMatchObject({ state: 'succeeded' })
    const reason = `The workflow would trigger itself: its run ${first.id} on this record caused this event.`
    expect(circles).toMatchObject([
      { state: 'skipped', reason },
      { state: 'skipped', reason },
    ])
    expect(await states(b)).toEqual(['skipped', 'succeeded', 'skipped'])
    // The next change by a user begins a new chain.
    await server.admin.put(`/leads/${lead.id}`, { title: 'y' })
    await server.work()
    expect((await runs(a)).filter(({ state }: { state: string }) => state === 'succeeded')).toHaveLength(2)
  })

  it('come to an end over records of several kinds', async () => {
    await workflow({ actions: [note] })
    const actions = [set('title', 'noted', 'update_related_leads')]
    const ofNotes = await workflow({ entity_type: 'activities', event: 'activity.create.after', actions })
    const lead = await given(server.admin).lead({ title: 'x' })
    await server.admin.put(`/leads/${lead.id}`, { lead_value: 1 })
    await server.work()
    expect((await server.admin.get('/activities')).body.data).toHaveLength(1)
    expect(await states(ofNotes)).toEqual(['succeeded'])
    expect((await server.admin.get(`/leads/${lead.id}`)).body.data.title).toBe('noted')
  })

  it('stop after five', async () => {
    const ids: number[] = []
    for (let n = 0; n < 7; n++)
      ids.push(
        await workflow({
          conditions: [{ attribute: 'lead_value', operator: '==', value: n }],
          actions: [set('lead_value', n + 1)],
        }),
      )
    const lead = await given(server.admin).lead({ lead_value: 9 })
    await server.admin.put(`/leads/${lead.id}`, { lead_value: 0 })
    await server.work()
    expect((await server.admin.get(`/leads/${lead.id}`)).body.data.lead_value).toBe(5)
    expect((await runs(ids[5] as number)).at(-1)).toMatchObject({
      state: 'skipped',
      reason: 'More than 5 workflows would trigger each other.',
    })
  })
})
