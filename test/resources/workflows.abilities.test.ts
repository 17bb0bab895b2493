// A token can save only workflows whose actions its abilities allow, because they run later with
// all rights of the user.
import { expect, it } from 'vitest'
import { unique } from '../support/given.ts'
import { useSharedServer } from '../support/using.ts'
import { path, set } from '../support/workflows.ts'

const server = useSharedServer()

const body = (actions: object[], changes: object = {}) => ({
  ...{ name: `Workflow ${unique()}`, entity_type: 'leads', event: 'lead.update.after', actions },
  ...changes,
})
const note = { id: 'add_note_as_activity', value: 'Noted' }
const tokenWith = (...abilities: string[]) => server.as(1, ['automation:*', ...abilities])

it.each([
  ['leads:read', [note], ['activities:write']],
  ['activities:write', [note], ['leads:*']],
  ['leads:write', [set('title', 'Taken')], ['leads:read']],
  ['persons:write', [set('job_title', 'Taken', 'update_person')], ['leads:*', 'persons:read']],
  // The action creates the tag if it does not exist.
  ['settings:write', [{ id: 'add_tag', value: 'Taken' }], ['leads:*']],
])('needs %s for a new workflow that uses it, and for a change of one', async (required, actions, abilities) => {
  const caller = await tokenWith(...abilities)
  const refused = await caller.post(path, body(actions))
  expect([refused.status, refused.body.code, refused.body.required]).toEqual([403, 'forbidden', required])

  const { id } = (await server.admin.post(path, body(actions))).body.data
  expect((await caller.put(`${path}/${id}`, { description: 'Changed' })).body.required).toBe(required)
  const { changed_by, description } = (await server.admin.get(`${path}/${id}`)).body.data
  expect([changed_by.id, description]).toEqual([1, null])

  const able = await tokenWith(...abilities, required)
  expect((await able.post(path, body(actions))).status).toBe(201)
  expect((await able.put(`${path}/${id}`, { description: 'Changed' })).status).toBe(200)
})

it('asks nothing of a change that changes nothing, which lends no rights', async () => {
  const sent = body([note])
  const { id } = (await server.admin.post(path, sent)).body.data
  expect((await (await tokenWith()).put(`${path}/${id}`, sent)).status).toBe(200)
})
