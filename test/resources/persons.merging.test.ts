// Merging persons and organizations, and taking merges back: what the record of the merge gets, and
// what comes back.
import { describe, expect, it } from 'vitest'
import { systemContext } from '../../src/kernel/context.ts'
import { prune } from '../../src/resources/system/housekeeping.ts'
import { given } from '../support/given.ts'
import { dangling, everything } from '../support/merges.ts'
import { useServer } from '../support/using.ts'
import { addUser } from '../support/viewers.ts'

const server = useServer()
const make = given(server.admin)

type Json = Record<string, any>

const persons = '/contacts/persons'
const organizations = '/contacts/organizations'
const shown = async (path: string): Promise<Json> => (await server.admin.get(path)).body.data

async function merge(path: string, id: number, ids: number[], fields?: Json, dryRun = false): Promise<Json> {
  const { status, body, text } = await server.admin.post(
    `${path}/${id}/merge`,
    { ids, ...(fields && { fields }) },
    {
      headers: dryRun ? { 'accord-dry-run': 'true' } : {},
    },
  )
  expect(status, text).toBe(200)
  return body
}

async function unmerge(path: string, id: number, other: number): Promise<Json> {
  const { status, body, text } = await server.admin.post(`${path}/${id}/unmerge`, { id: other })
  expect(status, text).toBe(200)
  return body
}

