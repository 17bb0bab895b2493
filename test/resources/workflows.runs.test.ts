// Runs of workflows: the effect of each action, the log of runs and its visibility, and test runs.
import { sql } from 'kysely'
import { beforeEach, describe, expect, it } from 'vitest'
import { createEventDispatcher } from '../../src/jobs/event-consumers.ts'
import { systemContext } from '../../src/kernel/context.ts'
import { type Emitter, Veto } from '../../src/kernel/write/events.ts'
import { runWorkflow } from '../../src/resources/workflows/run.ts'
import { workflowTriggers } from '../../src/resources/workflows/triggers.ts'
import type { Caller } from '../support/app.ts'
import { deleteNamed } from '../support/deleted.ts'
import { isPostgres } from '../support/engine.ts'
import { given, unique } from '../support/given.ts'
import { statementsOf } from '../support/statements.ts'
import { useServer } from '../support/using.ts'
import { addUser } from '../support/viewers.ts'
import { alone, note, path, set, workflowsOn } from '../support/workflows.ts'

let veto: ((name: string) => void) | null = null

const listening = (events: Emitter): void => {
  events.on('*.tag.create.before', (event) => {
    if (veto) veto(event.name)
  })
}

let { workflow, runs, states, tagsOf } = {} as ReturnType<typeof workflowsOn>
const server = useServer(
  {
    extensions: [listening],
    config: { timezone: 'Europe/Berlin', mailDomain: 'crm.example.com' },
  },
  async (server) => {
    await alone(server)
    ;({ workflow, runs, states, tagsOf } = workflowsOn(server))
  },
)
const make = given(server.admin)
beforeEach(() => {
  veto = null
})

/** Returns the runs, without those that were skipped because a workflow does not trigger itself. */
const ownRuns = async (id: number, caller?: Caller) =>
  (await runs(id, caller)).filter(({ reason }: { reason: string | null }) => !reason?.includes('trigger itself'))

/** Defines a workflow, fires its event, and returns its only run. */
async function runOf(changes: Record<string, unknown>, event: () => Promise<unknown>) {
  const id = await workflow(changes)
  await event()
  await server.work()
  const all = await ownRuns(id)
  expect(all).toHaveLength(1)
  return all[0]
}

async function template(subject: string, content = '<p>x</p>'): Promise<number> {
  const { body } = await server.admin.post('/settings/email-templates', { name: `T${unique()}`, subject, content })
  return body.data.id
}
const mails = async () => (await server.admin.get('/emails?sort=id')).body.data

describe('a workflow', () => {
  it('runs once for the change that wins a lead, not for those behind it, by either way to say so', async () => {
    const changed = await workflow({
      event: 'lead.update.after',
      conditions: [{ attribute: 'status', operator: 'changed_to', value: 2 }],
    })
    const bare: number[] = []
    for (const event of ['lead.won', 'lead.lost', 'lead.reopened']) bare.push(await workflow({ event }))
    const lead = await make.lead({ lead_pipeline_stage_id: 1 })
    const put = (body: object) => server.admin.put(`/leads/${lead.id}`, body)
    const counts = async () => {
      await server.work()
      const all = await Promise.all([changed, ...bare].map((id) => ownRuns(id)))
      return all.map((each) => each.filter(({ state }: { state: string }) => state === 'succeeded').length)
    }
    await put({ title: 'Open' })
    expect(await counts()).toEqual([0, 0, 0, 0])
    server.events()
    await put({ lead_pipeline_stage_id: 5 })
    expect(server.events()).toEqual(['lead.update.before', 'lead.update.after', 'lead.won'])
    await put({ title: 'Won' })
    expect(await counts()).toEqual([1, 1, 0, 0])
    await server.admin.put(`/leads/${lead.id}/stage`, { lead_pipeline_stage_id: 6 })
    await server.admin.post('/leads/mass-update', { ids: [lead.id], value: 1 })
    expect(await counts()).toEqual([1, 1, 1, 1])
    const feed = (await server.admin.get('/events?entity_type=leads&per_page=100')).body.data
    const won = feed.find(({ name }: { name: string }) => name === 'lead.won')
    expect([won.before.status, won.after.status, won.changed.includes('status')]).toEqual([1, 2, true])
  })

  it('runs for a lead that is won or lost from its creation', async () => {
    const ids = [await workflow({ event: 'lead.won' }), await workflow({ event: 'lead.lost' })]
    server.events()
    const lead = await make.lead({ lead_pipeline_stage_id: 5 })
    expect(server.events()).toEqual(['lead.create.before', 'lead.create.after', 'lead.won'])
    await make.lead({ lead_pipeline_stage_id: 6 })
    await make.lead()
    await server.work()
    const all = await Promise.all(ids.map((id) => ownRuns(id)))
    expect(all.map((each) => each.length)).toEqual([1, 1])
    const feed = (await server.admin.get(`/events?entity_type=leads&entity_id=${lead.id}`)).body.data
    const won = feed.find(({ name }: { name: string }) => name === 'lead.won')
    expect([won.before, won.after.status, won.changed.includes('status')]).toEqual([null, 2, true])
  })

  it('passes over a record that comes back, unless it is to run for that', async () => {
    const event = 'lead.create.after'
    const [plain, opting] = [await workflow({ event }), await workflow({ event, run_on_restore: true })]
    const { id } = await make.lead()
    await server.admin.delete(`/leads/${id}`)
    await server.work()
    server.events()
    expect((await server.admin.post(`/leads/${id}/restore`)).status).toBe(200)
    expect(server.events()).toEqual(['lead.create.before', 'lead.create.after', 'lead.restore'])
    await server.work()
    expect([(await ownRuns(plain)).length, (await ownRuns(opting)).length]).toEqual([1, 2])
    expect((await server.admin.get(`${path}/${opting}`)).body.data.run_on_restore).toBe(true)
  })
})

