// A workflow has the rights of the user who last changed it, in every step. It cannot read or do
// more than this user.
import { sql } from 'kysely'
import { describe, expect, it } from 'vitest'
import { migrate } from '../../db/migrate.ts'
import { seed } from '../../db/seed.ts'
import { openStore } from '../../db/store.ts'
import { permissionKeys } from '../../src/contract/operations.gen.ts'
import type { Caller } from '../support/app.ts'
import { isPostgres } from '../support/engine.ts'
import { given, unique } from '../support/given.ts'
import { useReceiver } from '../support/outside.ts'
import { useServer } from '../support/using.ts'
import { addUser, type Someone } from '../support/viewers.ts'
import { alone, path, set } from '../support/workflows.ts'

const receiver = useReceiver()
const server = useServer({ config: { webhookAllowHttp: true, webhookAllowCidrs: ['127.0.0.0/8'] } }, async (server) => {
  await alone(server)
})
const make = given(server.admin)

const all = [...permissionKeys]
const without = (...keys: string[]): string[] => all.filter((key) => !keys.includes(key))
const eve = (about: Someone = {}) => addUser(server, 'Eve', { view: 'individual', permissions: all, ...about })
const note = (value: string) => ({ id: 'add_note_as_activity', value })

async function workflow(caller: Caller, changes: Record<string, unknown>): Promise<number> {
  const body = { name: `Workflow ${unique()}`, entity_type: 'leads', event: 'lead.update.after', ...changes }
  const { status, body: reply, text } = await caller.post(path, body)
  expect(status, text).toBe(201)
  return reply.data.id
}
/**
 * Returns the runs in order, as the administrator. Omits runs that were skipped because a workflow
 * does not trigger itself.
 */
const runs = async (id: number) =>
  (await server.admin.get(`${path}/${id}/runs?sort=id`)).body.data.filter(
    ({ reason }: { reason: string | null }) => !reason?.includes('trigger itself'),
  )
/** Fires an event and returns the last run. */
async function runOf(id: number, event: () => Promise<{ status: number; text: string }>) {
  const { status, text } = await event()
  expect(status, text).toBeLessThan(300)
  await server.work()
  return (await runs(id)).at(-1)
}
const touch = (lead: number, by: Caller = server.admin) => by.put(`/leads/${lead}`, { description: `Note ${unique()}` })
const template = async (content: string) =>
  (await server.admin.post('/settings/email-templates', { name: `T${unique()}`, subject: 'S', content })).body.data.id
const webhook = async (changes: object = {}) => {
  const body = { name: `H${unique()}`, url: `${receiver.url}/hooks`, ...changes }
  return (await server.admin.post('/settings/webhooks', body)).body.data.id
}