describe('mergePersons', () => {
  it('unites lists, fills empty fields, moves what refers to the merged person, and redirects its address', async () => {
    const winner = await make.person({
      name: 'Ada Lovelace',
      emails: [{ value: 'ada@lovelace.test' }],
      job_title: null,
    })
    const other = await make.person({
      name: 'Lovelace, Ada',
      emails: [{ value: 'a.lovelace@work.test' }],
      contact_numbers: [{ value: '+44 20 7946 0101' }],
      job_title: 'Analyst',
      external_ids: { hubspot: 'H1' },
    })
    const lead = await make.lead({ person_id: other.id })
    const quote = await make.quote({ person_id: other.id })
    const activity = await make.activity({ person_ids: [other.id], participants: { persons: [other.id] } })
    const { data, meta } = await merge(persons, winner.id, [other.id])
    expect(data).toMatchObject({
      id: winner.id,
      name: 'Ada Lovelace',
      job_title: 'Analyst',
      external_ids: { hubspot: 'H1' },
    })
    expect(data.emails.map(({ value }: Json) => value)).toEqual(['ada@lovelace.test', 'a.lovelace@work.test'])
    expect(meta.merged_ids).toEqual([other.id])
    const plan = new Map(meta.fields.map((each: Json) => [each.field, each]))
    expect(plan.get('name')).toMatchObject({ reason: 'kept', from_id: winner.id, value: 'Ada Lovelace' })
    expect(plan.get('job_title')).toMatchObject({ reason: 'filled', from_id: other.id })
    expect(plan.get('emails')).toMatchObject({ reason: 'united', from_id: null })
    expect((await shown(`/leads/${lead.id}`)).person_id).toBe(winner.id)
    expect((await shown(`/quotes/${quote.id}`)).person_id).toBe(winner.id)
    expect((await shown(`/activities/${activity.id}`)).persons).toMatchObject([{ id: winner.id }])
    const moved = await server.admin.get(`${persons}/${other.id}?include=user`)
    expect(moved).toMatchObject({ status: 308, body: { code: 'merged' } })
    expect(moved.headers.location).toMatch(new RegExp(`/api/admin/contacts/persons/${winner.id}\\?include=user$`))
    expect((await server.admin.put(`${persons}/${other.id}`, { name: 'X' })).status).toBe(308)
    const hint = [`The person ${other.id} was merged into ${winner.id}; send ${winner.id}.`]
    const referring: [string, Json, string][] = [
      [`/leads/${lead.id}`, { person_id: other.id }, 'person_id'],
      [`/quotes/${quote.id}`, { person_id: other.id }, 'person_id'],
      [`/activities/${activity.id}`, { person_ids: [other.id] }, 'person_ids.0'],
      [`/activities/${activity.id}`, { participants: { persons: [other.id] } }, 'participants.persons.0'],
    ]
    for (const [path, body, field] of referring)
      expect((await server.admin.put(path, body)).body.errors, path).toEqual({ [field]: hint })
    expect((await server.admin.get(`${persons}/${other.id}/history`)).status).toBe(308)
    const upsert = await server.admin.put(`${persons}/external/hubspot/H1`, { job_title: 'Countess' })
    expect(upsert).toMatchObject({ status: 200, body: { data: { id: winner.id } } })
  })

  it('is a plan in a dry run', async () => {
    const [winner, other] = [await make.person({ job_title: null }), await make.person({ job_title: 'Analyst' })]
    const before = await everything(server)
    const { meta } = await merge(persons, winner.id, [other.id], undefined, true)
    expect(meta.fields.find(({ field }: Json) => field === 'job_title')).toMatchObject({
      value: 'Analyst',
      from_id: other.id,
    })
    expect(await everything(server)).toEqual(before)
  })

  it('comes back whole', async () => {
    const winner = await make.person({ job_title: null })
    const other = await make.person({ job_title: 'Analyst', external_ids: { hubspot: 'H2' } })
    await make.lead({ person_id: other.id })
    await make.activity({ person_ids: [other.id], participants: { persons: [other.id] } })
    const before = await everything(server)
    await merge(persons, winner.id, [other.id])
    expect(await everything(server)).not.toEqual(before)
    const { data, meta } = await unmerge(persons, winner.id, other.id)
    expect(data.id).toBe(winner.id)
    expect(meta).toEqual({ unmerged_id: other.id, conflicts: [], dropped: [] })
    expect(await everything(server)).toEqual(before)
    const again = await server.admin.post(`${persons}/${winner.id}/unmerge`, { id: other.id })
    expect(again).toMatchObject({ status: 422, body: { errors: { id: [expect.stringContaining('was merged')] } } })
  })

  it('refuses itself, ids that are twice, unknown, deleted or merged before', async () => {
    const [winner, other, gone] = [await make.person(), await make.person(), await make.person()]
    await server.admin.delete(`${persons}/${gone.id}`)
    const ids = [winner.id, other.id, other.id, gone.id, 999_999]
    const { status, body } = await server.admin.post(`${persons}/${winner.id}/merge`, { ids })
    expect(status).toBe(422)
    expect(Object.keys(body.errors)).toEqual(['ids.0', 'ids.2', 'ids.3', 'ids.4'])
    await merge(persons, winner.id, [other.id])
    const again = await server.admin.post(`${persons}/${winner.id}/merge`, { ids: [other.id] })
    expect(again.body.errors).toEqual({ 'ids.0': [`No person has id ${other.id}.`] })
    const many = { ids: Array.from({ length: 21 }, (_, index) => index + 1) }
    expect((await server.admin.post(`${persons}/${winner.id}/merge`, many)).status).toBe(422)
    expect((await server.admin.post(`${persons}/${gone.id}/merge`, { ids: [winner.id] })).status).toBe(404)
    expect((await server.admin.post(`${persons}/${other.id}/merge`, { ids: [winner.id] })).status).toBe(308)
    expect((await server.admin.post(`${persons}/${other.id}/restore`)).body).toMatchObject({
      code: 'state_conflict',
      detail: expect.stringContaining('was merged'),
    })
  })

  it('takes the values of fields, and names their errors by their place', async () => {
    const [winner, other] = [await make.person(), await make.person({ job_title: 'Analyst' })]
    const bad = { ids: [other.id], fields: { organization_id: 999_999 } }
    const refused = await server.admin.post(`${persons}/${winner.id}/merge`, bad)
    expect(refused).toMatchObject({ status: 422, body: { errors: { 'fields.organization_id': [expect.any(String)] } } })
    const before = await everything(server)
    const emails = [{ value: 'only@one.test' }]
    const { data, meta } = await merge(persons, winner.id, [other.id], { name: 'Ada', job_title: null, emails })
    expect(data).toMatchObject({ name: 'Ada', job_title: null, emails })
    expect(meta.fields.find(({ field }: Json) => field === 'name')).toMatchObject({ reason: 'sent', from_id: null })
    expect((await unmerge(persons, winner.id, other.id)).meta.conflicts).toEqual([])
    expect(await everything(server)).toEqual(before)
  })

  it('follows chains, and takes them back from their end', async () => {
    const [one, two, three] = [await make.person(), await make.person(), await make.person()]
    const lead = await make.lead({ person_id: one.id })
    const before = await everything(server)
    await merge(persons, two.id, [one.id])
    const between = await everything(server)
    await merge(persons, three.id, [two.id])
    for (const { id } of [one, two])
      expect((await server.admin.get(`${persons}/${id}`)).headers.location).toMatch(new RegExp(`/${three.id}$`))
    expect((await shown(`/leads/${lead.id}`)).person_id).toBe(three.id)
    const early = await server.admin.post(`${persons}/${three.id}/unmerge`, { id: one.id })
    expect(early).toMatchObject({ status: 409, body: { code: 'state_conflict' } })
    await unmerge(persons, three.id, two.id)
    expect(await everything(server)).toEqual(between)
    await unmerge(persons, two.id, one.id)
    expect(await everything(server)).toEqual(before)
  })

  it('keeps what was changed since, and names it', async () => {
    const winner = await make.person({ job_title: null })
    const other = await make.person({ job_title: 'Analyst', emails: [{ value: 'analyst@one.test' }] })
    const third = await make.person()
    const [lead, moved] = [await make.lead({ person_id: other.id }), await make.lead({ person_id: other.id })]
    const tag = await make.tag()
    await server.admin.post(`${persons}/${other.id}/tags`, { tag_id: tag.id })
    await merge(persons, winner.id, [other.id])
    await server.admin.put(`/leads/${moved.id}`, { person_id: third.id })
    await server.admin.put(`${persons}/${winner.id}`, { job_title: 'Countess' })
    await server.admin.delete(`${persons}/${winner.id}/tags/${tag.id}`)
    const { data, meta } = await unmerge(persons, winner.id, other.id)
    expect(data.job_title).toBe('Countess')
    expect(meta.conflicts).toEqual([
      { type: 'leads', id: moved.id, field: 'person_id' },
      { type: 'persons', id: winner.id, field: 'job_title' },
      { type: 'tags', id: tag.id, field: 'person_id' },
    ])
    expect((await shown(`/leads/${lead.id}`)).person_id).toBe(other.id)
    expect((await shown(`/leads/${moved.id}`)).person_id).toBe(third.id)
    expect(await shown(`${persons}/${other.id}`)).toMatchObject({
      job_title: 'Analyst',
      tags: [],
      emails: [{ value: 'analyst@one.test' }],
    })
  })

  it('has a history with one entry, and that of the merged person', async () => {
    const [winner, other] = [await make.person(), await make.person({ name: 'Merged Person' })]
    await server.admin.put(`${persons}/${other.id}`, { job_title: 'Clerk' })
    await merge(persons, winner.id, [other.id])
    const { data } = (await server.admin.get(`${persons}/${winner.id}/history`)).body
    expect(data.map(({ name }: Json) => name)).toEqual([
      'contacts.person.merge.after',
      'contacts.person.delete.after',
      'contacts.person.update.after',
      'contacts.person.create.after',
      'contacts.person.create.after',
    ])
    expect(data[0].changes).toContainEqual({ key: 'merged', label: 'Merged', old: [], new: [other.id] })
  })

  it('keeps an external id without a place: filters, references and upserts find the person', async () => {
    const winner = await make.person({ external_ids: { erp: '1' } })
    const other = await make.person({ external_ids: { erp: '2' } })
    await merge(persons, winner.id, [other.id])
    const found = (await server.admin.get(`${persons}?external_id=erp:2`)).body.data
    expect(found.map(({ id }: Json) => id)).toEqual([winner.id])
    expect((await server.admin.put(`${persons}/external/erp/2`, { job_title: 'X' })).body.data.id).toBe(winner.id)
    const both = await server.admin.put(`${persons}/${winner.id}`, { external_ids: { erp: '2' } })
    expect(both.body.data.external_ids).toEqual({ erp: '1' })
    const taken = await server.admin.post(persons, { name: 'Other', external_ids: { erp: '2' } })
    expect(taken).toMatchObject({ status: 409, body: { conflicts: [{ id: winner.id }] } })
  })

  it('needs to see all persons, and redirects only to a person that the caller sees', async () => {
    const me = await addUser(server, 'Merger', { view: 'individual' })
    const [mine, theirs] = [await make.person({ user_id: me.id }), await make.person()]
    const refused = await me.post(`${persons}/${mine.id}/merge`, { ids: [theirs.id] })
    expect(refused).toMatchObject({ status: 422, body: { errors: { 'ids.0': [`No person has id ${theirs.id}.`] } } })
    await merge(persons, theirs.id, [mine.id])
    const { status, body } = await me.get(`${persons}/${mine.id}`)
    expect([status, body.code]).toEqual([404, 'not_found'])
  })

  it('comes back after the winner was deleted and restored, and not after 90 days', async () => {
    const [winner, other] = [await make.person(), await make.person()]
    await merge(persons, winner.id, [other.id])
    await server.admin.delete(`${persons}/${winner.id}`)
    expect((await server.admin.get(`${persons}/${other.id}`)).status).toBe(404)
    expect((await server.admin.post(`${persons}/${winner.id}/unmerge`, { id: other.id })).status).toBe(404)
    await server.admin.post(`${persons}/${winner.id}/restore`)
    expect((await server.admin.get(`${persons}/${other.id}`)).status).toBe(308)
    const day = 24 * 60 * 60 * 1000
    server.clock.advanceMs(89 * day)
    const run = { signal: new AbortController().signal } as never
    await prune.run(systemContext(server.app.services, 'cli'), { due: '' }, run)
    await unmerge(persons, winner.id, other.id)
    await merge(persons, winner.id, [other.id])
    server.clock.advanceMs(91 * day)
    const late = await server.admin.post(`${persons}/${winner.id}/unmerge`, { id: other.id })
    expect(late).toMatchObject({ status: 422, body: { errors: { id: [expect.stringContaining('90 days')] } } })
  })

  it('moves the values of custom attributes that name the person, and its unique values', async () => {
    for (const about of [
      { entity_type: 'leads', code: 'advisor', name: 'Advisor', type: 'lookup', lookup_type: 'persons' },
      { entity_type: 'persons', code: 'badge', name: 'Badge', type: 'text', is_unique: true },
    ])
      expect((await server.admin.post('/settings/attributes', about)).status).toBe(201)
    const winner = await make.person()
    const other = await make.person({ custom_attributes: { badge: 'B7' } })
    const lead = await make.lead({ custom_attributes: { advisor: other.id } })
    const before = await everything(server)
    await merge(persons, winner.id, [other.id])
    expect((await shown(`/leads/${lead.id}`)).custom_attributes.advisor).toBe(winner.id)
    const taken = await server.admin.post(persons, { name: 'Other', custom_attributes: { badge: 'b7' } })
    expect(taken).toMatchObject({ status: 409, body: { conflicts: [{ id: winner.id }] } })
    await unmerge(persons, winner.id, other.id)
    expect(await everything(server)).toEqual(before)
  })

  it('takes back the reference of the winner to the merged person', async () => {
    const about = { entity_type: 'persons', code: 'mentor', name: 'Mentor', type: 'lookup', lookup_type: 'persons' }
    expect((await server.admin.post('/settings/attributes', about)).status).toBe(201)
    const winner = await make.person()
    const other = await make.person({ custom_attributes: { mentor: winner.id } })
    await server.admin.put(`${persons}/${winner.id}`, { custom_attributes: { mentor: other.id } })
    const before = await everything(server)
    await merge(persons, winner.id, [other.id])
    expect((await unmerge(persons, winner.id, other.id)).meta.conflicts).toEqual([])
    expect(await everything(server)).toEqual(before)
  })

  it('leaves the customer of a sent quote', async () => {
    const [winner, other] = [await make.person(), await make.person({ name: 'Customer Then' })]
    const quote = await make.quote({ person_id: other.id })
    await server.admin.put(`/quotes/${quote.id}`, { status: 'sent' })
    const { customer } = await shown(`/quotes/${quote.id}`)
    await merge(persons, winner.id, [other.id])
    expect(await shown(`/quotes/${quote.id}`)).toMatchObject({ person_id: winner.id, customer })
  })
})