describe('updates', () => {
  it('set an owner, or another value, only where there is none, if they say so', async () => {
    const [ina, tom] = [await addUser(server, 'Ina'), await addUser(server, 'Tom')]
    const actions = [set('user_id', tom.id), set('description', 'Theirs')].map((each) => ({
      ...each,
      only_if_empty: true,
    }))
    const id = await workflow({ event: 'lead.create.after', actions })
    expect((await server.admin.get(`${path}/${id}`)).body.data.actions[0]).toMatchObject({ only_if_empty: true })
    const [none, hers] = [
      await make.lead({ user_id: null, description: null }),
      await make.lead({ user_id: ina.id, description: 'Mine' }),
    ]
    await server.work()
    expect(await states(id)).toEqual(['succeeded', 'succeeded'])
    const stored = async (lead: number) => (await server.admin.get(`/leads/${lead}`)).body.data
    expect(await stored(none.id)).toMatchObject({ user_id: tom.id, description: 'Theirs' })
    expect(await stored(hers.id)).toMatchObject({ user_id: ina.id, description: 'Mine' })
    const wrong = await server.admin.put(`${path}/${id}`, { actions: [{ ...note, only_if_empty: true }] })
    expect(wrong.body.errors).toHaveProperty(['actions.0.only_if_empty'])
  })

  it('set attributes of a lead, built-in ones and own ones, sent as the API takes them', async () => {
    await server.admin.post('/settings/attributes', {
      code: 'seats',
      name: 'Seats',
      type: 'price',
      entity_type: 'leads',
    })
    const lead = await make.lead({ title: 'x' })
    const run = await runOf(
      {
        actions: [
          set('lead_value', '12.50'),
          set('expected_close_date', '2026-05-01 10:00'),
          set('seats', '7'),
          set('description', null),
          set('lead_pipeline_stage_id', 3),
        ],
      },
      () => server.admin.put(`/leads/${lead.id}`, { title: 'y' }),
    )
    expect(run).toMatchObject({ state: 'succeeded', actions: Array(5).fill({ result: { lead_id: lead.id } }) })
    expect((await server.admin.get(`/leads/${lead.id}`)).body.data).toMatchObject({
      lead_value: 12.5,
      expected_close_date: '2026-05-01',
      description: null,
      lead_pipeline_stage_id: 3,
      custom_attributes: { seats: 7 },
    })
  })

  it('reach the person of a lead, and say so where there is none', async () => {
    const person = await make.person({ name: 'Ada' })
    const lead = await make.lead({ person_id: person.id })
    const actions = [set('job_title', 'Customer', 'update_person')]
    const run = await runOf({ actions }, () => server.admin.put(`/leads/${lead.id}`, { title: 'y' }))
    expect(run).toMatchObject({ state: 'succeeded', actions: [{ result: { person_id: person.id } }] })
    expect((await server.admin.get(`/contacts/persons/${person.id}`)).body.data.job_title).toBe('Customer')
    const alone = await make.lead({ person_id: null })
    const failed = await runOf({ actions }, () => server.admin.put(`/leads/${alone.id}`, { title: 'y' }))
    expect(failed).toMatchObject({ state: 'failed', actions: [{ error: 'The lead has no person.' }] })
  })

  it('reach every lead of a person, of an activity and of a quote, and no other', async () => {
    const person = await make.person()
    const [a, b, other] = [
      await make.lead({ person_id: person.id }),
      await make.lead({ person_id: person.id }),
      await make.lead(),
    ]
    const quote = await make.quote({ person_id: person.id, lead_id: b.id })
    const titles = async () =>
      (await server.admin.get('/leads?sort=id&fields=title')).body.data.map(({ title }: { title: string }) => title)
    const to = (title: string) => [set('title', title, 'update_related_leads')]

    const ofPerson = await runOf(
      { entity_type: 'persons', event: 'contacts.person.update.after', actions: to('person') },
      () => server.admin.put(`/contacts/persons/${person.id}`, { name: 'B' }),
    )
    expect(ofPerson.actions[0].result).toEqual({ lead_ids: [a.id, b.id] })
    expect(await titles()).toEqual(['person', 'person', other.title])

    await runOf({ entity_type: 'activities', event: 'activity.create.after', actions: to('activity') }, () =>
      make.activity({ type: 'note', comment: 'x', lead_ids: [a.id, other.id] }),
    )
    expect(await titles()).toEqual(['activity', 'person', 'activity'])

    const ofQuote = await runOf(
      {
        entity_type: 'quotes',
        event: 'quote.update.after',
        actions: [...to('quote'), set('description', 'Q', 'update_quote')],
      },
      () => server.admin.put(`/quotes/${quote.id}`, { subject: 'S' }),
    )
    expect(ofQuote.actions.map(({ result }: { result: object }) => result)).toEqual([
      { lead_ids: [b.id] },
      { quote_id: quote.id },
    ])
    expect(await titles()).toEqual(['activity', 'quote', 'activity'])
  })

  it('that the record cannot take fail with the findings, and change nothing', async () => {
    const source = await make.source()
    const id = await workflow({ actions: [set('title', 'gone'), set('lead_source_id', source.id)] })
    const lead = await make.lead({ title: 'x' })
    await server.admin.put(`/leads/${lead.id}`, { lead_value: 1 })
    await deleteNamed(server, `/sources/${source.id}`)
    await server.work()
    expect((await runs(id))[0]).toMatchObject({
      state: 'failed',
      actions: [
        { state: 'succeeded' },
        { state: 'failed', error: `lead_source_id: No source has id ${source.id}.`, result: null },
      ],
    })
    expect((await server.admin.get(`/leads/${lead.id}`)).body.data.lead_source_id).not.toBe(source.id)
  })
})

