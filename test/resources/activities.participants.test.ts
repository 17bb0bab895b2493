// Rules of activities, second part: participants, and overlapping meetings of a user, which are
// refused.
import { describe, expect, it } from 'vitest'
import type { Schema } from '../../src/contract/types.ts'
import { type Caller, start } from '../support/app.ts'
import { given } from '../support/given.ts'
import { useServer } from '../support/using.ts'
import { addUser } from '../support/viewers.ts'

const server = useServer()
const { admin } = server
const make = given(admin)

const note = { type: 'note', comment: 'x' } as const
const at = (from: string, to: string) => ({
  schedule_from: `2026-03-02T${from}:00.000Z`,
  schedule_to: `2026-03-02T${to}:00.000Z`,
})
const meeting = (from: string, to: string) => ({ type: 'meeting', title: 'Review', ...at(from, to) }) as const
const who = ({ participants }: Schema<'Activity'>) => participants.map(({ user, person }) => user?.name ?? person?.name)

describe('createActivity', () => {
  it('takes participants as two lists of ids, or one by one in the form it shows', async () => {
    const person = await make.person({ name: 'Grace' })
    const lists = await make.activity({ ...note, participants: { users: [1, 1], persons: [person.id] } })
    expect(who(lists)).toEqual(['Example Admin', 'Grace'])
    expect(lists.participants.every(({ user, person }) => (user === null) !== (person === null))).toBe(true)
    const single = await make.activity({
      ...note,
      participants: [{ person_id: person.id }, { user_id: 1, person_id: null }],
    })
    expect(who(single)).toEqual(['Grace', 'Example Admin'])
    const copied = await make.activity({ ...note, participants: lists.participants as never })
    expect(who(copied)).toEqual(['Example Admin', 'Grace'])
    expect(copied.participants[0]?.id).not.toBe(lists.participants[0]?.id)
  })

  it('refuses participants that name no one, a user and a person, or an invisible record, each at its place', async () => {
    const ada = await addUser(server, 'Ada', { view: 'individual' })
    const person = await make.person()
    const refused = async (participants: unknown, caller = admin) => {
      const { status, body } = await caller.post('/activities', { ...note, participants })
      return [status, Object.keys(body.errors)]
    }
    expect(await refused([{}])).toEqual([422, ['participants.0']])
    expect(await refused([{ user_id: 1 }, { user_id: 1, person_id: person.id }])).toEqual([422, ['participants.1']])
    expect(await refused([{ user: { name: 'No id' } }])).toEqual([422, ['participants.0']])
    expect(await refused([{ user: { id: '1' } }])).toEqual([422, ['participants.0']])
    expect(await refused([{ id: 77 }])).toEqual([422, ['participants.0']])
    expect(await refused({ users: [1, 999] })).toEqual([422, ['participants.users.1']])
    expect(await refused({ users: [1], persons: [person.id] }, ada)).toEqual([422, ['participants.persons.0']])
    const gone = await addUser(server, 'Gone', { isActive: false })
    expect(await refused({ users: [gone.id] })).toEqual([422, ['participants.users.0']])
    expect((await admin.get('/activities')).body.meta.total).toBe(0)
  })

  it('takes at most 100 participants, users and persons together', async () => {
    const insert = (count: number) =>
      Array.from({ length: count }, (_, index) => ({
        name: `P${index}`,
        name_key: `p${index}`,
        emails: '[]',
        user_id: 1,
        created_at: start,
        updated_at: start,
      }))
    const rows = await server.store.db.insertInto('persons').values(insert(100)).returning('id').execute()
    const persons = rows.map(({ id }) => id)
    expect((await admin.post('/activities', { ...note, participants: { persons } })).status).toBe(201)
    const { status, body } = await admin.post('/activities', { ...note, participants: { users: [1], persons } })
    expect([status, body.errors]).toEqual([422, { participants: ['Must not have more than 100 entries.'] }])
  })

  it('refuses a meeting that overlaps another open one of its owner or a participant, and names it', async () => {
    const ada = await addUser(server, 'Ada')
    const person = await make.person()
    const first = await make.activity({
      ...meeting('09:00', '10:00'),
      participants: { users: [ada.id], persons: [person.id] },
    })
    server.events()
    for (const body of [
      meeting('09:59', '11:00'),
      { ...meeting('08:00', '09:01'), user_id: ada.id },
      { ...meeting('09:15', '09:30'), user_id: null, participants: { persons: [person.id] } },
      { ...meeting('08:00', '12:00'), user_id: null, participants: { users: [1] } },
    ]) {
      const { status, body: problem } = await admin.post('/activities', body)
      expect([status, problem.code]).toEqual([409, 'schedule_conflict'])
      expect(problem.conflicts).toEqual([{ entity_type: 'activities', id: first.id, field: 'schedule_from' }])
    }
    expect(server.events()).toEqual([])
    expect((await admin.get('/activities')).body.meta.total).toBe(1)
  })

  it('lets meetings touch, other people meet, and everything but open meetings overlap', async () => {
    const ada = await addUser(server, 'Ada')
    await make.activity(meeting('09:00', '10:00'))
    await make.activity({ ...meeting('09:00', '10:00'), type: 'call' })
    await make.activity({ ...meeting('09:00', '10:00'), is_done: true })
    await make.activity({ ...meeting('10:00', '11:00') })
    await make.activity({ ...meeting('09:00', '10:00'), user_id: ada.id })
    await make.activity({ ...meeting('09:00', '10:00'), user_id: null })
    await make.activity({ ...meeting('09:00', '10:00'), allow_overlap: true })
    expect((await admin.get('/activities')).body.meta.total).toBe(7)
  })

  it('does not give away a meeting the caller may not see', async () => {
    const ada = await addUser(server, 'Ada', { view: 'individual' })
    const person = await make.person({ user_id: ada.id })
    await make.activity({ ...meeting('09:00', '10:00'), participants: { persons: [person.id] } })
    const { status, body } = await ada.post('/activities', {
      ...meeting('09:00', '10:00'),
      participants: { persons: [person.id] },
    })
    expect([status, body.conflicts]).toEqual([409, [{ entity_type: 'activities', id: null, field: 'schedule_from' }]])
  })
})