describe('a permission the user lacks', () => {
  const entities = {
    leads: ['lead.update.after', '/leads'],
    persons: ['contacts.person.update.after', '/contacts/persons'],
    quotes: ['quote.update.after', '/quotes'],
    activities: ['activity.update.after', '/activities'],
  } as const
  const cases: [entity: keyof typeof entities, action: string, permission: string][] = [
    ['leads', 'update_lead', 'leads.edit'],
    ['leads', 'update_person', 'contacts.persons.edit'],
    ['persons', 'update_person', 'contacts.persons.edit'],
    ['persons', 'update_related_leads', 'leads.edit'],
    ['activities', 'update_related_leads', 'leads.edit'],
    ['quotes', 'update_quote', 'quotes.edit'],
    ['leads', 'send_email_to_person', 'mail.compose'],
    ['leads', 'send_email_to_person', 'contacts.persons.view'],
    ['leads', 'send_email_to_sales_owner', 'mail.compose'],
    ['leads', 'send_email_to_sales_owner', 'settings.automation.email_templates'],
    ['activities', 'send_email_to_participants', 'mail.compose'],
    ['leads', 'add_tag', 'leads.edit'],
    ['leads', 'add_tag', 'settings.other_settings.tags.create'],
    ['persons', 'add_tag', 'contacts.persons.edit'],
    ['quotes', 'add_tag', 'quotes.edit'],
    ['quotes', 'add_note_as_activity', 'activities.create'],
    ['leads', 'create_activity', 'activities.create'],
    ['activities', 'notify', 'mail.compose'],
    ['leads', 'trigger_webhook', 'settings.automation.webhooks'],
    ['leads', 'add_note_as_activity', 'leads.view'],
    ['persons', 'add_note_as_activity', 'contacts.persons.view'],
    ['quotes', 'add_note_as_activity', 'quotes'],
    ['activities', 'update_related_leads', 'activities'],
  ]
  it.each(cases)('on %s: %s without %s fails and says so', async (entity, action, permission) => {
    const person = await make.person({ name: 'Ada', emails: [{ value: 'ada@example.com' }] })
    const lead = await make.lead({ person_id: person.id })
    const quote = await make.quote({ person_id: person.id, lead_id: lead.id })
    const activity = await make.activity({
      type: 'note',
      comment: 'x',
      lead_ids: [lead.id],
      participants: { persons: [person.id] },
    })
    const values: Record<string, object> = {
      update_lead: set('title', 'Taken'),
      update_person: set('job_title', 'Taken', 'update_person'),
      update_quote: set('subject', 'Taken', 'update_quote'),
      update_related_leads: set('title', 'Taken', 'update_related_leads'),
      add_tag: { id: 'add_tag', value: 'Taken' },
      add_note_as_activity: note('Taken'),
      create_activity: { id: 'create_activity', activity: { type: 'task', title: 'Taken' } },
      notify: { id: 'notify', notice: { user_id: 1, subject: 'Taken', text: 'Taken' } },
      trigger_webhook: { id: action, value: await webhook() },
    }
    const chosen = values[action] ?? { id: action, value: await template('Taken') }
    const user = await eve({ view: 'global', permissions: without(permission) })
    const [event, records] = entities[entity]
    const id = await workflow(user, { entity_type: entity, event, actions: [chosen] })
    const record = { leads: lead, persons: person, quotes: quote, activities: activity }[entity].id
    const change = { leads: 'description', persons: 'job_title', quotes: 'description', activities: 'comment' }[entity]
    const run = await runOf(id, () => server.admin.put(`${records}/${record}`, { [change]: 'y' }))
    expect(run).toMatchObject({ state: 'failed' })
    expect(run.reason).toContain(`Eve, who changed this workflow last, lacks the permission ${permission}.`)
    const after = await Promise.all(
      [
        `/leads/${lead.id}`,
        `/contacts/persons/${person.id}`,
        `/quotes/${quote.id}`,
        '/activities',
        '/emails',
        '/tags',
      ].map(async (each) => (await server.admin.get(each)).text),
    )
    expect(after.join()).not.toContain('Taken')
    expect(receiver.received).toEqual([])
    // The workflow works again after a user with the permission changes it.
    await server.admin.put(`${path}/${id}`, { description: 'Mine' })
    expect(await runOf(id, () => server.admin.put(`${records}/${record}`, { [change]: 'z' }))).toMatchObject({
      state: 'succeeded',
    })
  })
})