describe('tags and notes', () => {
  it('are added to persons and quotes as well; a tag that is there is not made twice', async () => {
    const tag = await make.tag({ name: 'VIP' })
    const person = await make.person({ name: 'Ada' })
    const quote = await make.quote({ person_id: person.id, subject: 'Offer' })
    const actions = (value: string) => [
      { id: 'add_tag', value: ' vip ' },
      { id: 'add_note_as_activity', value },
    ]
    const ofPerson = await runOf(
      { entity_type: 'persons', event: 'contacts.person.update.after', actions: actions('Met {%persons.name%}') },
      () => server.admin.put(`/contacts/persons/${person.id}`, { job_title: 'x' }),
    )
    const ofQuote = await runOf(
      { entity_type: 'quotes', event: 'quote.update.after', actions: actions('Sent {%quotes.subject%}') },
      () => server.admin.put(`/quotes/${quote.id}`, { description: 'x' }),
    )
    for (const run of [ofPerson, ofQuote])
      expect(run).toMatchObject({ state: 'succeeded', actions: [{ result: { tag_id: tag.id } }, {}] })
    expect((await server.admin.get('/tags')).body.data).toHaveLength(1)
    const notes = (await server.admin.get('/activities?sort=id')).body.data
    expect(notes).toMatchObject([
      { comment: 'Met Ada', person_ids: [person.id], user_id: 1, is_done: true },
      { comment: 'Sent Offer', quote_ids: [quote.id] },
    ])
  })

  it('have no owner when that of the record has left', async () => {
    const owner = await make.user({ is_active: true })
    const lead = await make.lead({ user_id: owner.id })
    await server.admin.put(`/settings/users/${owner.id}`, { is_active: false })
    const run = await runOf({ actions: [note] }, () => server.admin.put(`/leads/${lead.id}`, { title: 'y' }))
    expect(run.state).toBe('succeeded')
    expect((await server.admin.get('/activities')).body.data).toMatchObject([{ user_id: null }])
  })
})

