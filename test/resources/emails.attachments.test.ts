// Attachments of mails: a JSON body replaces the list, a form adds files, callers
// who see the mail can download them, they are deleted with the mail, and inline pictures have
// links that work without a token.
import { describe, expect, it } from 'vitest'
import type { Schema } from '../../src/contract/types.ts'
import type { Caller } from '../support/app.ts'
import { file, form } from '../support/form.ts'
import { someone } from '../support/people.ts'
import { pixel } from '../support/pictures.ts'
import { useServer } from '../support/using.ts'

type Email = Schema<'Email'>

const server = useServer()

async function uploaded(
  name: string,
  content: string | Uint8Array = name,
  caller: Caller = server.admin,
): Promise<number> {
  const { body, headers } = await form({ file: file(name, content) })
  const { body: reply } = await caller.post('/files', body, { headers })
  server.events()
  return reply.data.id
}

async function written(changes: Record<string, unknown> = {}): Promise<Email> {
  const letter = { subject: 'Offer', html: '<p>See below.</p>', to: ['ada@example.com'], is_draft: true }
  const { status, body, text } = await server.admin.post('/emails', { ...letter, ...changes })
  if (status !== 201) throw new Error(text)
  return body.data
}

const names = (mail: Email): string[] => mail.attachments.map(({ name }) => name)
const fileIds = (mail: Email): number[] => mail.attachments.map(({ file_id }) => file_id)
const rows = () => server.store.db.selectFrom('files').select(['id', 'owner_type', 'owner_id']).orderBy('id').execute()

describe('attachment_ids', () => {
  it('attaches uploads with the pair of the mail, and shows where to get them', async () => {
    const [one, two] = [await uploaded('one.txt'), await uploaded('two.txt')]
    const mail = await written({ attachment_ids: [one, two, one] })
    const id = mail.attachments[0]?.id
    const path = `/api/admin/emails/${mail.id}/attachments/${id}/download`
    expect(mail.attachments[0]).toEqual({
      id: expect.any(Number),
      file_id: one,
      name: 'one.txt',
      path,
      url: `http://localhost:80${path}`,
      size: 7,
      content_type: 'text/plain',
      content_id: null,
      created_at: mail.created_at,
      updated_at: mail.created_at,
    })
    expect(names(mail)).toEqual(['one.txt', 'two.txt'])
    expect(server.events()).toEqual(['email.create.before', 'email.create.after'])
    const { body } = await server.admin.get('/emails?has_attachments=true')
    expect(body.data.map(({ id }: Email) => id)).toEqual([mail.id])
    expect((await server.admin.delete(`/files/${one}`)).status).toBe(409)
  })

  it('is the complete list on a change: keeps, adds and removes', async () => {
    const [one, two, three] = [await uploaded('1.txt'), await uploaded('2.txt'), await uploaded('3.txt')]
    const mail = await written({ attachment_ids: [one, two] })
    server.events()
    const { body } = await server.admin.put(`/emails/${mail.id}`, { attachment_ids: [two, three] })
    expect(names(body.data)).toEqual(['2.txt', '3.txt'])
    expect(body.data.attachments[0].id).toBe(mail.attachments[1]?.id)
    expect([body.data.version, server.seen.at(-1)?.changed]).toEqual([2, ['attachments']])
    expect((await rows()).map(({ id }) => id)).toEqual([two, three])
    const same = await server.admin.put(`/emails/${mail.id}`, { attachment_ids: fileIds(body.data), ...body.data })
    expect([same.status, same.body.data.version]).toEqual([200, 2])
    const none = await server.admin.put(`/emails/${mail.id}`, { attachment_ids: [] })
    expect([none.body.data.attachments, await rows()]).toEqual([[], []])
  })

  it('copies a file that belongs to another record', async () => {
    const first = await written({ attachment_ids: [await uploaded('one.txt')] })
    const second = await written({ attachment_ids: fileIds(first) })
    expect(names(second)).toEqual(['one.txt'])
    expect(fileIds(second)).not.toEqual(fileIds(first))
    expect((await rows()).map(({ owner_id }) => owner_id)).toEqual([first.id, second.id])
  })

  it('names files the caller sees, of 25 MiB together', async () => {
    const other = await someone(server, ['mail.compose'])
    const foreign = await uploaded('secret.txt', 'secret', other.caller)
    const own = [await uploaded('a.txt'), await uploaded('b.txt')]
    server.events()
    const body = { is_draft: true, attachment_ids: [own[0], foreign, 99] }
    const refused = await server.admin.post('/emails', body)
    expect([refused.status, Object.keys(refused.body.errors)]).toEqual([422, ['attachment_ids.1', 'attachment_ids.2']])
    const size = (bytes: number) =>
      server.store.db.updateTable('files').set({ size: bytes }).where('id', 'in', own).execute()
    await size(13 * 1024 * 1024)
    const tooMuch = await server.admin.post('/emails', { is_draft: true, attachment_ids: own })
    expect([tooMuch.status, tooMuch.body.errors]).toEqual([
      422,
      { attachment_ids: ['The attachments may have 25 MiB together.'] },
    ])
    expect(server.events()).toEqual([])
    await size(12.5 * 1024 * 1024)
    expect((await server.admin.post('/emails', { is_draft: true, attachment_ids: own })).status).toBe(201)
  })

  it('is content: it changes in a draft or after a failure only', async () => {
    const [one, two] = [await uploaded('1.txt'), await uploaded('2.txt')]
    const mail = await written({ attachment_ids: [one] })
    await server.store.db.updateTable('emails').set({ status: 'sent' }).where('id', '=', mail.id).execute()
    server.events()
    for (const attachment_ids of [[], [two], [one, two]]) {
      const { status, body } = await server.admin.put(`/emails/${mail.id}`, { attachment_ids })
      expect.soft([status, body.code]).toEqual([409, 'state_conflict'])
    }
    expect(server.events()).toEqual([])
    expect((await server.admin.put(`/emails/${mail.id}`, { attachment_ids: [one] })).status).toBe(200)
    expect((await rows()).find(({ id }) => id === two)?.owner_id).toBeNull()
  })
})