describe('mergeOrganizations', () => {
  it('moves persons, and what their names match, and comes back whole', async () => {
    const [winner, other] = [await make.organization(), await make.organization()]
    const one = await make.person({ name: 'Grace Hopper', organization_id: winner.id })
    const two = await make.person({ name: 'Grace Hópper', organization_id: other.id })
    const before = await everything(server)
    const { meta } = await merge(organizations, winner.id, [other.id])
    expect(meta.moved).toContainEqual({ type: 'persons', count: 1 })
    const found = (await server.admin.get(`${persons}/${one.id}/duplicates`)).body.data
    expect(found).toMatchObject([{ record: { id: two.id }, reasons: ['name'], score: 60 }])
    await unmerge(organizations, winner.id, other.id)
    expect(await everything(server)).toEqual(before)
  })
})

describe('listPersonsDuplicates', () => {
  it('lists pairs with reasons, of persons that the caller sees, and warns of them', async () => {
    const phone = [{ value: '+49 171 6543210' }]
    const one = await make.person({ contact_numbers: phone, emails: [{ value: 'jo+crm@firm.test' }] })
    const created = await server.admin.post(persons, {
      name: 'Jo',
      contact_numbers: [{ value: '0171 / 654 32 10' }],
      emails: [{ value: 'Jo@firm.test' }],
    })
    const two = created.body.data
    expect(created.body.meta.warnings.map(({ field }: Json) => field)).toEqual(['emails', 'contact_numbers'])
    const list = (await server.admin.get(`${persons}/duplicates?per_page=100`)).body.data
    const entry = list.find(({ record }: Json) => record.id === one.id)
    expect(entry.duplicates).toMatchObject([{ record: { id: two.id }, reasons: ['email', 'phone'], score: 100 }])
    expect(list.some(({ record }: Json) => record.id === two.id)).toBe(false)
    const me = await addUser(server, 'Looker', { view: 'individual' })
    expect((await me.get(`${persons}/duplicates`)).body.data).toEqual([])
    const quiet = await server.admin.put(`${persons}/${two.id}`, { job_title: 'X' })
    expect(quiet.body.meta).toBeUndefined()
  })

  it('lists organizations with the same name but for its form, and those of one domain', async () => {
    const { body } = await server.admin.post(organizations, { name: 'Müller Bau' })
    const other = await server.admin.post(organizations, { name: 'MULLER-BAU GmbH & Co. KG' })
    expect(other.body.meta.warnings).toMatchObject([{ field: 'name' }])
    const third = await make.organization()
    await make.person({ organization_id: body.data.id, emails: [{ value: 'a@muellerbau.test' }] })
    await make.person({ organization_id: third.id, emails: [{ value: 'b@muellerbau.test' }] })
    const found = (await server.admin.get(`${organizations}/${body.data.id}/duplicates`)).body.data
    expect(found.map(({ record, reasons }: Json) => [record.id, reasons])).toEqual([
      [other.body.data.id, ['name']],
      [third.id, ['domain']],
    ])
  })
})

