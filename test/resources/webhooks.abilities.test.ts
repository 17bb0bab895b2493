// A token can save only webhooks whose records its abilities allow to read, because they are sent
// later with all rights of the user.
import { expect, it } from 'vitest'
import { unique } from '../support/given.ts'
import { useSharedServer } from '../support/using.ts'

const path = '/settings/webhooks'
const server = useSharedServer()

const body = (changes: object = {}) => ({
  name: `Hook ${unique()}`,
  url: 'https://receiver.example/hook',
  events: ['lead.update.after'],
  ...changes,
})
const tokenWith = (...abilities: string[]) => server.as(1, ['automation:*', ...abilities])

it.each([
  ['leads:read', {}, []],
  ['persons:read', { events: ['contacts.person.*'] }, ['leads:*']],
  ['leads:read', { events: ['lead.won', 'contacts.person.create.after'] }, ['persons:read']],
  ['emails:read', { events: ['*'], entity_type: 'emails' }, ['leads:*', 'persons:*']],
])(
  'needs %s for a new webhook that tells of it, for a change of one, and for a new secret',
  async (required, changes, abilities) => {
    const caller = await tokenWith(...abilities)
    const refused = await caller.post(path, body(changes))
    expect([refused.status, refused.body.code, refused.body.required]).toEqual([403, 'forbidden', required])

    const { id } = (await server.admin.post(path, body(changes))).body.data
    expect((await caller.put(`${path}/${id}`, { description: 'Changed' })).body.required).toBe(required)
    expect((await caller.post(`${path}/${id}/rotate-secret`)).body.required).toBe(required)
    expect((await server.admin.get(`${path}/${id}`)).body.data.changed_by.id).toBe(1)

    const able = await tokenWith(...abilities, required)
    expect((await able.post(path, body(changes))).status).toBe(201)
    expect((await able.put(`${path}/${id}`, { description: 'Changed' })).status).toBe(200)
    expect((await able.post(`${path}/${id}/rotate-secret`)).status).toBe(200)
  },
)

it('needs every ability to read for a webhook that tells of everything', async () => {
  expect((await (await tokenWith('leads:*', 'persons:*')).post(path, body({ events: ['*'] }))).status).toBe(403)
  expect((await (await tokenWith('*:read')).post(path, body({ events: ['*'] }))).status).toBe(201)
})

it('asks nothing of a change that changes nothing, which lends no rights', async () => {
  const sent = body()
  const { id } = (await server.admin.post(path, sent)).body.data
  expect((await (await tokenWith()).put(`${path}/${id}`, sent)).status).toBe(200)
})