describe('mails', () => {
  it('to a person go to all its addresses, about the lead and the person, cleaned as every mail', async () => {
    const emails = [{ value: 'ada@example.com' }, { value: 'ada@home.example' }]
    const person = await make.person({ name: 'A<b>', emails })
    const lead = await make.lead({ title: 'Two\nlines', person_id: person.id })
    const value = await template('Re {%leads.title%}', '<p onclick="x()">Dear {%persons.name%}<script>1</script></p>')
    const run = await runOf({ actions: [{ id: 'send_email_to_person', value }] }, () =>
      server.admin.put(`/leads/${lead.id}`, { lead_value: 3 }),
    )
    const [mail, ...more] = await mails()
    expect(more).toEqual([])
    expect(run).toMatchObject({ state: 'succeeded', actions: [{ result: { email_ids: [mail.id] } }] })
    expect(mail).toMatchObject({
      html: '<p>Dear A&lt;b&gt;</p>',
      to: ['ada@example.com', 'ada@home.example'],
      person_id: person.id,
      lead_id: lead.id,
      attachments: [],
    })
  })

  it('about an activity go to each participant with an invitation', async () => {
    const person = await make.person({ name: 'Ada', emails: [{ value: 'ada@example.com' }] })
    const lead = await make.lead()
    const value = await template('{%activities.title%} at {%activities.schedule_from%}')
    const actions = [
      { id: 'send_email_to_participants', value },
      { id: 'send_email_to_sales_owner', value },
    ]
    const run = await runOf({ entity_type: 'activities', event: 'activity.create.after', actions }, () =>
      make.activity({
        type: 'meeting',
        title: 'Kick-off',
        schedule_from: '2026-07-01T09:00:00Z',
        schedule_to: '2026-07-01T10:00:00Z',
        participants: { users: [1], persons: [person.id] },
        lead_ids: [lead.id],
      }),
    )
    expect(run).toMatchObject({ state: 'succeeded' })
    const sent = await mails()
    expect(sent.map(({ to }: { to: string[] }) => to)).toEqual([
      ['admin@example.com'],
      ['ada@example.com'],
      ['admin@example.com'],
    ])
    expect(sent[1]).toMatchObject({
      subject: 'Kick-off at July 1, 2026 at 11:00 AM GMT+2',
      person_id: person.id,
      lead_id: lead.id,
    })
    for (const { id, attachments } of sent) {
      expect(attachments).toMatchObject([{ name: 'invite.ics', content_type: 'text/calendar' }])
      const { text } = await server.admin.get(`/emails/${id}/attachments/${attachments[0].id}/download`)
      const lines = text.replaceAll('\r\n ', '').split('\r\n')
      expect(lines).toContain(`UID:activity-${run.entity_id}@crm.example.com`)
      expect(lines).toContain('SEQUENCE:1')
      expect(lines).toContain('DTSTART:20260701T090000Z')
      expect(lines.filter((line) => line.startsWith('ATTENDEE'))).toHaveLength(2)
      expect(lines.filter((line) => line === 'BEGIN:VEVENT')).toHaveLength(1)
    }
  })

  it('about a deleted activity cancel the meeting', async () => {
    const owner = await make.user({ is_active: true })
    const meeting = await make.activity({
      type: 'meeting',
      title: 'Kick-off',
      schedule_from: '2026-07-01T09:00:00Z',
      schedule_to: '2026-07-01T10:00:00Z',
      participants: { users: [1, owner.id] },
    })
    await server.admin.put(`/settings/users/${owner.id}`, { is_active: false })
    const actions = [{ id: 'send_email_to_participants', value: await template('Off: {%activities.title%}') }]
    const run = await runOf({ entity_type: 'activities', event: 'activity.delete.before', actions }, () =>
      server.admin.delete(`/activities/${meeting.id}`),
    )
    expect(run.state).toBe('succeeded')
    // An inactive user gets no mail.
    const sent = await mails()
    expect(sent).toMatchObject([{ subject: 'Off: Kick-off', to: ['admin@example.com'] }])
    const { text } = await server.admin.get(`/emails/${sent[0].id}/attachments/${sent[0].attachments[0].id}/download`)
    for (const line of ['METHOD:CANCEL', 'STATUS:CANCELLED', 'SEQUENCE:2']) expect(text.split('\r\n')).toContain(line)
  })

  it.each([
    ['a person without one', 'send_email_to_person', { person_id: null }, 'The lead has no person.'],
    ['no owner', 'send_email_to_sales_owner', { user_id: null }, 'The lead has no owner.'],
  ])('to %s are not sent, and the log says why', async (_whom, id, about, error) => {
    const lead = await make.lead(about)
    const run = await runOf({ actions: [{ id, value: await template('x') }] }, () =>
      server.admin.put(`/leads/${lead.id}`, { title: 'y' }),
    )
    expect(run).toMatchObject({ state: 'failed', actions: [{ state: 'failed', error }] })
    expect(await mails()).toEqual([])
  })

  it('are not sent to an inactive owner, nor without participants, and the latter succeeds', async () => {
    const owner = await make.user({ is_active: true })
    const lead = await make.lead({ user_id: owner.id })
    await server.admin.put(`/settings/users/${owner.id}`, { is_active: false })
    const left = await runOf({ actions: [{ id: 'send_email_to_sales_owner', value: await template('x') }] }, () =>
      server.admin.put(`/leads/${lead.id}`, { title: 'y' }),
    )
    expect(left.actions[0].error).toBe('The owner of the lead is not active.')
    const actions = [{ id: 'send_email_to_participants', value: 1 }]
    const alone = await runOf({ entity_type: 'activities', event: 'activity.create.after', actions }, () =>
      make.activity({ type: 'note', comment: 'x' }),
    )
    expect(alone).toMatchObject({ state: 'succeeded', actions: [{ result: { email_ids: [] } }] })
    expect(await mails()).toEqual([])
  })
})