describe('a record the user does not see', () => {
  it('is left out by every trigger, and one in sight is not', async () => {
    const user = await eve()
    const owner = { user_id: user.id }
    for (const [entity_type, base, create, records] of [
      ['leads', 'lead', make.lead, '/leads'],
      ['persons', 'contacts.person', make.person, '/contacts/persons'],
      ['quotes', 'quote', make.quote, '/quotes'],
      [
        'activities',
        'activity',
        (about: object) => make.activity({ type: 'note', comment: 'x', ...about }),
        '/activities',
      ],
    ] as const) {
      const value = await webhook()
      const actions = [{ id: 'trigger_webhook', value }]
      const ids = await Promise.all(
        ['create.after', 'update.after', 'delete.before'].map((when) =>
          workflow(user, { entity_type, event: `${base}.${when}`, actions }),
        ),
      )
      for (const [about, state] of [
        [{}, 'skipped'],
        [owner, 'succeeded'],
      ] as const) {
        receiver.received.length = 0
        const { id } = await create(about)
        await server.work()
        const change = { leads: 'title', persons: 'name', quotes: 'subject', activities: 'title' }[entity_type]
        await server.admin.put(`${records}/${id}`, { [change]: 'New' })
        await server.work()
        await server.admin.delete(`${records}/${id}`)
        await server.work()
        const last = await Promise.all(ids.map(async (each) => (await runs(each)).at(-1)))
        expect(last.map((run) => run.state)).toEqual([state, state, state])
        expect(receiver.received).toHaveLength(state === 'skipped' ? 0 : 3)
        if (state === 'skipped')
          for (const { reason } of last)
            expect(reason).toMatch(/^Eve, who changed this workflow last, does not see this \w+\.$/)
      }
    }
  })

  it('is not changed, mailed, read or told of through one that the user sees', async () => {
    const user = await eve()
    const hidden = await make.person({ name: 'Ada', job_title: 'Secret', emails: [{ value: 'ada@example.com' }] })
    const lead = await make.lead({ user_id: user.id })
    const other = await make.lead({ person_id: hidden.id, title: 'Theirs' })
    const quote = await make.quote({ user_id: user.id, person_id: hidden.id })
    const of = async (...actions: object[]) => {
      const id = await workflow(user, { entity_type: 'quotes', event: 'quote.update.after', actions })
      const run = await runOf(id, () => server.admin.put(`/quotes/${quote.id}`, { description: `${unique()}` }))
      await server.admin.put(`${path}/${id}`, { is_active: false })
      return run
    }
    const failed = { state: 'failed', actions: [{ error: `No person has id ${hidden.id}.` }] }
    expect(await of(set('job_title', 'Taken', 'update_person'))).toMatchObject(failed)
    expect(await of({ id: 'send_email_to_person', value: await template('x') })).toMatchObject(failed)
    expect(await of(note('Job: {%persons.job_title%}.'))).toMatchObject({ state: 'succeeded' })
    const text = { payload_type: 'raw', raw_payload_type: 'text', payload: 'Job: {%persons.job_title%}.' }
    expect(await of({ id: 'trigger_webhook', value: await webhook(text) })).toMatchObject({ state: 'succeeded' })
    expect(receiver.received.map(({ body }) => body)).toEqual(['Job: .'])
    expect((await server.admin.get('/activities')).body.data).toMatchObject([{ comment: 'Job: .', user_id: user.id }])
    expect((await server.admin.get(`/contacts/persons/${hidden.id}`)).body.data.job_title).toBe('Secret')
    expect((await server.admin.get('/emails')).body.data).toEqual([])

    const activity = await make.activity({
      type: 'note',
      comment: 'x',
      user_id: user.id,
      lead_ids: [lead.id, other.id],
      participants: { persons: [hidden.id] },
    })
    const related = [set('title', 'Taken', 'update_related_leads')]
    const ofActivity = await workflow(user, {
      entity_type: 'activities',
      event: 'activity.update.after',
      actions: related,
    })
    const mailing = await workflow(user, {
      entity_type: 'activities',
      event: 'activity.update.after',
      actions: [{ id: 'send_email_to_participants', value: await template('x') }],
    })
    expect(
      await runOf(ofActivity, () => server.admin.put(`/activities/${activity.id}`, { comment: 'y' })),
    ).toMatchObject({
      state: 'succeeded',
      actions: [{ result: { lead_ids: [lead.id] } }],
    })
    expect((await runs(mailing)).at(-1).actions[0].error).toContain('does not see')
    expect((await server.admin.get(`/leads/${other.id}`)).body.data.title).toBe('Theirs')
    expect((await server.admin.get('/emails')).body.data).toEqual([])
    const mail = { id: 'send_email_to_person', value: await template('x') }
    const ofQuote = await workflow(user, { entity_type: 'quotes', event: 'quote.update.after', actions: [mail] })
    expect(await runOf(ofQuote, () => server.admin.put(`/quotes/${quote.id}`, { description: 'y' }))).toMatchObject(
      failed,
    )
  })

  it('is not among the leads of a person', async () => {
    const user = await eve()
    const person = await make.person({ user_id: user.id })
    const mine = await make.lead({ user_id: user.id, person_id: person.id })
    const other = await make.lead({ person_id: person.id, title: 'Theirs' })
    const actions = [set('title', 'Taken', 'update_related_leads')]
    const id = await workflow(user, { entity_type: 'persons', event: 'contacts.person.update.after', actions })
    const run = await runOf(id, () => server.admin.put(`/contacts/persons/${person.id}`, { name: 'Bea' }))
    expect(run).toMatchObject({ state: 'succeeded', actions: [{ result: { lead_ids: [mine.id] } }] })
    expect((await server.admin.get(`/leads/${other.id}`)).body.data.title).toBe('Theirs')
  })
})

