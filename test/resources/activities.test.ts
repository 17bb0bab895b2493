// Rules of activities that the generated contract tests do not check: the required fields of each
// type, the linked records and visibility. Participants and meetings are in
// activities.participants.test.ts.
import { describe, expect, it } from 'vitest'
import type { Schema } from '../../src/contract/types.ts'
import { given } from '../support/given.ts'
import { useServer } from '../support/using.ts'
import { addUser } from '../support/viewers.ts'

type Activity = Schema<'Activity'>

const server = useServer()
const { admin } = server
const make = given(admin)

const nine = { schedule_from: '2026-03-02T09:00:00.000Z', schedule_to: '2026-03-02T09:30:00.000Z' }
const call = { type: 'call', title: 'First call', ...nine }
const note = { type: 'note', comment: 'Prefers mornings.' } as const

const show = async (id: number, caller = admin): Promise<Activity> => (await caller.get(`/activities/${id}`)).body.data
const ids = async (query: string, caller = admin): Promise<number[]> => {
  const { body, status } = await caller.get(`/activities?sort=id&${query}`)
  expect(status).toBe(200)
  return body.data.map(({ id }: Activity) => id)
}

describe('createActivity', () => {
  it('creates a call that is open and belongs to the caller, with its pair of events', async () => {
    const { status, body } = await admin.post('/activities', { ...call, schedule_from: '2026-03-02T10:00:00+01:00' })
    expect(status).toBe(201)
    expect(body.data).toMatchObject({
      ...call,
      ...nine,
      is_done: false,
      user_id: 1,
      user: { name: 'Example Admin' },
      participants: [],
      lead_ids: [],
      version: 1,
    })
    expect(server.events()).toEqual(['activity.create.before', 'activity.create.after'])
  })

  it('takes a note as done, and drops the schedule a note has no use for', async () => {
    const { body } = await admin.post('/activities', { ...note, ...nine })
    expect(body.data).toMatchObject({ is_done: true, schedule_from: null, schedule_to: null, title: null })
    expect((await admin.post('/activities', { ...note, is_done: false })).body.data.is_done).toBe(false)
  })

  it('says everything a type still needs, and fires nothing', async () => {
    for (const [body, missing] of [
      [{ type: 'call' }, ['schedule_from', 'schedule_to', 'title']],
      [{ type: 'meeting', title: ' ', ...nine }, ['title']],
      [{ type: 'lunch', title: 'Lunch', comment: null, schedule_from: nine.schedule_from }, ['schedule_to']],
      [{ type: 'note', title: 'Only a title' }, ['comment']],
      [{ title: 'No type' }, ['type']],
    ] as const) {
      const { status, body: problem } = await admin.post('/activities', body)
      expect([status, Object.keys(problem.errors).sort()]).toEqual([422, missing])
    }
    expect(server.events()).toEqual([])
  })

  it('refuses an end before the start, and takes an end at the start', async () => {
    const early = await admin.post('/activities', { ...call, schedule_to: '2026-03-02T08:59:59Z' })
    expect([early.status, early.body.errors]).toEqual([422, { schedule_to: ['Must not be before schedule_from.'] }])
    expect((await admin.post('/activities', { ...call, schedule_to: nine.schedule_from })).status).toBe(201)
  })

  it('links the records named in lists and singly, each once', async () => {
    const lead = await make.lead({ title: 'Big one' })
    const person = await make.person({ name: 'Ada', emails: [{ value: 'ada@example.com' }] })
    const product = await make.product({ sku: 'gtx', name: 'GTX' })
    const organization = await make.organization({ name: 'Acme' })
    const { body } = await admin.post('/activities', {
      ...note,
      lead_ids: [lead.id, lead.id],
      lead_id: lead.id,
      person_id: person.id,
      product_ids: [product.id],
      organization_id: organization.id,
    })
    expect(body.data).toMatchObject({
      lead_ids: [lead.id],
      leads: [{ id: lead.id, title: 'Big one' }],
      persons: [{ id: person.id, name: 'Ada', email: 'ada@example.com' }],
      products: [{ id: product.id, sku: 'gtx', name: 'GTX' }],
      organizations: [{ id: organization.id, name: 'Acme' }],
    })
  })

  it('links warehouses and quotes, and is found by them', async () => {
    const { id: warehouse } = (
      await admin.post('/settings/warehouses', {
        name: 'London',
        contact_name: 'Ada',
        contact_emails: [{ value: 'ada@example.com' }],
        contact_address: { address: '1 Quay', country: 'GB', city: 'London', postcode: 'E1' },
      })
    ).body.data
    const quote = await make.quote({ subject: '40 seats' })
    const one = await make.activity({ ...note, warehouse_id: warehouse, quote_ids: [quote.id] })
    const other = await make.activity(note)
    expect(one).toMatchObject({
      warehouse_ids: [warehouse],
      warehouses: [{ id: warehouse, name: 'London' }],
      quote_ids: [quote.id],
      quotes: [{ id: quote.id, subject: '40 seats' }],
    })
    expect(await ids(`warehouse_id=${warehouse}`)).toEqual([one.id])
    expect(await ids(`quote_id=${quote.id}`)).toEqual([one.id])
    expect(await ids(`quote_id[not]=${quote.id}&warehouse_id[not]=${warehouse}`)).toEqual([other.id])
    const { status, body } = await admin.post('/activities', { ...note, warehouse_ids: [999], quote_id: 999 })
    expect([status, body.errors]).toEqual([
      422,
      { 'warehouse_ids.0': ['No warehouse has id 999.'], quote_id: ['No quote has id 999.'] },
    ])
  })

  it('refuses a link to a record that is not there or that the caller may not see, and says which', async () => {
    const ada = await addUser(server, 'Ada', { view: 'individual' })
    const lead = await make.lead()
    server.events()
    const { status, body } = await ada.post('/activities', { ...note, lead_ids: [lead.id], person_id: 999 })
    expect([status, body.errors]).toEqual([
      422,
      { 'lead_ids.0': [`No lead has id ${lead.id}.`], person_id: ['No person has id 999.'] },
    ])
    expect((await admin.get('/activities')).body.meta.total).toBe(0)
    expect(server.events()).toEqual([])
  })
})