describe('a run', () => {
  it.runIf(!isPostgres)('that fails again and again for a reason of the server is given up, and says so', async () => {
    const id = await workflow({ actions: [{ id: 'add_tag', value: 'Never' }, note] })
    const lead = await given(server.admin).lead()
    await server.admin.put(`/leads/${lead.id}`, { lead_value: 1 })
    await sql`create trigger cut before insert on lead_tags begin select raise(abort, 'the disk is on fire'); end`.execute(
      server.store.db,
    )
    for (let attempt = 0; attempt < 6; attempt++) {
      await server.work()
      server.clock.advanceMs(2 * 3_600_000)
    }
    const [run] = await runs(id)
    expect(run).toMatchObject({ state: 'failed', actions: [{ state: 'failed' }, { state: 'not_run' }] })
    expect(JSON.stringify(run)).not.toContain('fire')
  })

  it('that a listener refuses fails with the reason, leaves the rest undone and others alone', async () => {
    veto = () => {
      throw new Veto('No tags today.')
    }
    const id = await workflow({ actions: [note, { id: 'add_tag', value: 'Tagged' }, set('title', 'never')] })
    const next = await workflow({ actions: [set('title', 'after all')] })
    const lead = await given(server.admin).lead({ title: 'here' })
    await server.admin.put(`/leads/${lead.id}`, { lead_value: 1 })
    await server.work()
    const error = 'No tags today.'
    expect((await runs(id))[0]).toMatchObject({
      state: 'failed',
      reason: `Action 2 failed: ${error}`,
      actions: [
        { state: 'succeeded' },
        { state: 'failed', error, result: null },
        { state: 'not_run', error: null, result: null },
      ],
    })
    expect((await runs(next))[0]).toMatchObject({ state: 'succeeded' })
    expect((await server.admin.get(`/leads/${lead.id}`)).body.data.title).toBe('after all')
  })

  it.each([
    ['tag', { attribute: 'tag_ids', operator: '!{}' }],
    ['source', { attribute: 'lead_source_id', operator: '!=' }],
    ['user', { attribute: 'user_id', operator: '!=' }],
  ] as const)(
    'fails when a condition excludes a %s that has been deleted, and never takes every record',
    async (what, condition) => {
      const path = { tag: '/tags', source: '/sources', user: '/settings/users' }[what]
      const sent = { name: `Gone ${unique()}`, ...(what === 'tag' && { color: '#112233' }) }
      const gone =
        what === 'user'
          ? (await addUser(server, `U${unique()}`)).id
          : (await server.admin.post(path, sent)).body.data.id
      const value = what === 'tag' ? [gone] : gone
      const id = await workflow({ conditions: [{ ...condition, value }] })
      const lead = await make.lead()
      expect((await deleteNamed(server, `${path}/${gone}`)).status).toBe(200)
      await server.admin.put(`/leads/${lead.id}`, { lead_value: 3 })
      await server.work()
      expect((await runs(id))[0]).toMatchObject({
        state: 'failed',
        reason: `A condition on ${condition.attribute} excludes ${gone}, which was deleted.`,
      })
    },
  )

  it('fails when a condition is about an attribute that has been deleted since', async () => {
    const attribute = await server.admin.post('/settings/attributes', {
      code: 'hue',
      name: 'Hue',
      type: 'text',
      entity_type: 'leads',
    })
    const id = await workflow({ conditions: [{ attribute: 'hue', operator: '==', value: 'red' }] })
    const lead = await given(server.admin).lead({ custom_attributes: { hue: 'red' } })
    await server.admin.put(`/leads/${lead.id}`, { lead_value: 1 })
    await deleteNamed(server, `/settings/attributes/${attribute.body.data.id}`)
    await server.work()
    expect((await runs(id))[0]).toMatchObject({
      state: 'failed',
      reason: 'The attribute hue of a condition no longer exists.',
      actions: [],
    })
    expect(await tagsOf(lead.id)).toEqual([])
  })

  it('sees the record as the event left it, and the day on which it happened', async () => {
    const id = await workflow({
      event: 'lead.create.after',
      conditions: [
        { attribute: 'title', operator: '==', value: 'early' },
        { attribute: 'expected_close_date', operator: '==', value: '{{today+1}}' },
      ],
    })
    const lead = await given(server.admin).lead({ title: 'early', expected_close_date: '2026-03-02' })
    await server.admin.put(`/leads/${lead.id}`, { title: 'late' })
    server.clock.advanceMs(3 * 86_400_000)
    await server.work()
    expect((await runs(id))[0]).toMatchObject({ state: 'succeeded' })
    expect(await tagsOf(lead.id)).toEqual(['Seen'])
  })

  it('is not made for a workflow that is switched off, or that was defined later', async () => {
    const off = await workflow({ is_active: false })
    const lead = await given(server.admin).lead()
    await server.admin.put(`/leads/${lead.id}`, { lead_value: 1 })
    server.clock.advanceMs(1000)
    const later = await workflow({})
    const pending = await workflow({ event: 'lead.create.after' })
    await given(server.admin).lead()
    await server.work()
    expect([await runs(off), await runs(later)]).toEqual([[], []])
    expect(await runs(pending)).toHaveLength(1)
  })

  it('is not made for what happened while its workflow was off, or waited for another event', async () => {
    const [off, other] = [await workflow({}), await workflow({ event: 'lead.delete.before', actions: [note] })]
    const lead = await make.lead()
    await server.admin.put(`${path}/${off}`, { is_active: false })
    await server.admin.put(`/leads/${lead.id}`, { lead_value: 1 })
    // All events have the same time. Only their order in the log matters.
    await server.admin.put(`${path}/${off}`, { is_active: true })
    await server.admin.put(`${path}/${other}`, { event: 'lead.update.after' })
    const later = await workflow({})
    await server.work()
    expect([await runs(off), await runs(other), await runs(later)]).toEqual([[], [], []])
    await server.admin.put(`/leads/${lead.id}`, { lead_value: 2 })
    await server.admin.put(`${path}/${off}`, { name: 'Renamed', is_active: true })
    await server.work()
    for (const id of [off, other, later]) expect((await ownRuns(id))[0]).toMatchObject({ state: 'succeeded' })
  })

  it('is left to the next worker when its own stops', async () => {
    const id = await workflow({ actions: [note] })
    const lead = await make.lead()
    await server.admin.put(`/leads/${lead.id}`, { lead_value: 1 })
    const { services } = server.app
    await createEventDispatcher(services, [workflowTriggers]).dispatch()
    const [{ id: run_id }] = await runs(id)
    const job = { id: 1, attempt: 1, isLast: false, signal: AbortSignal.abort() }
    expect(await runWorkflow.run(systemContext(services, 'api'), { run_id }, job as never)).toMatchObject({
      runAgainAt: expect.any(Date),
    })
    expect((await runs(id))[0].actions).toMatchObject([{ state: 'pending' }])
    await server.work()
    expect((await runs(id))[0].actions).toMatchObject([{ state: 'succeeded' }])
  })

  it('is left out when its workflow was switched off or given another event meanwhile', async () => {
    const [off, other] = [await workflow({}), await workflow({ actions: [set('title', 'never')] })]
    const person = await make.person({ name: 'Ada' })
    const lead = await make.lead({ title: 'x' })
    await server.admin.put(`/leads/${lead.id}`, { lead_value: 1 })
    await server.work()
    await server.admin.put(`/contacts/persons/${person.id}`, { job_title: 'x' })
    await server.admin.put(`/leads/${lead.id}`, { title: 'y', lead_value: 2 })
    await createEventDispatcher(server.app.services, [workflowTriggers]).dispatch()
    await server.admin.put(`${path}/${off}`, { is_active: false })
    await server.admin.put(`${path}/${other}`, {
      entity_type: 'persons',
      event: 'contacts.person.update.after',
      actions: [set('name', 'B', 'update_person')],
    })
    await server.work()
    expect((await runs(off)).at(-1)).toMatchObject({
      state: 'skipped',
      reason: 'The workflow was switched off before it processed this event.',
    })
    expect((await runs(other)).at(-1)).toMatchObject({
      state: 'skipped',
      reason: 'The event of the workflow was changed before it processed this event.',
    })
    expect((await server.admin.get(`/contacts/persons/${person.id}`)).body.data.name).toBe('Ada')
  })

  it('runs in the order of the workflows', async () => {
    const last = await workflow({ actions: [{ ...note, value: 'last' }], sort_order: 20 })
    const first = await workflow({ actions: [{ ...note, value: 'first' }], sort_order: 10 })
    const lead = await given(server.admin).lead()
    await server.admin.put(`/leads/${lead.id}`, { lead_value: 1 })
    await server.work()
    const notes = (await server.admin.get(`/activities?lead_id=${lead.id}&sort=id`)).body.data
    expect(notes.map(({ comment }: { comment: string }) => comment)).toEqual(['first', 'last'])
    expect((await runs(first))[0].id).toBeLessThan((await runs(last))[0].id)
  })
})