describe('a right that is lost', () => {
  it('stops the next run: the permission, then the user, until they are there again', async () => {
    const user = await eve({ view: 'global' })
    const lead = await make.lead()
    const id = await workflow(user, { actions: [set('title', 'Set')] })
    const gone = 'The user who changed this workflow last is deleted or inactive.'
    expect((await runOf(id, () => touch(lead.id))).state).toBe('succeeded')
    const role = (permissions: string[]) =>
      server.store.db
        .updateTable('roles')
        .set({ permissions: JSON.stringify(permissions) })
        .where('name', '=', 'Eve')
        .execute()
    await role(without('leads.edit'))
    const lost = await runOf(id, () => touch(lead.id))
    expect([lost.state, lost.reason]).toEqual([
      'failed',
      'Action 1 failed: Eve, who changed this workflow last, lacks the permission leads.edit.',
    ])
    await role(all)
    expect((await server.admin.put(`/settings/users/${user.id}`, { is_active: false })).status).toBe(200)
    const inactive = await runOf(id, () => touch(lead.id))
    expect([inactive.state, inactive.reason.startsWith(gone)]).toEqual(['failed', true])
    await server.admin.put(`/settings/users/${user.id}`, { is_active: true })
    expect((await runOf(id, () => touch(lead.id))).state).toBe('succeeded')
    expect((await server.admin.get(`${path}/${id}`)).body.data.changed_by).toMatchObject({ id: user.id, name: 'Eve' })
    expect((await server.admin.delete(`/settings/users/${user.id}`)).status).toBe(200)
    expect((await runOf(id, () => touch(lead.id))).reason.startsWith(gone)).toBe(true)
    expect((await server.admin.get(`${path}/${id}`)).body.data.changed_by).toBeNull()
    await server.admin.put(`${path}/${id}`, { description: 'Taken over' })
    expect((await runOf(id, () => touch(lead.id))).state).toBe('succeeded')
  })

  it('stops a run between two actions', async () => {
    const user = await eve({ view: 'global' })
    const lead = await make.lead()
    // The first action removes a permission that the second action needs.
    const id = await workflow(user, { actions: [set('title', 'Set'), note('x')] })
    const change = sql`update roles set permissions = '["leads","leads.view","leads.edit"]' where name = 'Eve'`
    await server.store.transaction(async (db) => {
      if (isPostgres) {
        await sql`create function lose() returns trigger language plpgsql as
          $$ begin ${change}; return new; end $$`.execute(db)
        await sql`create trigger lose after update of title on leads for each row execute function lose()`.execute(db)
      } else await sql`create trigger lose after update of title on leads begin ${change}; end`.execute(db)
    })
    const run = await runOf(id, () => touch(lead.id))
    expect(run).toMatchObject({
      state: 'failed',
      actions: [{ state: 'succeeded' }, { error: expect.stringContaining('activities.create') }],
    })
    if (isPostgres) await server.store.transaction((db) => sql`drop function lose cascade`.execute(db))
  })

  it('stops a delivery that waits', async () => {
    const user = await eve()
    const value = await webhook()
    const lead = await make.lead({ user_id: user.id })
    const id = await workflow(user, { actions: [{ id: 'trigger_webhook', value }] })
    const last = async () => (await server.admin.get(`/settings/webhooks/${value}/deliveries`)).body.data[0]
    receiver.behave({ mode: 'status', status: 503 })
    await runOf(id, () => touch(lead.id))
    expect(await last()).toMatchObject({ state: 'pending', attempts: [{ status: 503 }] })
    receiver.behave('ok')
    await server.admin.put(`/leads/${lead.id}`, { user_id: 1 })
    server.clock.advanceMs(60_000)
    await server.work()
    const error = 'Eve, whose workflow called the webhook, no longer sees the record.'
    const { body } = await server.admin.get(`/settings/webhooks/${value}/deliveries?state=failed`)
    expect(body.data).toMatchObject([{ attempts: [{ status: 503 }, { error }] }])
    expect(receiver.received).toHaveLength(1)
  })
})

