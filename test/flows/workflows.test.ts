// What happens by itself when workflows are defined: "a lead was won over 5,000 → tag it, note it, write to the owner, tell the other
// system", once for each event, with a log that says why; and that nothing runs in circles, twice, or half.
import { sql } from 'kysely'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Emitter } from '../../src/kernel/events.ts'
import { startServer, type TestServer } from '../support/app.ts'
import { given } from '../support/given.ts'

const path = '/settings/workflows'
const won = 5
let veto: ((name: string) => void) | null = null

const listening = (events: Emitter): void => {
  events.on('*.tag.create.before', (event) => {
    if (veto) veto(event.name)
  })
}

let server: TestServer
beforeAll(async () => {
  server = await startServer({ extensions: [listening], config: { timezone: 'Europe/Berlin' } })
  // The two that an installation starts with have tests of their own.
  for (const id of [1, 2]) await server.admin.put(`${path}/${id}`, { is_active: false })
  server.keep()
})
beforeEach(async () => {
  veto = null
  await server.rewind()
})
afterAll(() => server.close())

let count = 0
async function workflow(changes: Record<string, unknown>): Promise<number> {
  const { status, body, text } = await server.admin.post(path, {
    name: `Workflow ${++count}`,
    entity_type: 'leads',
    event: 'lead.update.after',
    actions: [{ id: 'add_tag', value: 'Seen' }],
    ...changes,
  })
  if (status !== 201) throw new Error(text)
  return body.data.id
}
const runs = async (id: number, query = '') => (await server.admin.get(`${path}/${id}/runs?sort=id${query}`)).body.data
const tagsOf = async (lead: number) =>
  (await server.admin.get(`/leads/${lead}`)).body.data.tags.map(({ name }: { name: string }) => name)
const set = (attribute: string, value: unknown, id = 'update_lead') => ({ id, attribute, value })
const note = { id: 'add_note_as_activity', value: 'Looked at {%leads.title%}.' }

describe('a lead won over 5,000', () => {
  it('is tagged and noted, its owner is written to and the other system told, once, and the log says why', async () => {
    const make = given(server.admin)
    const owner = await make.user({ name: 'Ina', email: 'ina@example.com', status: true })
    const webhook = await server.admin.post('/settings/webhooks', {
      name: 'Warehouse',
      end_point: 'https://hooks.example.com/x',
    })
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

    const [about, other, ...more] = await runs(id)
    expect(more).toEqual([])
    expect(about).toMatchObject({
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
    expect(mails).toMatchObject([
      {
        subject: 'Won: 40 seats',
        reply: '<p>$5,000.50 from Ada, Ina!</p>',
        reply_to: ['ina@example.com'],
        user_id: null,
      },
    ])
    const { event_id } = about
    expect(await runs(id, `&event_id=${event_id}`)).toHaveLength(1)
    expect(await runs(id, '&state=skipped')).toHaveLength(1)

    const events = server.seen.filter(({ origin }) => origin === 'workflow')
    expect(events.every(({ actor }) => actor.type === 'system')).toBe(true)
    const history = (await server.admin.get(`/leads/${big.id}/history`)).body.data
    expect(history[0]).toMatchObject({ name: 'leads.tag.create.after', origin: 'workflow', actor: { type: 'system' } })
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
    // x → A by the first, A → B by the second, and no third.
    expect((await server.admin.get(`/leads/${lead.id}`)).body.data.title).toBe('B')
    const [first, ...circles] = await runs(a)
    expect(first).toMatchObject({ state: 'succeeded' })
    const reason = `It would run in a circle: its own run ${first.id} on this record led to this event.`
    expect(circles).toMatchObject([
      { state: 'skipped', reason },
      { state: 'skipped', reason },
    ])
    expect((await runs(b)).map(({ state }: { state: string }) => state)).toEqual(['skipped', 'succeeded', 'skipped'])
    // The next change by a person begins a new chain.
    await server.admin.put(`/leads/${lead.id}`, { title: 'y' })
    await server.work()
    expect((await runs(a)).filter(({ state }: { state: string }) => state === 'succeeded')).toHaveLength(2)
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
      reason: 'More than 5 workflows would follow from each other.',
    })
  })
})

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
    // The tag that the cut off action had made went with it.
    expect((await server.admin.get('/tags')).body.data).toEqual([])
    // What was planned is done, whatever the workflow says by now.
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

  it('that fails again and again for a reason of the server is given up, and says so', async () => {
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
      throw new Error('no tags today')
    }
    const id = await workflow({ actions: [note, { id: 'add_tag', value: 'Tagged' }, set('title', 'never')] })
    const next = await workflow({ actions: [set('title', 'after all')] })
    const lead = await given(server.admin).lead({ title: 'here' })
    await server.admin.put(`/leads/${lead.id}`, { lead_value: 1 })
    await server.work()
    const error = 'A listener failed while it was asked about this change.'
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

  it('fails when a condition is about an attribute that has been deleted since', async () => {
    const attribute = await server.admin.post('/settings/attributes', {
      code: 'colour',
      name: 'Colour',
      type: 'text',
      entity_type: 'leads',
    })
    const id = await workflow({ conditions: [{ attribute: 'colour', operator: '==', value: 'red' }] })
    const lead = await given(server.admin).lead({ custom_attributes: { colour: 'red' } })
    await server.admin.put(`/leads/${lead.id}`, { lead_value: 1 })
    await server.admin.delete(`/settings/attributes/${attribute.body.data.id}`)
    await server.work()
    expect((await runs(id))[0]).toMatchObject({
      state: 'failed',
      reason: 'The attribute colour of a condition is gone.',
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
      { subject: 'Gone: 40 seats of Ada', reply: '<p>$12.00</p>', reply_to: ['admin@example.com'], lead_id: null },
    ])
    expect((await runs(written))[0]).toMatchObject({
      state: 'failed',
      actions: [{ state: 'failed', error: 'The lead has been deleted.' }],
    })
  })

  it('that is taken back counts as a creation', async () => {
    const id = await workflow({ event: 'lead.create.after' })
    const lead = await given(server.admin).lead()
    await server.admin.delete(`/leads/${lead.id}`)
    await server.admin.post(`/leads/${lead.id}/restore`)
    await server.work()
    expect((await runs(id)).map(({ state }: { state: string }) => state)).toEqual(['succeeded', 'succeeded'])
  })
})
