// Merging persons and organizations, and taking merges back: what the record of the merge gets, and
// what comes back.
import { sql } from 'kysely'
import { describe, expect, it } from 'vitest'
import { given } from '../support/given.ts'
import { everything } from '../support/merges.ts'
import { useServer } from '../support/using.ts'
import { addUser } from '../support/viewers.ts'

const server = useServer()
const make = given(server.admin)

// biome-ignore lint/suspicious/noExplicitAny: replies of many operations
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
})