describe('a form', () => {
  it('brings files along, beside those that were uploaded before', async () => {
    const one = await uploaded('one.txt')
    const { body, headers } = await form({
      subject: 'From a form',
      html: '<p>See below.</p>',
      'to[]': ['ada@example.com', 'bo@example.com'],
      attachment_ids: JSON.stringify([one]),
      'attachments[]': [file('two.txt', 'two'), file('pixel.png', pixel)],
    })
    const { status, body: reply } = await server.admin.post('/emails', body, { headers })
    expect(status).toBe(201)
    expect(reply.data).toMatchObject({
      subject: 'From a form',
      status: 'queued',
      to: ['ada@example.com', 'bo@example.com'],
    })
    expect(
      reply.data.attachments.map(({ name, content_type }: Email['attachments'][number]) => [name, content_type]),
    ).toEqual([
      ['one.txt', 'text/plain'],
      ['two.txt', 'text/plain'],
      ['pixel.png', 'image/png'],
    ])
    expect(server.events()).toEqual(['email.create.before', 'email.create.after'])
  })

  it('has room for a body as long as JSON has, and for no longer one', async () => {
    const sent = async (length: number) => {
      const { body, headers } = await form({
        subject: 'Long',
        html: 'x'.repeat(length),
        'to[]': ['ada@example.com'],
      })
      return (await server.admin.post('/emails', body, { headers })).status
    }
    expect([await sent(1_000_000), await sent(1_000_001), await sent(1024 * 1024 + 1)]).toEqual([201, 422, 413])
  })

  it('that is refused leaves no file behind', async () => {
    const { body, headers } = await form({ subject: 'No body', 'attachments[]': [file('two.txt', 'two')] })
    const { status, body: reply } = await server.admin.post('/emails', body, { headers })
    expect([status, Object.keys(reply.errors)]).toEqual([422, ['html', 'to']])
    expect(await rows()).toEqual([])
    const inJson = await server.admin.post('/emails', { is_draft: true, attachments: ['two.txt'] })
    expect([inJson.status, Object.keys(inJson.body.errors)]).toEqual([422, ['attachments.0']])
  })
})