describe('conditions on tags', () => {
  it('see those that were linked in the same request', async () => {
    const tag = await make.tag()
    const conditions = [{ attribute: 'tag_ids', operator: '{}', value: [tag.id] }]
    const id = await workflow({ event: 'lead.create.after', conditions, actions: [note] })
    const other = await workflow({ conditions: [{ ...conditions[0], operator: '!{}' }], actions: [note] })
    const lead = await make.lead({ tag_ids: [tag.id] })
    await make.lead()
    await server.admin.put(`/leads/${lead.id}`, { title: 'y', tag_ids: [] })
    await server.work()
    expect(await states(id)).toEqual(['succeeded', 'skipped'])
    expect(await states(other)).toEqual(['succeeded'])
  })

  it('see nothing that a later request did, whatever it calls itself', async () => {
    const tag = await make.tag()
    const conditions = [{ attribute: 'tag_ids', operator: '{}', value: [tag.id] }]
    const id = await workflow({ event: 'lead.create.after', conditions, actions: [note] })
    const lead = await make.lead()
    const { request_id } = await server.store.db
      .selectFrom('events')
      .select('request_id')
      .where('name', '=', 'lead.create.after')
      .executeTakeFirstOrThrow()
    const headers = { 'x-request-id': String(request_id) }
    await server.admin.post(`/leads/${lead.id}/tags`, { tag_id: tag.id }, { headers })
    await server.work()
    expect(await states(id)).toEqual(['skipped'])
  })
})