describe('updateActivity', () => {
  it('refuses another type, and accepts the one it has', async () => {
    const { id } = await make.activity(note)
    const refused = await admin.put(`/activities/${id}`, { type: 'call', title: 'x', ...nine })
    expect([refused.status, refused.body.errors]).toEqual([
      422,
      { type: ['The type of an activity cannot be changed.'] },
    ])
    expect((await admin.put(`/activities/${id}`, { type: 'note', comment: 'Later' })).body.data).toMatchObject({
      type: 'note',
      comment: 'Later',
    })
  })

  it('refuses to empty what the type needs, and to move the end before the start', async () => {
    const { id } = await make.activity({ ...call, type: 'call' })
    server.events()
    const refused = await admin.put(`/activities/${id}`, { title: null, schedule_to: '2026-03-01T09:00:00Z' })
    expect([refused.status, Object.keys(refused.body.errors).sort()]).toEqual([422, ['schedule_to', 'title']])
    expect(refused.body.errors.schedule_to).toEqual(['Must not be before schedule_from.'])
    expect(await show(id)).toMatchObject({ ...nine, version: 1 })
    expect(server.events()).toEqual([])
  })

  it('replaces the links of the key that is sent, adds one with lead_id, and leaves the others', async () => {
    const [one, two] = [await make.lead(), await make.lead()]
    const product = await make.product()
    const { id } = await make.activity({ ...note, lead_ids: [one.id], product_ids: [product.id] })
    server.events()
    const added = await admin.put(`/activities/${id}`, { lead_id: two.id })
    expect(added.body.data).toMatchObject({ lead_ids: [one.id, two.id], product_ids: [product.id], version: 2 })
    expect(server.seen.at(-1)).toMatchObject({ name: 'activity.update.after', changed: ['lead_ids', 'leads'] })
    const replaced = await admin.put(`/activities/${id}`, { lead_ids: [two.id] })
    expect(replaced.body.data).toMatchObject({ lead_ids: [two.id], product_ids: [product.id], version: 3 })
    const cleared = await admin.put(`/activities/${id}`, { lead_ids: [] })
    expect(cleared.body.data).toMatchObject({ lead_ids: [], product_ids: [product.id], version: 4 })
  })

  it('takes back what it has shown without a change, participants and links included', async () => {
    const lead = await make.lead()
    const person = await make.person()
    const { id } = await make.activity({
      ...call,
      type: 'call',
      lead_ids: [lead.id],
      participants: { users: [1], persons: [person.id] },
    })
    server.events()
    server.clock.advanceMs(60_000)
    const before = await show(id)
    const { status, body } = await admin.put(`/activities/${id}`, before)
    expect([status, body.data]).toEqual([200, before])
    expect(server.seen.at(-1)).toMatchObject({ name: 'activity.update.after', changed: [] })
    const full = (await admin.get(`/activities/${id}?include=participants,leads,persons,user`)).body.data
    expect((await admin.put(`/activities/${id}`, full)).body.data).toEqual(before)
  })

  it('keeps a link to a record the caller may not see when it is sent back', async () => {
    const ada = await addUser(server, 'Ada', { view: 'individual' })
    const lead = await make.lead()
    const { id } = await make.activity({ ...note, lead_ids: [lead.id], user_id: ada.id })
    const { status, body } = await ada.put(`/activities/${id}`, { lead_ids: [lead.id], comment: 'Still about it' })
    expect([status, body.data.lead_ids, body.data.leads]).toEqual([
      200,
      [lead.id],
      [{ id: lead.id, title: lead.title }],
    ])
  })
})

