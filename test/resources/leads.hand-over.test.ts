// The hand-over of leads: who gets them, what goes with them, and what its dry run says.
import { beforeEach, describe, expect, it } from 'vitest'
import type { Caller } from '../support/app.ts'
import { given } from '../support/given.ts'
import { useServer } from '../support/using.ts'
import { addUser, type Someone } from '../support/viewers.ts'

type User = Caller & { id: number }

const server = useServer()
const { admin } = server
const make = given(admin)
const everything = ['person', 'organization', 'quotes', 'activities']

let former: User
let next: User

const user = (name: string, about: Someone = { view: 'individual' }) => addUser(server, name, about)

beforeEach(async () => {
  former = await user('Former')
  next = await user('Next')
})

/** Creates a lead of a user with person, organization, quote, an open and a done activity. */
async function deal(user_id: number) {
  const organization = await make.organization({ user_id })
  const person = await make.person({ user_id, organization_id: organization.id })
  const lead = await make.lead({ user_id, person_id: person.id })
  const quote = await make.quote({ user_id, person_id: person.id, lead_id: lead.id })
  const call = {
    type: 'call',
    title: 'Call',
    schedule_from: '2026-07-01T09:00:00Z',
    schedule_to: '2026-07-01T10:00:00Z',
  } as const
  const open = await make.activity({ ...call, user_id, lead_id: lead.id, allow_overlap: true })
  const done = await make.activity({ type: 'note', comment: 'x', user_id, lead_id: lead.id, is_done: true })
  const ids = [
    `/leads/${lead.id}`,
    `/contacts/persons/${person.id}`,
    `/contacts/organizations/${organization.id}`,
    `/quotes/${quote.id}`,
    `/activities/${open.id}`,
    `/activities/${done.id}`,
  ]
  return { lead, person, quote, ids }
}

const ownersOf = (paths: readonly string[]): Promise<number[]> =>
  Promise.all(paths.map(async (path) => (await admin.get(path)).body.data.user_id))

describe('handOverLeads', () => {
  it('gives a lead with all that had its owner to another user, and the owner sees nothing of it any more', async () => {
    const { lead, ids } = await deal(former.id)
    server.events()
    const body = { lead_ids: [lead.id], user_ids: [next.id], with: everything }
    const tried = await former.post('/leads/hand-over', body, { headers: { 'accord-dry-run': 'true' } })
    const counts = { leads: 1, persons: 1, organizations: 1, quotes: 1, activities: 1, remaining: 0 }
    expect([tried.status, tried.body.data]).toEqual([200, counts])
    expect(await ownersOf(ids)).toEqual(ids.map(() => former.id))
    const done = await former.post('/leads/hand-over', body)
    expect([done.status, done.body]).toEqual([200, { data: counts, message: '1 lead handed over.' }])
    expect(await ownersOf(ids)).toEqual([...ids.slice(0, 5).map(() => next.id), former.id])
    for (const path of ids.slice(0, 5)) {
      expect((await next.get(path)).status).toBe(200)
      expect((await former.get(path)).status).toBe(404)
    }
    expect(server.events().filter((name) => name.endsWith('update.after'))).toHaveLength(5)
  })

  it('leaves what it does not name, and what another user owns', async () => {
    const { lead, person, ids } = await deal(former.id)
    await admin.put(`/contacts/persons/${person.id}`, { user_id: 1 })
    const { body } = await admin.post('/leads/hand-over', {
      lead_ids: [lead.id],
      user_ids: [next.id],
      with: ['person'],
    })
    expect(body.data).toMatchObject({ leads: 1, persons: 0, quotes: 0 })
    expect(await ownersOf(ids)).toEqual([next.id, 1, former.id, former.id, former.id, former.id])
    // The lead shows its person and quotes to the new owner all the same.
    for (const path of ids) expect((await next.get(path)).status).toBe(200)
  })

  it('deals leads out in turns, and keeps those of one person together', async () => {
    const other = await user('Other')
    const [one, two, three] = [await deal(former.id), await deal(former.id), await deal(former.id)]
    const again = await make.lead({ user_id: former.id, person_id: one.person.id })
    const leads = [one.lead.id, two.lead.id, three.lead.id, again.id]
    const body = { lead_ids: leads, user_ids: [next.id, other.id] }
    expect((await admin.post('/leads/hand-over', body)).body.data.leads).toBe(4)
    expect(await ownersOf(leads.map((id) => `/leads/${id}`))).toEqual([next.id, other.id, next.id, next.id])
    expect((await admin.post('/leads/hand-over', body)).body.data.leads).toBe(0)
  })

  it('changes nothing unless it may change everything', async () => {
    const { lead, ids } = await deal(former.id)
    const hidden = await make.lead()
    const gone = await user('Gone', { isActive: false })
    const refused = async (caller: Caller, body: object) => {
      const answer = await caller.post('/leads/hand-over', { lead_ids: [lead.id], user_ids: [next.id], ...body })
      return [answer.status, answer.body.required ?? Object.keys(answer.body.errors)]
    }
    expect(await refused(former, { lead_ids: [lead.id, hidden.id] })).toEqual([422, ['lead_ids.1']])
    expect(await refused(admin, { user_ids: [next.id, gone.id] })).toEqual([422, ['user_ids.1']])
    const seller = await user('Seller', { permissions: ['leads', 'leads.edit'] })
    expect(await refused(seller, { with: ['person'] })).toEqual([403, 'contacts.persons.edit'])
    expect(await ownersOf(ids)).toEqual(ids.map(() => former.id))
  })
})

