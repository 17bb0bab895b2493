// Files of activities: uploads and forms with their events, the permission to download, and the
// deletion of files. files.test.ts tests files themselves.

import { describe, expect, it } from 'vitest'
import type { Schema } from '../../src/contract/types.ts'
import { Veto } from '../../src/kernel/write/events.ts'
import { startServer } from '../support/app.ts'
import { isPostgres } from '../support/engine.ts'
import { file, form } from '../support/form.ts'
import { given } from '../support/given.ts'
import { useServer } from '../support/using.ts'
import { addUser } from '../support/viewers.ts'

const server = useServer()
const { admin } = server
const make = given(admin)

const note = { type: 'note', comment: 'x' } as const
const pair = (base: string) => [`${base}.before`, `${base}.after`]

/** Uploads a file and returns its id. Discards the events of the upload. */
async function upload(name: string, content = 'Quarterly figures', caller = admin): Promise<number> {
  const { body, headers } = await form({ file: file(name, content) })
  const { body: reply } = await caller.post('/files', body, { headers })
  server.events()
  return reply.data.id
}

async function post(path: string, parts: Parameters<typeof form>[0], caller = admin) {
  const { body, headers } = await form(parts)
  return caller.post(path, body, { headers })
}

const show = async (id: number): Promise<Schema<'Activity'>> => (await admin.get(`/activities/${id}`)).body.data

describe('createActivity', () => {
  it('makes a file of uploads: done, without a schedule, and an event for each file behind its own', async () => {
    const [plan, sketch] = [await upload('plan.txt'), await upload('sketch.txt', 'Other')]
    const nine = { schedule_from: '2026-03-02T09:00:00.000Z', schedule_to: '2026-03-02T09:30:00.000Z' }
    const { status, body } = await admin.post('/activities', { type: 'file', ...nine, file_ids: [plan, sketch, plan] })
    expect(status).toBe(201)
    const path = `/api/admin/activities/${body.data.id}/files/${plan}/download`
    expect(body.data).toMatchObject({
      type: 'file',
      is_done: true,
      schedule_from: null,
      schedule_to: null,
      parent_id: null,
      additional: null,
      version: 1,
      files: [
        {
          id: plan,
          name: 'plan.txt',
          path,
          url: `http://localhost:80${path}`,
          size: 17,
          content_type: 'text/plain',
          created_at: '2026-03-01T09:30:00.000Z',
          updated_at: '2026-03-01T09:30:00.000Z',
        },
        { id: sketch, name: 'sketch.txt' },
      ],
    })
    const created = server.seen.find(({ name }) => name === 'activity.create.after')
    expect(created?.entity).toMatchObject({ id: body.data.id, files: [] })
    expect(server.seen.at(-1)).toMatchObject({
      entityType: 'activities',
      entityId: body.data.id,
      related: { type: 'files', id: sketch },
      entity: { activity_id: body.data.id, ...body.data.files[1] },
    })
    const [before, after] = pair('activities.file.create')
    expect(server.events()).toEqual([
      'activity.create.before',
      ...[before, before],
      'activity.create.after',
      ...[after, after],
    ])
    expect(await show(body.data.id)).toEqual(body.data)
  })

  it('takes the file along in a form, under the name that is sent', async () => {
    const lead = await make.lead()
    server.events()
    const { status, body } = await post('/activities', {
      type: 'file',
      name: 'The plan.txt',
      lead_ids: String(lead.id),
      participants: '{"users":[1]}',
      file: file('plan.txt'),
    })
    expect([status, body.errors, body.data?.lead_ids, body.data?.participants.length]).toEqual([
      201,
      undefined,
      [lead.id],
      1,
    ])
    expect(body.data.files).toMatchObject([{ name: 'The plan.txt', content_type: 'text/plain' }])
    expect(server.events()).toEqual([
      'activity.create.before',
      'activities.file.create.before',
      'activity.create.after',
      'activities.file.create.after',
    ])
  })

  it('reports a missing file, unknown uploads, uploads of other users and names without a file at once', async () => {
    const ada = await addUser(server, 'Ada', { view: 'individual' })
    const hers = await upload('hers.txt', 'Hers', ada)
    const refused = async (body: object, caller = admin) => {
      const { status, body: problem } = await caller.post('/activities', body)
      return [status, problem.errors]
    }
    const needed = ['A file is required: name an upload, or send a form with `file`.']
    expect(await refused({ type: 'file' })).toEqual([422, { file_ids: needed }])
    expect(await refused({ type: 'file', file_ids: [] })).toEqual([422, { file_ids: needed }])
    expect(await refused({ type: 'note', file_ids: [999, hers], name: 'x' })).toEqual([
      422,
      {
        comment: ['The field is required.'],
        'file_ids.0': ['No file has id 999.'],
        'file_ids.1': [`No file has id ${hers}.`],
        name: ['There is no `file` it could be the name of.'],
      },
    ])
    expect(await refused({ type: 'file', file: 'plan.txt' })).toMatchObject([422, { file: [expect.any(String)] }])
    expect((await post('/activities', { type: 'meeting', file: file('a.txt') })).status).toBe(422)
    expect(server.events()).toEqual([])
    expect((await admin.get('/activities')).body.meta.total).toBe(0)
    expect(await refused({ ...note, file_ids: [hers] }, ada)).toEqual([201, undefined])
  })
})