describe('the user it acts for', () => {
  it('is the one who changed it last, not who sent the same again', async () => {
    const user = await eve()
    const id = await workflow(server.admin, { actions: [note('x')] })
    const changer = async () => (await server.admin.get(`${path}/${id}`)).body.data.changed_by?.name
    expect(await changer()).toBe('Example Admin')
    const { data } = (await user.get(`${path}/${id}`)).body
    const same = await user.put(`${path}/${id}`, data)
    expect([same.status, same.body.data.version, await changer()]).toEqual([200, 1, 'Example Admin'])
    await user.put(`${path}/${id}`, { sort_order: 50 })
    expect(await changer()).toBe('Eve')
    await server.admin.put(`${path}/${id}`, { changed_by: data.changed_by, is_active: false })
    expect(await changer()).toBe('Example Admin')
  })

  it('lends rights, not the name: events name the system, tags and e-mails no user', async () => {
    const user = await eve()
    const person = await make.person({ user_id: user.id, emails: [{ value: 'ada@example.com' }] })
    const lead = await make.lead({ user_id: user.id, person_id: person.id })
    const mail = { id: 'send_email_to_person', value: await template('x') }
    const id = await workflow(user, { actions: [{ id: 'add_tag', value: 'New' }, note('x'), mail] })
    expect((await runOf(id, () => touch(lead.id))).state).toBe('succeeded')
    const rows = server.store.db.selectFrom('events').select(['actor_type', 'actor_id', 'origin', 'token_id'])
    const events = await rows.where('workflow_run_id', 'is not', null).execute()
    expect(events.length).toBeGreaterThan(3)
    for (const event of events)
      expect(event).toEqual({ actor_type: 'system', actor_id: null, origin: 'workflow', token_id: null })
    expect((await server.admin.get('/tags')).body.data).toMatchObject([{ name: 'New', user_id: null }])
    expect((await server.admin.get('/emails')).body.data).toMatchObject([{ user_id: null, lead_id: lead.id }])
  })

  it('decides what a try says as well', async () => {
    const user = await eve({ permissions: without('leads.edit') })
    const lead = await make.lead()
    const id = await workflow(user, { actions: [set('title', 'Set'), note('x')] })
    const tried = async () => (await server.admin.post(`${path}/${id}/test`, { entity_id: lead.id })).body.data
    const unseen = 'Eve, who changed this workflow last, does not see this lead.'
    expect(await tried()).toMatchObject({ matches: false, reason: unseen, actions: [{ would: `Fail: ${unseen}` }, {}] })
    await server.admin.put(`/leads/${lead.id}`, { user_id: user.id })
    expect(await tried()).toMatchObject({
      matches: true,
      actions: [
        { would: 'Fail: Eve, who changed this workflow last, lacks the permission leads.edit.' },
        { would: 'Add the note: x' },
      ],
    })
  })

  it('of the seeded workflows are those of the first administrator', async () => {
    const at = '2026-01-01T00:00:00.000Z'
    const fresh = openStore('sqlite::memory:')
    await migrate(fresh)
    await seed(fresh, { adminName: 'A', adminEmail: 'a@example.com', adminPasswordHash: 'x', now: at })
    const seeded = await fresh.db.selectFrom('workflows').select('changed_by_id').execute()
    expect(seeded.map((row) => row.changed_by_id)).toEqual([1, 1, 1])
    await fresh.close()
  })
})
