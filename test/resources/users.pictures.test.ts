// The picture of a user: an administrator or the user sets it, and every UserRef
// shows it.
import { describe, expect, it } from 'vitest'
import type { Caller } from '../support/app.ts'
import { file, form } from '../support/form.ts'
import { given } from '../support/given.ts'
import { someone } from '../support/people.ts'
import { pixel } from '../support/pictures.ts'
import { useServer } from '../support/using.ts'

const server = useServer()

async function upload(content: string | Uint8Array = pixel, caller: Caller = server.admin): Promise<number> {
  const { body, headers } = await form({ file: file('me.png', content) })
  const { id } = (await caller.post('/files', body, { headers })).body.data
  server.events()
  return id
}

const urlOf = (id: number): string => `http://localhost:80/api/admin/files/${id}/download`
const filesIn = () =>
  server.store.db.selectFrom('files').select(['id', 'owner_type', 'owner_id']).orderBy('id').execute()
const updated = ['settings.user.update.before', 'settings.user.update.after']

describe('updateUser', () => {
  it('shows the picture with the user and wherever the user is named, to those who see neither users nor the file', async () => {
    const id = await upload()
    const { body } = await server.admin.put('/settings/users/1', { image_file_id: id })
    expect(body.data).toMatchObject({ image: `/api/admin/files/${id}/download`, image_url: urlOf(id), version: 2 })
    expect(server.events()).toEqual(updated)
    expect(server.seen).toEqual([])
    const { id: lead } = await given(server.admin).lead()
    const ann = await someone(server, ['leads.view'])
    expect((await ann.caller.get(`/leads/${lead}`)).body.data.user).toEqual({
      id: 1,
      name: 'Example Admin',
      email: 'admin@example.com',
      image_url: urlOf(id),
    })
    expect((await ann.caller.get(`/files/${id}/download`)).status).toBe(200)
  })

  it('takes the same picture again without a change, and copies one that belongs to another user', async () => {
    const ann = await someone(server, [])
    const id = await upload()
    await server.admin.put('/settings/users/1', { image_file_id: id })
    const again = await server.admin.put('/settings/users/1', { image_file_id: id })
    expect(again.body.data).toMatchObject({ image_url: urlOf(id), version: 2 })
    const { body } = await server.admin.put(`/settings/users/${ann.id}`, { image_file_id: id })
    const files = await filesIn()
    const copy = files[1]?.id ?? 0
    expect(body.data.image_url).toBe(urlOf(copy))
    expect(files).toEqual([
      { id, owner_type: 'users', owner_id: 1 },
      { id: copy, owner_type: 'users', owner_id: ann.id },
    ])
    expect(copy).toBeGreaterThan(id)
  })

  it('lets go of the old picture when it is replaced or removed, and of all when the user goes', async () => {
    const ann = await someone(server, [])
    const path = `/settings/users/${ann.id}`
    const [one, two] = [await upload(), await upload()]
    await server.admin.put(path, { image_file_id: one })
    await server.admin.put(path, { image_file_id: two })
    expect((await filesIn()).map(({ id }) => id)).toEqual([two])
    const { body } = await server.admin.put(path, { image_file_id: null })
    expect([body.data.image, body.data.image_url]).toEqual([null, null])
    expect(await filesIn()).toEqual([])
    await server.admin.put(path, { image_file_id: await upload() })
    await server.admin.delete(path)
    expect(await filesIn()).toEqual([])
  })

  it('refuses other file types, large files and invisible files, and changes nothing', async () => {
    const ann = await someone(server, [])
    const large = Buffer.concat([pixel, Buffer.alloc(5 * 1024 * 1024)])
    const cases: [id: number, sentence: string][] = [
      [
        await upload('no picture'),
        'Must be a file of type image/jpeg, image/png, image/gif, image/webp; this is text/plain.',
      ],
      [await upload('<svg xmlns="http://www.w3.org/2000/svg"/>'), expect.stringContaining('Must be a file of type')],
      [await upload(large), 'Must have at most 5 MiB.'],
      [await upload(pixel, ann.caller), expect.stringMatching(/^No file has id/)],
    ]
    for (const [id, sentence] of cases) {
      const { status, body } = await server.admin.put('/settings/users/1', { image_file_id: id })
      expect([status, body.errors]).toEqual([422, { image_file_id: [sentence] }])
    }
    expect(server.events()).toEqual([])
    expect((await server.admin.get('/settings/users/1')).body.data.image_url).toBeNull()
  })

  it('refuses a picture from callers who may not change the user', async () => {
    const boss = await server.as(1)
    const clerk = await someone(server, ['settings.user.users.edit'])
    const id = await upload(pixel, clerk.caller)
    expect((await clerk.caller.put('/settings/users/1', { image_file_id: id })).status).toBe(403)
    expect((await boss.get('/account')).body.data.image_url).toBeNull()
  })
})

describe('createUser', () => {
  it('takes a picture along', async () => {
    const id = await upload()
    const { body } = await server.admin.post('/settings/users', {
      name: 'Ada',
      email: 'ada@example.com',
      role_id: 1,
      image_file_id: id,
    })
    expect(body.data.image_url).toBe(urlOf(id))
    expect(server.events()).toEqual(['settings.user.create.before', 'settings.user.create.after'])
  })
})

describe('updateAccount', () => {
  it('sets and removes the own picture without the password', async () => {
    const ann = await someone(server, [])
    const id = await upload(pixel, ann.caller)
    const set = await ann.caller.put('/account', { image_file_id: id })
    expect([set.status, set.body.data.image_url, set.body.data.version]).toEqual([200, urlOf(id), 2])
    expect(server.events()).toEqual(['user.account.update.before', 'user.account.update.after'])
    const removed = await ann.caller.put('/account', { image_file_id: null })
    expect([removed.body.data.image_url, removed.body.data.version]).toEqual([null, 3])
    expect(await filesIn()).toEqual([])
  })

  it('refuses a file that is not a picture', async () => {
    const { status, body } = await server.admin.put('/account', { image_file_id: await upload('text') })
    expect([status, Object.keys(body.errors)]).toEqual([422, ['image_file_id']])
  })

  it('keeps the picture it has when only the password changes', async () => {
    const id = await upload()
    await server.admin.put('/account', { image_file_id: id })
    const fresh = 'a brand new password'
    const change = { password: fresh, password_confirmation: fresh, current_password: 'correct horse battery' }
    expect((await server.admin.put('/account', change)).body.data.image_url).toBe(urlOf(id))
  })
})