describe('listActivities', () => {
  it('filters by type, by being done, by schedule and by words of title, comment and place', async () => {
    const a = await make.activity({ ...call, type: 'call', location: 'Room Berlin' })
    const b = await make.activity({
      ...call,
      type: 'lunch',
      title: 'Lunch',
      comment: null,
      schedule_from: '2026-03-05T12:00:00Z',
      schedule_to: '2026-03-05T13:00:00Z',
      is_done: true,
    })
    const c = await make.activity({ ...note, comment: 'Call again' })
    expect(await ids('type=call,lunch')).toEqual([a.id, b.id])
    expect(await ids('type[not]=note&is_done=false')).toEqual([a.id])
    expect(await ids('is_done=true')).toEqual([b.id, c.id])
    expect(await ids('schedule_from[gte]=2026-03-05')).toEqual([b.id])
    expect(await ids('schedule_to[lte]=2026-03-02')).toEqual([a.id])
    expect(await ids('schedule_from[null]=true')).toEqual([c.id])
    expect(await ids('q=call')).toEqual([a.id, c.id])
    expect(await ids('q=BERLIN call')).toEqual([a.id])
  })

  it('finds the activities of a record and of a participant', async () => {
    const lead = await make.lead()
    const person = await make.person()
    const about = await make.activity({ ...note, lead_id: lead.id })
    const with1 = await make.activity({ ...note, participants: { users: [1] } })
    const with2 = await make.activity({ ...note, participants: [{ person_id: person.id }] })
    expect(await ids(`lead_id=${lead.id}`)).toEqual([about.id])
    expect(await ids(`lead_id[not]=${lead.id}`)).toEqual([with1.id, with2.id])
    expect(await ids('participant_user_id=1')).toEqual([with1.id])
    expect(await ids(`participant_person_id=${person.id}`)).toEqual([with2.id])
    // `person_id` finds linked persons and not participants.
    expect(await ids(`person_id=${person.id}`)).toEqual([])
  })

  it('shows activities the user owns, takes part in, or that are linked to a visible record, and no others', async () => {
    const ada = await addUser(server, 'Ada', { view: 'individual' })
    const bob = await addUser(server, 'Bob', { view: 'group', group: 'Central' })
    const eve = await addUser(server, 'Eve', { view: 'individual', group: 'Central' })
    const person = await make.person({ user_id: ada.id })
    const organization = await make.organization({ user_id: eve.id })
    const product = await make.product()
    const quote = await make.quote({ user_id: ada.id })
    const own = await make.activity({ ...note, user_id: ada.id })
    const invited = await make.activity({ ...note, participants: { users: [ada.id] } })
    const about = await make.activity({ ...note, person_ids: [person.id] })
    const quoted = await make.activity({ ...note, quote_ids: [quote.id] })
    const ofGroup = await make.activity({ ...note, organization_ids: [organization.id] })
    const hidden = await make.activity({
      ...note,
      user_id: null,
      product_ids: [product.id],
      participants: { persons: [person.id] },
    })
    expect(await ids('', ada)).toEqual([own.id, invited.id, about.id, quoted.id])
    expect(await ids('', bob)).toEqual([ofGroup.id])
    expect(await ids('', eve)).toEqual([ofGroup.id])
    for (const verb of ['get', 'delete'] as const)
      expect((await ada[verb](`/activities/${hidden.id}`)).status).toBe(404)
    expect(await ids('')).toHaveLength(6)
  })

  it('gives owner, leads, persons and participants in full when asked to, and leaves the ref of a hidden record as it is', async () => {
    const ada = await addUser(server, 'Ada', { view: 'individual' })
    const [hers, other] = [await make.lead({ user_id: ada.id }), await make.lead()]
    const person = await make.person({ user_id: ada.id })
    await make.activity({
      ...note,
      lead_ids: [hers.id, other.id],
      person_ids: [person.id],
      user_id: ada.id,
      participants: { users: [1, ada.id], persons: [person.id] },
    })
    const [activity] = (await ada.get('/activities?include=user,leads,persons,participants')).body.data
    expect(activity.user).toMatchObject({ id: ada.id, view_permission: 'individual' })
    expect(activity.leads[0]).toMatchObject({ id: hers.id, lead_pipeline_id: 1 })
    expect(activity.leads[1]).toEqual({ id: other.id, title: other.title })
    expect(activity.persons[0]).toMatchObject({ id: person.id, leads_count: 0 })
    const [admin1, adaAsUser, adaAsPerson] = activity.participants
    expect(admin1.user).toEqual({ id: 1, name: 'Example Admin', email: 'admin@example.com', image_url: null })
    expect(adaAsUser.user).toMatchObject({ id: ada.id, view_permission: 'individual' })
    expect(adaAsPerson.person).toMatchObject({ id: person.id, leads_count: 0 })
  })
})