describe('handOverUser', () => {
  it('hands over up to 100 leads of a user and counts the others', async () => {
    const { lead } = await deal(former.id)
    const {
      id: _id,
      version: _version,
      ...row
    } = await server.store.db.selectFrom('leads').selectAll().where('id', '=', lead.id).executeTakeFirstOrThrow()
    await server.store.db
      .insertInto('leads')
      .values(Array.from({ length: 101 }, () => row))
      .execute()
    const path = `/settings/users/${former.id}/hand-over`
    const body = { user_ids: [next.id], with: everything }
    const first = await admin.post(path, body)
    expect(first.body.data).toEqual({
      leads: 100,
      persons: 1,
      organizations: 1,
      quotes: 1,
      activities: 1,
      remaining: 2,
    })
    expect((await admin.post(path, body)).body.data).toMatchObject({ leads: 2, persons: 0, remaining: 0 })
    expect((await admin.post(path, body)).body.data).toMatchObject({ leads: 0, remaining: 0 })
    expect((await admin.post('/settings/users/999/hand-over', body)).status).toBe(404)
    const kept = await make.lead({ user_id: former.id })
    // The user is left out of the new owners.
    expect((await admin.post(path, { user_ids: [former.id] })).body.data).toMatchObject({ leads: 0, remaining: 1 })
    expect((await admin.post(path, { user_ids: [former.id, next.id] })).body.data.leads).toBe(1)
    expect(await ownersOf([`/leads/${kept.id}`])).toEqual([next.id])
  })
})

describe('listColleagues', () => {
  it('names all active users to every user, whatever they may see, and takes no secret along', async () => {
    await user('Gone', { isActive: false })
    const clerk = await user('Clerk', { view: 'individual', permissions: [] })
    const { status, body } = await clerk.get('/colleagues')
    expect([status, body.data.map(({ name }: any) => name)]).toEqual([
      200,
      ['Clerk', 'Example Admin', 'Former', 'Next'],
    ])
    expect(body.data[0]).toEqual({ id: clerk.id, name: 'Clerk', image_url: null })
    expect((await clerk.get('/colleagues?q=form')).body.data).toMatchObject([{ id: former.id }])
    expect((await clerk.get('/settings/users')).status).toBe(403)
  })

  it('lets a user invite and assign a colleague out of view, by id and by address', async () => {
    const lead = await make.lead({ user_id: next.id })
    const activity = { type: 'note', comment: 'x', participants: { users: [former.id] } }
    expect((await next.post('/activities', activity)).status).toBe(201)
    const given = await next.put(`/leads/${lead.id}`, { user_id: { email: 'former@example.com' } })
    expect([given.status, given.body.data?.user_id]).toEqual([200, former.id])
    expect((await next.get(`/leads/${lead.id}`)).status).toBe(404)
  })
})