describe('a merge', () => {
  it('knows every column that names records of several types', async () => {
    const { columns, foreignKeys } = await server.store.dialect.relations(server.store.db as never)
    const isKey = (table: string, column: string) =>
      foreignKeys.some((key) => key.table === table && key.column === column)
    const loose = [...columns].flatMap(([table, names]) =>
      [...names]
        .filter(
          (name) =>
            /(^|_)(entity|record|owner|to|from|merged|into|related)_id$/.test(name) &&
            !isKey(table, name) &&
            !table.startsWith('lead_'),
        )
        .map((name) => `${table}.${name}`),
    )
    // Each is moved (values, files, rules), follows from others, or tells what happened then.
    expect(loose.sort()).toEqual(looseReferences)
  })

  it('happens once when two callers merge the same persons', async () => {
    const [one, two] = [await make.person(), await make.person()]
    const replies = await Promise.all([
      server.admin.post(`${persons}/${one.id}/merge`, { ids: [two.id] }),
      server.admin.post(`${persons}/${two.id}/merge`, { ids: [one.id] }),
      server.admin.post(`${persons}/${one.id}/merge`, { ids: [two.id] }),
    ])
    expect(replies.filter(({ status }) => status === 200)).toHaveLength(1)
    for (const { status } of replies) expect([200, 308, 409, 422]).toContain(status)
    expect(await dangling(server)).toEqual([])
  })
})

const looseReferences = [
  'archives.entity_id',
  'archives.owner_id',
  'events.entity_id',
  'events.owner_id',
  'events.related_id',
  'files.owner_id',
  'import_records.record_id',
  'import_remainders.record_id',
  'organization_merges.into_id',
  'organization_merges.merged_id',
  'person_merges.into_id',
  'person_merges.merged_id',
  'search_index.entity_id',
  'stored_references.from_id',
  'stored_references.to_id',
  'unique_values.entity_id',
  'webhook_deliveries.entity_id',
  'workflow_occasions.entity_id',
  'workflow_runs.entity_id',
]