describe('massUpdateActivities', () => {
  it('marks activities as done, each with its own events, and reports the ones that are not there', async () => {
    const one = await make.activity({ ...call, type: 'call' })
    const two = await make.activity({ ...call, type: 'lunch' })
    server.events()
    const { body } = await admin.post('/activities/mass-update', { ids: [one.id, 999, two.id], value: true })
    expect(body).toMatchObject({
      data: { processed: [one.id, two.id], failed: [{ id: 999, status: 404 }] },
      message: '2 activities updated.',
    })
    expect((await show(one.id)).is_done).toBe(true)
    expect(server.events()).toEqual([
      'activity.update.before',
      'activity.update.after',
      'activity.update.before',
      'activity.update.after',
    ])
  })

  it('applies changes to all or, with atomic, to none when one of them refuses', async () => {
    const one = await make.activity({ ...call, type: 'call' })
    const two = await make.activity(note)
    server.events()
    const { status, body } = await admin.post('/activities/mass-update', {
      ids: [one.id, two.id],
      changes: { comment: null },
      atomic: true,
    })
    expect([status, body.code]).toEqual([422, 'mass_failed'])
    expect(body.failed).toMatchObject([{ id: two.id, status: 422 }])
    expect(server.events().filter((name) => name.endsWith('.after'))).toEqual([])
    const both = await admin.post('/activities/mass-update', { ids: [one.id], value: true, changes: {} })
    expect([both.status, Object.keys(both.body.errors)]).toEqual([422, ['value']])
  })
})

describe('massDeleteActivities', () => {
  it('deletes activities with participants and links, but not the linked records', async () => {
    const lead = await make.lead()
    const { id } = await make.activity({ ...note, lead_ids: [lead.id], participants: { users: [1] } })
    server.events()
    const { body } = await admin.post('/activities/mass-delete', { ids: [id] })
    expect(body.data.processed).toEqual([id])
    expect(server.events()).toEqual(['activity.delete.before', 'activity.delete.after'])
    expect((await admin.get(`/leads/${lead.id}`)).body.data.activities_count).toBe(0)
    expect(await server.store.db.selectFrom('activity_participants').selectAll().execute()).toEqual([])
  })
})

describe('deleteLead', () => {
  it('takes the activities along that are about this lead alone, with an event each', async () => {
    const [lead, other] = [await make.lead(), await make.lead()]
    const alone = await make.activity({ ...note, lead_ids: [lead.id] })
    const both = await make.activity({ ...note, lead_ids: [lead.id, other.id] })
    server.events()
    expect((await admin.delete(`/leads/${lead.id}`)).status).toBe(200)
    expect(server.events()).toEqual([
      'lead.delete.before',
      'activity.delete.before',
      'activity.delete.after',
      'lead.delete.after',
    ])
    expect((await admin.get(`/activities/${alone.id}`)).status).toBe(404)
    expect((await show(both.id)).lead_ids).toEqual([other.id])
  })
})

describe('deleteQuote', () => {
  it('leaves the activities about it, also those about nothing else', async () => {
    const quote = await make.quote()
    const { id } = await make.activity({ ...note, quote_ids: [quote.id] })
    server.events()
    expect((await admin.delete(`/quotes/${quote.id}`)).status).toBe(200)
    expect(server.events()).toEqual(['quote.delete.before', 'quote.delete.after'])
    expect(await show(id)).toMatchObject({ quote_ids: [], quotes: [] })
  })
})

describe('deletePerson', () => {
  it('leaves an activity that is about a quote as well', async () => {
    const [person, quote] = [await make.person(), await make.quote()]
    const both = await make.activity({ ...note, person_ids: [person.id], quote_ids: [quote.id] })
    const alone = await make.activity({ ...note, person_ids: [person.id] })
    expect((await admin.delete(`/contacts/persons/${person.id}`)).status).toBe(200)
    expect((await show(both.id)).person_ids).toEqual([])
    expect((await admin.get(`/activities/${alone.id}`)).status).toBe(404)
  })
})