describe('updateActivity', () => {
  it('takes participants as the complete set, keeps those who stay and counts it as a change', async () => {
    const [grace, alan] = [await make.person({ name: 'Grace' }), await make.person({ name: 'Alan' })]
    const activity = await make.activity({ ...note, participants: { users: [1], persons: [grace.id] } })
    server.events()
    const { body } = await admin.put(`/activities/${activity.id}`, {
      participants: [activity.participants[1], { person_id: alan.id }],
    })
    expect(who(body.data)).toEqual(['Grace', 'Alan'])
    expect(body.data.participants[0]).toEqual(activity.participants[1])
    expect(body.data.version).toBe(2)
    expect(server.seen.at(-1)).toMatchObject({ name: 'activity.update.after', changed: ['participants'] })
    const byId = await admin.put(`/activities/${activity.id}`, { participants: [{ id: body.data.participants[0].id }] })
    expect(who(byId.body.data)).toEqual(['Grace'])
    expect(who((await admin.put(`/activities/${activity.id}`, { comment: 'y' })).body.data)).toEqual(['Grace'])
    expect(who((await admin.put(`/activities/${activity.id}`, { participants: [] })).body.data)).toEqual([])
  })

  it('changes nothing when the same participants are sent in another order', async () => {
    const person = await make.person()
    const activity = await make.activity({ ...note, participants: { users: [1], persons: [person.id] } })
    const { body } = await admin.put(`/activities/${activity.id}`, {
      participants: [{ person_id: person.id }, { user_id: 1 }],
    })
    expect(body.data).toEqual(activity)
  })

  it('checks a meeting again when its time, owner or participants change, and only then', async () => {
    const ada = await addUser(server, 'Ada')
    await make.activity({ ...meeting('09:00', '10:00'), participants: { users: [ada.id] } })
    const other = await make.activity({ ...meeting('11:00', '12:00') })
    const change = async (body: object) => (await admin.put(`/activities/${other.id}`, body)).status
    expect(await change(at('09:30', '10:30'))).toBe(409)
    expect(await change({ ...at('09:30', '10:30'), allow_overlap: true })).toBe(200)
    expect(await change({ title: 'Renamed', ...at('09:30', '10:30') })).toBe(200)
    expect(await change({ user_id: null })).toBe(200)
    expect(await change({ user_id: ada.id })).toBe(409)
    expect(await change({ participants: { users: [1] } })).toBe(409)
    expect(await change({ participants: { users: [1] }, is_done: true })).toBe(200)
    expect((await admin.get(`/activities/${other.id}`)).body.data).toMatchObject({
      title: 'Renamed',
      user_id: null,
      is_done: true,
    })
  })

  it('checks a meeting again when it is opened again, one by one and in mass', async () => {
    await make.activity(meeting('09:00', '10:00'))
    const { id } = await make.activity({ ...meeting('09:30', '10:30'), is_done: true })
    server.events()
    const { status, body } = await admin.put(`/activities/${id}`, { is_done: false })
    expect([status, body.code]).toEqual([409, 'schedule_conflict'])
    const mass = await admin.post('/activities/mass-update', { ids: [id], value: false })
    expect(mass.body.failed).toMatchObject([{ id, status: 409, code: 'schedule_conflict' }])
    expect(server.events()).toEqual([])
    expect((await admin.put(`/activities/${id}`, { is_done: false, allow_overlap: true })).body.data.is_done).toBe(
      false,
    )
  })

  it('does not stand in its own way', async () => {
    const { id } = await make.activity(meeting('09:00', '10:00'))
    expect((await admin.put(`/activities/${id}`, at('09:15', '10:15'))).status).toBe(200)
  })
})

describe('deleteUser', () => {
  it('gives meetings to a user who is busy at that time', async () => {
    const [ada, bob] = [await addUser(server, 'Ada'), await addUser(server, 'Bob')]
    const hers = await make.activity({ ...meeting('09:00', '10:00'), user_id: ada.id })
    await make.activity({ ...meeting('09:00', '10:00'), user_id: bob.id })
    expect((await admin.delete(`/settings/users/${ada.id}?reassign_to=${bob.id}`)).status).toBe(200)
    expect((await admin.get(`/activities/${hers.id}`)).body.data.user_id).toBe(bob.id)
  })
})

describe('getActivity with include=participants', () => {
  it('keeps each reference that the role or the token may not show in full', async () => {
    const person = await make.person({ name: 'Grace' })
    const { id } = await make.activity({ ...note, participants: { users: [1], persons: [person.id] } })
    const path = `/activities/${id}?include=participants`
    const [user, grace] = (await admin.get(`/activities/${id}`)).body.data.participants
    const shown = async (caller: Caller) => (await caller.get(path)).body.data.participants
    const full = await shown(admin)
    expect(full).toMatchObject([{ user: { role_id: 1 } }, { person: { leads_count: 0 } }])
    const ada = await addUser(server, 'Ada', { permissions: ['activities', 'contacts.persons.view'] })
    expect(await shown(ada)).toEqual([user, full[1]])
    expect(await shown(await server.as(1, ['activities:read', 'users:read']))).toEqual([full[0], grace])
  })
})