describe('listWorkflowRuns', () => {
  it('shows runs on records the caller sees, or could see when they were deleted', async () => {
    const ina = await addUser(server, 'Ina', { view: 'individual' })
    const id = await workflow({ actions: [note] })
    const [hers, deleted, others, gone] = [
      await make.lead({ user_id: ina.id }),
      await make.lead({ user_id: ina.id }),
      await make.lead({ user_id: 1 }),
      await make.lead({ user_id: 1 }),
    ]
    for (const lead of [hers, deleted, others, gone]) await server.admin.put(`/leads/${lead.id}`, { title: 'y' })
    await server.work()
    for (const lead of [deleted, gone]) await server.admin.delete(`/leads/${lead.id}`)
    const { body } = await ina.get(`${path}/${id}/runs?sort=id`)
    expect(body.data.map(({ entity_id }: { entity_id: number }) => entity_id)).toEqual([hers.id, deleted.id])
    expect(body.meta.total).toBe(2)
    expect(await runs(id)).toHaveLength(4)
  })

  it('names in results only records that the caller sees', async () => {
    const ina = await addUser(server, 'Ina', { view: 'individual' })
    const persons = [await make.person({ user_id: 1 }), await make.person({ user_id: ina.id })]
    const id = await workflow({ actions: [set('job_title', 'x', 'update_person')] })
    const related = await workflow({
      entity_type: 'persons',
      event: 'contacts.person.update.after',
      actions: [set('title', 'y', 'update_related_leads')],
    })
    const leads: number[] = []
    for (const person of persons) leads.push((await make.lead({ user_id: ina.id, person_id: person.id })).id)
    const hidden = await make.lead({ user_id: 1, person_id: persons[1]?.id ?? null })
    for (const lead of leads) await server.admin.put(`/leads/${lead}`, { lead_value: 7 })
    await server.work()
    // On PostgreSQL, runs are executed concurrently.
    const inAnyOrder = (list: unknown[]): string[] => list.map((each) => JSON.stringify(each)).sort()
    const results = async (of: number, caller: Caller) =>
      inAnyOrder((await ownRuns(of, caller)).map(({ actions }: any) => actions[0]?.result))
    const [others, hers] = persons.map((person) => person.id)
    // The second workflow changes the lead, which triggers the first workflow again.
    expect(await results(id, server.admin)).toEqual(
      inAnyOrder([others, hers, hers].map((person_id) => ({ person_id }))),
    )
    expect(await results(id, ina)).toEqual(inAnyOrder([{ person_id: others }, { person_id: hers }]))
    expect(await results(related, server.admin)).toEqual(
      inAnyOrder([{ lead_ids: [leads[0]] }, { lead_ids: [leads[1], hidden.id] }]),
    )
    expect(await results(related, ina)).toEqual(inAnyOrder([{ lead_ids: [leads[0]] }, { lead_ids: [leads[1]] }]))
    const seller = await addUser(server, 'Leads only', {
      permissions: ['settings', 'settings.automation', 'settings.automation.workflows', 'leads'],
    })
    expect(await results(id, seller)).toEqual(inAnyOrder([null, null, null].map((person_id) => ({ person_id }))))
    const statements = async (query: string) => (await statementsOf(() => runs(id, server.admin, query))).length
    await statements('')
    expect(await statements('&per_page=2')).toBe(await statements('&per_page=1'))
  })

  it('shows none to who may not view such records, and is not there for who may not see workflows', async () => {
    const id = await workflow({ actions: [note] })
    const lead = await make.lead()
    await server.admin.put(`/leads/${lead.id}`, { title: 'y' })
    await server.work()
    const settler = await addUser(server, 'Settler', {
      permissions: ['settings', 'settings.automation', 'settings.automation.workflows'],
    })
    expect((await settler.get(`${path}/${id}/runs`)).body).toMatchObject({ data: [], meta: { total: 0 } })
    const seller = await addUser(server, 'Seller', { permissions: ['leads'] })
    expect((await seller.get(`${path}/${id}/runs`)).status).toBe(403)
    expect((await server.admin.get(`${path}/99/runs`)).status).toBe(404)
  })

  it('go with their workflow', async () => {
    const id = await workflow({ actions: [note] })
    const lead = await make.lead()
    await server.admin.put(`/leads/${lead.id}`, { title: 'y' })
    await server.admin.delete(`${path}/${id}`)
    await server.work()
    expect((await server.admin.get(`${path}/${id}/runs`)).status).toBe(404)
    expect((await server.admin.get('/activities')).body.data).toEqual([])
  })
})