describe('attachActivityFile', () => {
  it('attaches an upload as a change of its own, with a name when there is one', async () => {
    const [plan, other] = [await upload('plan.txt'), await upload('other.txt', 'Other')]
    const { id } = await make.activity(note)
    server.events()
    const { status, body } = await admin.post(`/activities/${id}/files`, { file_id: plan, name: 'Plan A' })
    expect([status, body.data.id, body.data.name]).toEqual([201, plan, 'Plan A'])
    await admin.post(`/activities/${id}/files`, { file_id: other, name: null })
    expect(server.events()).toEqual([...pair('activities.file.create'), ...pair('activities.file.create')])
    expect(await show(id)).toMatchObject({ version: 3, files: [{ name: 'Plan A' }, { name: 'other.txt' }] })
    expect((await admin.get(`/activities/${id}/files`)).body.data).toEqual((await show(id)).files)
  })

  it('attaches what a form brings along', async () => {
    const { id } = await make.activity(note)
    server.events()
    const { status, body } = await post(`/activities/${id}/files`, { file: file('plan.txt'), name: '' })
    expect([status, body.data?.name]).toEqual([201, 'plan.txt'])
    // A transaction of PostgreSQL that runs again adds the file under another id, and asks again.
    const heard = server.events()
    expect(isPostgres ? [...new Set(heard)] : heard).toEqual(pair('activities.file.create'))
  })

  it('leaves a file that is attached as it is, and changes its name when another is sent', async () => {
    const plan = await upload('plan.txt')
    const { id } = await make.activity({ ...note, file_ids: [plan] } as never)
    server.events()
    const again = await admin.post(`/activities/${id}/files`, { file_id: plan })
    expect([again.status, again.body.data.name]).toEqual([201, 'plan.txt'])
    expect(server.events()).toEqual([])
    server.clock.advanceMs(1000)
    const named = await admin.post(`/activities/${id}/files`, { file_id: plan, name: 'Plan B' })
    expect(named.body.data).toMatchObject({ id: plan, name: 'Plan B', updated_at: '2026-03-01T09:30:01.000Z' })
    expect(server.seen.at(-1)).toMatchObject({ name: 'activity.update.after', changed: ['files'] })
    expect(await show(id)).toMatchObject({ version: 2, files: [{ id: plan, name: 'Plan B' }] })
  })

  it('copies a file of another activity, so that each can lose its own', async () => {
    const plan = await upload('plan.txt')
    const one = await make.activity({ ...note, file_ids: [plan] } as never)
    const two = await make.activity(note)
    const { body } = await admin.post(`/activities/${two.id}/files`, { file_id: plan })
    expect(body.data.id).not.toBe(plan)
    server.events()
    const again = await admin.post(`/activities/${two.id}/files`, { file_id: plan, name: 'plan.txt' })
    expect([again.status, again.body.data]).toEqual([201, body.data])
    expect(server.events()).toEqual([])
    expect((await show(two.id)).files).toHaveLength(1)
    await admin.delete(`/activities/${one.id}/files/${plan}`)
    expect((await admin.get(`/activities/${two.id}/files/${body.data.id}/download`)).text).toBe('Quarterly figures')
  })

  it('needs one file that the caller sees, and an activity that the caller sees', async () => {
    const ada = await addUser(server, 'Ada', { view: 'individual' })
    const mine = await upload('mine.txt')
    const [hers, other] = [await make.activity({ ...note, user_id: ada.id }), await make.activity(note)]
    server.events()
    const status = async (id: number, body: object) => (await ada.post(`/activities/${id}/files`, body)).status
    expect(await status(hers.id, { file_id: mine })).toBe(422)
    expect(await status(hers.id, {})).toBe(422)
    expect(await status(other.id, { file_id: mine })).toBe(404)
    expect((await post(`/activities/${hers.id}/files`, { file_id: String(mine), file: file('a.txt') })).status).toBe(
      422,
    )
    expect(server.events()).toEqual([])
  })

  it('keeps nothing of a file whose attaching a listener refuses, or that is only tried', async () => {
    const strict = await startServer({
      extensions: [
        (events) =>
          events.on('activities.file.create.before', () => {
            throw new Veto('No files here.')
          }),
      ],
    })
    try {
      const { id } = await given(strict.admin).activity(note)
      expect((await post(`/activities/${id}/files`, { file: file('a.txt') }, strict.admin)).status).toBe(403)
      expect(await strict.store.db.selectFrom('files').selectAll().execute()).toEqual([])
    } finally {
      await strict.close()
    }
    const plan = await upload('plan.txt')
    const { id } = await make.activity(note)
    const dry = { headers: { 'accord-dry-run': 'true' } }
    expect((await admin.post(`/activities/${id}/files`, { file_id: plan }, dry)).status).toBe(200)
    expect((await show(id)).files).toEqual([])
  })
})