describe('downloadEmailAttachment', () => {
  it('sends the bytes, or a requested range, to users who see the e-mail', async () => {
    const mail = await written({ attachment_ids: [await uploaded('quote.txt', 'twelve bytes')] })
    const path = `/emails/${mail.id}/attachments/${mail.attachments[0]?.id}/download`
    const all = await server.admin.get(path)
    expect([all.status, all.text]).toEqual([200, 'twelve bytes'])
    expect(all.headers['content-disposition']).toBe('attachment; filename=quote.txt')
    expect(all.headers['x-content-type-options']).toBe('nosniff')
    const part = await server.admin.get(path, { headers: { range: 'bytes=7-' } })
    expect([part.status, part.text, part.headers['content-range']]).toEqual([206, 'bytes', 'bytes 7-11/12'])
    const same = await server.admin.get(path, { headers: { 'if-none-match': String(all.headers.etag) } })
    expect(same.status).toBe(304)
    expect((await server.admin.get(path, { headers: { range: 'bytes=50-' } })).status).toBe(416)
    const reader = await someone(server, ['mail.view', 'mail.draft'])
    expect((await reader.caller.get(path)).status).toBe(200)
    const blind = await someone(server, ['mail.view', 'mail.sent'])
    expect((await blind.caller.get(path)).status).toBe(404)
    expect((await (await someone(server, ['mail', 'mail.draft'])).caller.get(path)).status).toBe(403)
    const other = await written({ attachment_ids: [await uploaded('other.txt')] })
    expect((await server.admin.get(`/emails/${other.id}/attachments/${mail.attachments[0]?.id}/download`)).status).toBe(
      404,
    )
  })
})

describe('deleteEmail', () => {
  it('takes the attachments along, and restoring brings them back', async () => {
    const mail = await written({ attachment_ids: [await uploaded('quote.txt', 'twelve bytes')] })
    const path = `/emails/${mail.id}/attachments/${mail.attachments[0]?.id}/download`
    await server.admin.delete(`/emails/${mail.id}?type=delete`)
    expect((await server.admin.get(path)).status).toBe(404)
    expect((await server.admin.get(`/files/${fileIds(mail)[0]}`)).status).toBe(404)
    const { body } = await server.admin.post(`/emails/${mail.id}/restore`)
    expect(body.data.attachments).toEqual(mail.attachments)
    expect((await server.admin.get(path)).text).toBe('twelve bytes')
  })
})

describe('a picture in the body', () => {
  /** Creates a received mail with an inline picture, which has a content id. */
  async function received(): Promise<Email> {
    const mail = await written({
      html: '<p>Look: <img src="cid:logo@here" alt="Logo"> and <img src="https://example.com/pixel.gif"></p>',
      attachment_ids: [await uploaded('logo.png', pixel)],
    })
    await server.store.db.updateTable('email_attachments').set({ content_id: 'logo@here' }).execute()
    await server.store.db.updateTable('emails').set({ status: 'received' }).where('id', '=', mail.id).execute()
    server.events()
    return (await server.admin.get(`/emails/${mail.id}`)).body.data
  }
  const linkIn = (mail: Email): string =>
    /<img src="http:\/\/[^/]+\/api\/admin([^"]+)"/.exec(mail.html ?? '')?.[1] ?? ''

  it('is a link that works without a token for five minutes; one from elsewhere is not fetched', async () => {
    const mail = await received()
    expect(mail.html).toContain('<img data-remote="https://example.com/pixel.gif" />')
    const link = linkIn(mail).replaceAll('&amp;', '&')
    const { status, headers } = await server.anonymous.get(link)
    expect([status, headers['content-type']]).toEqual([200, 'image/png'])
    server.clock.advanceMs(6 * 60 * 1000)
    expect((await server.anonymous.get(link)).status).toBe(403)
  })

  it('does not change when the mail is written back, also later', async () => {
    const mail = await received()
    server.clock.advanceMs(60_000)
    const { status, body } = await server.admin.put(`/emails/${mail.id}`, mail)
    expect([status, body.data?.version]).toEqual([200, mail.version])
    const { db } = server.store
    const stored = await db.selectFrom('emails').select(['html', 'text']).executeTakeFirstOrThrow()
    expect(stored.html).toContain('<img src="cid:logo@here" alt="Logo" />')
    expect(stored.text).toBe('Look: Logo and')
  })
})