describe('testWorkflow', () => {
  it('says which conditions hold now and what the actions would do, and does nothing', async () => {
    const conditions = [
      { attribute: 'lead_value', operator: '>', value: 5 },
      { attribute: 'title', operator: '{}', value: 'none' },
    ]
    const person = await make.person({ name: 'Ada' })
    const value = await template('Hello')
    const { name } = (await server.admin.get(`/settings/email-templates/${value}`)).body.data
    const id = await workflow({
      condition_type: 'or',
      conditions,
      actions: [
        set('lead_source_id', 2),
        set('description', null),
        { id: 'send_email_to_person', value },
        { id: 'add_tag', value: 'Big win' },
        note,
        set('job_title', 'x', 'update_person'),
      ],
    })
    const [lead, alone] = [
      await make.lead({ title: 'Seats', lead_value: 6, person_id: person.id }),
      await make.lead({ lead_value: 1, person_id: null }),
    ]
    const source = (await server.admin.get('/sources/2')).body.data.name
    await server.work()
    server.events()
    const { status, body } = await server.admin.post(`${path}/${id}/test`, { entity_id: lead.id })
    expect([status, body.data]).toEqual([
      200,
      {
        matches: true,
        reason: null,
        matched_conditions: conditions.slice(0, 1),
        failed_conditions: conditions.slice(1),
        actions: [
          { id: 'update_lead', would: `Set Source of the lead to ${source}.` },
          { id: 'update_lead', would: 'Clear Description of the lead.' },
          { id: 'send_email_to_person', would: `Queue an e-mail from the template ${name} to Ada.` },
          { id: 'add_tag', would: 'Attach the tag Big win.' },
          { id: 'add_note_as_activity', would: 'Add the note: Looked at Seats.' },
          { id: 'update_person', would: 'Set Job Title of the person to x.' },
        ],
      },
    ])
    const other = (await server.admin.post(`${path}/${id}/test`, { entity_id: alone.id })).body.data
    expect(other).toMatchObject({ matches: false, reason: 'The record does not meet the conditions.' })
    expect(other.actions[2].would).toBe('Fail: The lead has no person.')
    await server.work()
    expect([server.events(), await runs(id), await mails(), await tagsOf(lead.id)]).toEqual([[], [], [], []])
  })

  it('knows that what is deleted takes nothing any more', async () => {
    const id = await workflow({ event: 'lead.delete.before', actions: [set('title', 'x'), note] })
    const { body } = await server.admin.post(`${path}/${id}/test`, { entity_id: (await make.lead()).id })
    const would = 'Fail: The lead has been deleted.'
    expect(body.data).toMatchObject({ matches: true, actions: [{ would }, { would }] })
  })

  it('knows no record that the caller does not see, or that is not there', async () => {
    const ina = await addUser(server, 'Ina', { view: 'individual' })
    const id = await workflow({})
    const lead = await make.lead({ user_id: 1 })
    for (const entity_id of [lead.id, 99]) {
      const { status, body } = await ina.post(`${path}/${id}/test`, { entity_id })
      expect([status, body.errors]).toEqual([422, { entity_id: [`No lead has id ${entity_id}.`] }])
    }
  })
})