describe('downloadActivityFile', () => {
  it('sends the bytes, or a requested range, under the attached name to users who see the activity', async () => {
    const ada = await addUser(server, 'Ada', { view: 'individual' })
    const plan = await upload('plan.txt')
    const { id } = await make.activity({ ...note, participants: { users: [ada.id] } })
    await admin.post(`/activities/${id}/files`, { file_id: plan, name: 'Plan A.txt' })
    const path = `/activities/${id}/files/${plan}/download`
    const whole = await ada.get(path)
    expect([whole.status, whole.text]).toEqual([200, 'Quarterly figures'])
    expect(whole.headers).toMatchObject({
      'content-type': 'text/plain; charset=utf-8',
      'content-disposition': 'attachment; filename="Plan A.txt"',
    })
    const part = await ada.get(path, { headers: { range: 'bytes=0-8' } })
    expect([part.status, part.text, part.headers['content-range']]).toEqual([206, 'Quarterly', 'bytes 0-8/17'])
    expect((await ada.get(path, { headers: { 'if-none-match': String(whole.headers.etag) } })).status).toBe(304)
    const bob = await addUser(server, 'Bob', { view: 'individual' })
    expect((await bob.get(path)).status).toBe(404)
    expect((await bob.get(`/files/${plan}`)).status).toBe(404)
    expect((await ada.get(`/files/${plan}`)).status).toBe(200)
    expect((await ada.get(`/activities/${id}/files/999/download`)).status).toBe(404)
  })
})

describe('detachActivityFile', () => {
  it('removes the file and deletes it, as a change of its own', async () => {
    const plan = await upload('plan.txt')
    const { id, files } = await make.activity({ ...note, file_ids: [plan] } as never)
    server.events()
    expect((await admin.delete(`/activities/${id}/files/${plan}`)).body).toEqual({
      message: 'File removed from the activity.',
    })
    expect(server.seen.at(-1)).toMatchObject({ before: { activity_id: id, ...files[0] }, related: { id: plan } })
    expect(server.events()).toEqual(pair('activities.file.delete'))
    expect(await show(id)).toMatchObject({ version: 2, files: [] })
    expect((await admin.get(`/files/${plan}`)).status).toBe(404)
    expect((await admin.delete(`/activities/${id}/files/${plan}`)).status).toBe(404)
  })

  it('does nothing to a version it was not meant for', async () => {
    const plan = await upload('plan.txt')
    const { id } = await make.activity({ ...note, file_ids: [plan] } as never)
    const path = `/activities/${id}/files/${plan}`
    expect((await admin.delete(path, { headers: { 'if-match': '"7"' } })).status).toBe(412)
    expect((await admin.delete(path, { headers: { 'if-match': '"1"' } })).status).toBe(200)
  })
})

describe('deleteActivity', () => {
  it('takes the files out of reach, and restoring brings them back', async () => {
    const plan = await upload('plan.txt')
    const { id, files } = await make.activity({ ...note, file_ids: [plan] } as never)
    server.events()
    expect((await admin.delete(`/activities/${id}`)).status).toBe(200)
    expect(server.events()).toEqual(pair('activity.delete'))
    expect((await admin.get(`/files/${plan}`)).status).toBe(404)
    const { status, body } = await admin.post(`/activities/${id}/restore`)
    expect([status, body.data.files, body.meta.dropped]).toEqual([200, files, []])
    expect((await admin.get(`/activities/${id}/files/${plan}/download`)).text).toBe('Quarterly figures')
  })
})
