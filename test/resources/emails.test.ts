// Mails: writing and queueing, the changes allowed in each state, folders and the
// trash, mass operations, threads, links. Visibility is in emails.folders.test.ts, files in
// emails.attachments.test.ts.

import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { EmailFoldersTable } from '../../db/tables.gen.ts'
import type { Schema } from '../../src/contract/types.ts'
import { type Caller, startServer } from '../support/app.ts'
import { given } from '../support/given.ts'
import { someone } from '../support/people.ts'
import { useServer } from '../support/using.ts'

type Email = Schema<'Email'>

const server = useServer()

const letter = { subject: 'Offer', html: '<p>Please find it <b>attached</b>.</p>', to: ['ada@example.com'] }

/** Creates a mail, by default as the administrator. Discards the events. */
async function written(changes: Record<string, unknown> = {}, caller: Caller = server.admin): Promise<Email> {
  const { status, body, text } = await caller.post('/emails', { ...letter, ...changes })
  if (status !== 201) throw new Error(text)
  server.events()
  return body.data
}

const draft = (changes: Record<string, unknown> = {}): Promise<Email> => written({ is_draft: true, ...changes })
const shown = async (id: number): Promise<Email> => (await server.admin.get(`/emails/${id}`)).body.data

/** Sets columns and the folder of a mail, as sending and receiving would. */
async function set(
  id: number,
  columns: Record<string, string | number | null>,
  folder?: EmailFoldersTable['folder'],
): Promise<void> {
  const { db } = server.store
  await db.updateTable('emails').set(columns).where('id', '=', id).execute()
  if (folder === undefined) return
  await db.deleteFrom('email_folders').where('email_id', '=', id).execute()
  await db.insertInto('email_folders').values({ email_id: id, folder }).execute()
}

/** Returns the events of changes in one transaction: all before-events, then all after-events. */
const events = (...bases: string[]): string[] => [
  ...bases.map((base) => `${base}.before`),
  ...bases.map((base) => `${base}.after`),
]
const changed = events('email.update')
const created = events('email.create')
const deleted = events('email.delete')

describe('createEmail', () => {
  it('queues a mail with a Message-ID, a sender and a thread of its own, and fires one pair of events', async () => {
    const { status, body, headers } = await server.admin.post('/emails', { ...letter, cc: ['Bo@example.com'] })
    expect(status).toBe(201)
    const { id } = body.data
    expect(headers.location).toBe(`http://localhost:80/api/admin/emails/${id}`)
    expect(body.message).toBe('E-mail created.')
    expect(body.data).toMatchObject({
      id: expect.any(Number),
      subject: 'Offer',
      html: '<p>Please find it <b>attached</b>.</p>',
      text: 'Please find it attached.',
      to: ['ada@example.com'],
      cc: ['Bo@example.com'],
      bcc: [],
      from: ['no-reply@localhost'],
      sender: [],
      from_name: 'Accord CRM',
      source: 'web',
      sender_type: 'user',
      status: 'queued',
      folders: ['outbox'],
      is_read: true,
      attempts: 0,
      error: null,
      sent_at: null,
      parent: null,
      thread_id: id,
      user: { id: 1, name: 'Example Admin' },
      attachments: [],
      tags: [],
      version: 1,
    })
    expect(body.data.message_id).toMatch(
      /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}@localhost$/,
    )
    expect(body.data.references).toEqual([body.data.message_id])
    expect(server.events()).toEqual(created)
  })

  it('takes sender and domain from the settings', async () => {
    const config = { mailFrom: 'sales@crm.example.com', mailFromName: 'Sales', mailDomain: 'crm.example.com' }
    const other = await startServer({ config })
    const { body } = await other.admin.post('/emails', letter)
    expect(body.data).toMatchObject({ from: ['sales@crm.example.com'], from_name: 'Sales' })
    expect(body.data.message_id).toMatch(/@crm\.example\.com$/)
    await other.close()
  })

  it('keeps a draft that lacks everything, and queues nothing that lacks a body or a recipient', async () => {
    const kept = await server.admin.post('/emails', { is_draft: true })
    expect(kept.body.data).toMatchObject({
      status: 'draft',
      folders: ['draft'],
      subject: null,
      html: null,
      text: null,
    })
    server.events()
    for (const [body, fields] of [
      [{}, ['html', 'to']],
      [{ subject: 'x', html: '<p>x</p>' }, ['to']],
      [{ to: ['a@example.com'], html: '<script>alert(1)</script>' }, ['html']],
      [{ html: 'x', to: [] }, ['to']],
    ] as const) {
      const { status, body: problem } = await server.admin.post('/emails', body)
      expect.soft([status, Object.keys(problem.errors)]).toEqual([422, fields])
    }
    expect(server.events()).toEqual([])
    expect((await server.admin.get('/emails')).body.meta.total).toBe(1)
  })

  it('writes to each recipient once, and to at most a hundred', async () => {
    const addresses = (count: number, name: string) =>
      Array.from({ length: count }, (_, n) => `${name}${n}@example.com`)
    const mail = await written({
      to: ['Ada@example.com', 'b@example.com', 'ada@EXAMPLE.com'],
      cc: ['ada@example.com'],
    })
    expect([mail.to, mail.cc]).toEqual([['Ada@example.com', 'b@example.com'], ['ada@example.com']])
    const most = await server.admin.post('/emails', {
      ...letter,
      to: addresses(50, 'a'),
      cc: addresses(30, 'b'),
      bcc: addresses(20, 'c'),
    })
    expect(most.status).toBe(201)
    const { status, body } = await server.admin.post('/emails', {
      ...letter,
      to: addresses(50, 'a'),
      cc: addresses(30, 'b'),
      bcc: addresses(21, 'c'),
    })
    expect([status, body.errors]).toEqual([422, { to: ['An e-mail has at most 100 recipients; these are 101.'] }])
  })

  it('files beside its own folder, and into none that only the server fills', async () => {
    expect((await written({ folders: ['starred', 'important'] })).folders).toEqual(['important', 'starred', 'outbox'])
    expect((await draft({ folders: ['draft', 'starred'] })).folders).toEqual(['starred', 'draft'])
    const { status, body } = await server.admin.post('/emails', { ...letter, folders: ['starred', 'sent', 'draft'] })
    expect([status, Object.keys(body.errors)]).toEqual([422, ['folders.1', 'folders.2']])
  })

  it('needs a lead, a person, tags and a parent that the caller sees', async () => {
    const make = given(server.admin)
    const lead = await make.lead()
    const tag = await make.tag({ name: 'Hot' })
    const mail = await written({ lead_id: lead.id, tag_ids: [tag.id] })
    expect(mail).toMatchObject({ lead_id: lead.id, lead: { id: lead.id, title: lead.title }, tags: [{ name: 'Hot' }] })
    const other = await someone(server, ['mail.compose'], { view_permission: 'individual' })
    const body = { ...letter, lead_id: lead.id, person_id: 99, parent_id: mail.id, tag_ids: [99] }
    const refused = await other.caller.post('/emails', body)
    expect([refused.status, Object.keys(refused.body.errors).sort()]).toEqual([
      422,
      ['lead_id', 'parent_id', 'person_id', 'tag_ids.0'],
    ])
    expect(server.events()).toEqual([])
  })

  it('fires the events of its tags after its own', async () => {
    const tag = await given(server.admin).tag()
    server.events()
    await server.admin.post('/emails', { ...letter, tag_ids: [tag.id] })
    expect(server.events()).toEqual(events('email.create', 'emails.tag.create'))
  })
})

describe('an answer', () => {
  it('has a subject that is not cut inside a character', async () => {
    const longest = '\u{1f600}'.repeat(499)
    const root = await written({ subject: longest })
    const answer = await written({ parent_id: root.id, subject: null })
    expect(answer.subject).toBe(`Re: ${'\u{1f600}'.repeat(497)}`)
  })

  it('takes over subject, chain, thread, person and lead', async () => {
    const lead = await given(server.admin).lead({ person: { name: 'Grace', emails: [{ value: 'grace@example.com' }] } })
    const person_id = lead.person_id as number
    const root = await written({ lead_id: lead.id, person_id })
    const answer = await written({ parent_id: root.id, subject: null })
    const next = await written({ parent_id: answer.id, subject: undefined, lead_id: null })
    expect(answer).toMatchObject({
      subject: 'Re: Offer',
      parent: { id: root.id, subject: 'Offer', from: ['no-reply@localhost'] },
      thread_id: root.id,
      references: [root.message_id, answer.message_id],
      person_id,
      lead_id: lead.id,
    })
    expect(next).toMatchObject({
      subject: 'Re: Offer',
      thread_id: root.id,
      references: [root.message_id, answer.message_id, next.message_id],
      person_id,
      lead_id: null,
    })
    expect((await written({ parent_id: root.id, subject: 'Other\r\nBcc: x' })).subject).toBe('Other Bcc: x')
  })

  it('keeps the beginning of a long thread and its last fifty references in mind', async () => {
    let last = await written()
    const root = last
    for (let n = 0; n < 55; n++) last = await written({ parent_id: last.id })
    expect(last.references).toHaveLength(50)
    expect(last.references[0]).toBe(root.message_id)
    expect(last.references.at(-1)).toBe(last.message_id)
    expect(new Set(last.references).size).toBe(50)
  })

  it('of any chain of answers is in the thread of the first, in whatever order they are read', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.nat(), { minLength: 1, maxLength: 6 }),
        fc.infiniteStream(fc.nat()),
        async (parents, order) => {
          await server.rewind()
          const mails = [await written(), await written({ subject: 'Another thread' })]
          const roots = new Map(mails.map(({ id }) => [id, id]))
          for (const parent of parents) {
            const { id: parent_id } = mails[parent % mails.length] as Email
            const mail = await written({ parent_id })
            mails.push(mail)
            roots.set(mail.id, roots.get(parent_id) ?? 0)
          }
          const shuffled = mails
            .map((mail) => [order.next().value, mail] as const)
            .sort(([one], [other]) => one - other)
            .map(([, mail]) => mail)
          for (const { id } of shuffled) {
            const root = roots.get(id)
            const mail = await shown(id)
            expect(mail.thread_id).toBe(root)
            expect(mail.references.at(-1)).toBe(mail.message_id)
            const thread = await server.admin.get(`/emails/${id}/thread?per_page=100`)
            const wanted = mails.filter((each) => roots.get(each.id) === root).map((each) => each.id)
            expect(thread.body.data.map((each: Email) => each.id)).toEqual(wanted)
          }
        },
      ),
      { numRuns: 8 },
    )
  })

  it('stays in its thread when the mail it answers is deleted', async () => {
    const root = await written()
    const answer = await written({ parent_id: root.id })
    const last = await written({ parent_id: answer.id })
    await server.admin.delete(`/emails/${root.id}?type=delete`)
    expect(await shown(answer.id)).toMatchObject({ parent_id: null, parent: null, thread_id: root.id, version: 2 })
    expect((await shown(last.id)).references).toContain(root.message_id)
    const roots = await server.admin.get('/emails?is_root=true')
    expect(roots.body.data.map((each: Email) => each.id)).toEqual([answer.id])
    expect((await server.admin.get(`/emails/${last.id}/thread`)).body.meta.total).toBe(2)
  })
})

describe('updateEmail', () => {
  it('changes the content of a draft and of a mail that failed', async () => {
    for (const status of ['draft', 'failed'] as const) {
      const { id } = await draft()
      await set(id, { status })
      const { status: code, body } = await server.admin.put(`/emails/${id}`, {
        subject: 'New',
        html: '<p>New</p><script>x</script>',
        bcc: ['c@example.com'],
      })
      expect(code).toBe(200)
      expect(body.data).toMatchObject({
        subject: 'New',
        html: '<p>New</p>',
        text: 'New',
        bcc: ['c@example.com'],
        status,
      })
      expect(server.seen.at(-1)?.changed?.sort()).toEqual(['bcc', 'html', 'subject', 'text'])
      expect(server.events()).toEqual(changed)
    }
  })

  it.each(['queued', 'sending', 'sent', 'received'])(
    'changes nothing in a mail that is %s, and says what',
    async (status) => {
      const { id } = await written()
      await set(id, { status })
      const before = await shown(id)
      const { status: code, body } = await server.admin.put(`/emails/${id}`, {
        subject: 'New',
        cc: ['new@example.com'],
        is_read: false,
        folders: ['starred'],
      })
      expect([code, body.code]).toEqual([409, 'state_conflict'])
      expect(body.detail).toBe(
        `The e-mail is ${status}: its subject, cc can change only in a draft or after it failed.`,
      )
      expect(await shown(id)).toEqual(before)
      expect(server.events()).toEqual([])
    },
  )

  it('accepts what was read, whatever the state, and changes nothing', async () => {
    const root = await written({ cc: ['b@example.com'], html: '<p>Hi <img src="https://x.example/a.png"></p>' })
    const mail = await written({ parent_id: root.id })
    for (const { id } of [root, mail]) {
      for (const status of ['draft', 'queued', 'sent']) {
        await set(id, { status })
        const before = await shown(id)
        const { status: code, body } = await server.admin.put(`/emails/${id}`, before)
        expect.soft([code, body.data ?? body]).toEqual([200, before])
        expect(server.seen.at(-1)?.changed).toEqual([])
        expect(server.events()).toEqual(changed)
      }
    }
  })

  it('moves, marks, links and tags in any state, and sends nothing', async () => {
    const lead = await given(server.admin).lead()
    const tag = await given(server.admin).tag()
    const { id } = await written()
    await set(id, { status: 'sent' }, 'sent')
    server.events()
    const { body } = await server.admin.put(`/emails/${id}`, {
      folders: ['starred', 'important'],
      is_read: false,
      lead_id: lead.id,
      tag_ids: [tag.id],
    })
    expect(body.data).toMatchObject({
      folders: ['important', 'starred', 'sent'],
      is_read: false,
      lead: { id: lead.id },
      tags: [{ id: tag.id }],
      status: 'sent',
      version: 2,
    })
    expect(server.events()).toEqual(events('email.update', 'emails.tag.create'))
  })

  it('keeps the folders of the server, gives none of them, and leaves no mail without a folder', async () => {
    const { id } = await draft()
    const put = async (folders: string[]) => (await server.admin.put(`/emails/${id}`, { folders })).body
    expect((await put(['starred'])).data.folders).toEqual(['starred', 'draft'])
    expect((await put([])).data.folders).toEqual(['draft'])
    expect(Object.keys((await put(['outbox'])).errors)).toEqual(['folders.0'])
    await set(id, { status: 'received' }, 'inbox')
    expect((await put([])).errors).toEqual({ folders: ['An e-mail must be in at least one folder.'] })
    expect((await put(['spam'])).data.folders).toEqual(['spam'])
  })

  it('refuses another parent', async () => {
    const root = await written()
    const mail = await written({ parent_id: root.id })
    const other = await written()
    const { status, body } = await server.admin.put(`/emails/${mail.id}`, { parent_id: other.id })
    expect([status, Object.keys(body.errors)]).toEqual([422, ['parent_id']])
  })
})

describe('the trash', () => {
  it('takes a mail out of its folders, and untrashEmail puts it back', async () => {
    const { id } = await draft({ folders: ['starred'] })
    const put = await server.admin.put(`/emails/${id}`, { folders: ['trash'] })
    expect(put.body.data.folders).toEqual(['trash'])
    server.events()
    const again = await server.admin.put(`/emails/${id}`, { folders: ['trash'] })
    expect([again.body.data.folders, again.body.data.version]).toEqual([['trash'], 2])
    server.events()
    const back = await server.admin.post(`/emails/${id}/untrash`)
    expect([back.status, back.body.data.folders, back.body.data.version]).toEqual([200, ['starred', 'draft'], 3])
    expect(server.events()).toEqual(changed)
    const none = await server.admin.post(`/emails/${id}/untrash`)
    expect([none.status, none.body.code]).toEqual([409, 'state_conflict'])
    expect(server.events()).toEqual([])
  })

  it('gives a mail back to its own folder when it is moved to another one', async () => {
    const { id } = await written()
    await server.admin.put(`/emails/${id}`, { folders: ['trash'] })
    const { body } = await server.admin.put(`/emails/${id}`, { folders: ['starred'] })
    expect(body.data.folders).toEqual(['starred', 'outbox'])
    expect((await server.admin.post(`/emails/${id}/untrash`)).status).toBe(409)
  })

  it('knows where what came straight into it belongs', async () => {
    const { id } = await written()
    await set(id, { status: 'received', source: 'email' }, 'trash')
    expect((await server.admin.post(`/emails/${id}/untrash`)).body.data.folders).toEqual(['inbox'])
  })
})

describe('deleteEmail', () => {
  it('moves to the trash first, and deletes what is there', async () => {
    const { id } = await written()
    const first = await server.admin.delete(`/emails/${id}`)
    expect([first.status, first.body.message]).toEqual([200, 'E-mail moved to the trash.'])
    expect(server.events()).toEqual(changed)
    expect((await shown(id)).folders).toEqual(['trash'])
    const again = await server.admin.delete(`/emails/${id}?type=trash`)
    expect(again.body.message).toBe('E-mail moved to the trash.')
    expect(server.seen.at(-1)?.changed).toEqual([])
    server.events()
    const second = await server.admin.delete(`/emails/${id}`)
    expect(second.body.message).toBe('E-mail deleted.')
    expect(server.events()).toEqual(deleted)
    expect((await server.admin.get(`/emails/${id}`)).status).toBe(404)
  })

  it('deletes at once when told to', async () => {
    const { id } = await written()
    expect((await server.admin.delete(`/emails/${id}?type=delete`)).body.message).toBe('E-mail deleted.')
    expect(server.events()).toEqual(deleted)
  })

  it('honors If-Match', async () => {
    const { id } = await written()
    for (const type of ['trash', 'delete']) {
      const { status } = await server.admin.delete(`/emails/${id}?type=${type}`, { headers: { 'if-match': '"7"' } })
      expect(status).toBe(412)
    }
    expect(server.events()).toEqual([])
    expect((await server.admin.delete(`/emails/${id}`, { headers: { 'if-match': '"1"' } })).status).toBe(200)
  })
})

describe('restoreEmail', () => {
  it('brings back a deleted mail with its Message-ID, folders, thread and answers', async () => {
    const root = await written({ folders: ['starred'] })
    const answer = await written({ parent_id: root.id })
    await server.admin.delete(`/emails/${root.id}?type=delete`)
    const { status, body } = await server.admin.post(`/emails/${root.id}/restore`)
    expect(status).toBe(200)
    expect(body.data).toEqual({ ...root, version: 2 })
    expect((await shown(answer.id)).parent_id).toBe(root.id)
    const history = await server.admin.get(`/emails/${root.id}/history`)
    expect(history.body.data.map(({ name }: { name: string }) => name)).toEqual([
      'email.create.after',
      'email.delete.after',
      'email.create.after',
    ])
  })
})

describe('sendEmail', () => {
  it('queues a draft', async () => {
    const { id } = await draft({ folders: ['starred'] })
    const { status, body } = await server.admin.post(`/emails/${id}/send`)
    expect([status, body.message]).toEqual([202, 'E-mail queued.'])
    expect(body.data).toMatchObject({ status: 'queued', folders: ['starred', 'outbox'], version: 2 })
    expect(server.events()).toEqual(changed)
  })

  it('queues a mail that failed, which starts anew', async () => {
    const { id } = await written()
    await set(id, { status: 'failed', error: 'No such mailbox.', attempts: 5 })
    const { body } = await server.admin.post(`/emails/${id}/send`)
    expect(body.data).toMatchObject({ status: 'queued', folders: ['outbox'], error: null, attempts: 0 })
  })

  it('takes a draft out of the trash', async () => {
    const { id } = await draft({ folders: ['starred'] })
    await server.admin.delete(`/emails/${id}`)
    expect((await server.admin.post(`/emails/${id}/send`)).body.data.folders).toEqual(['starred', 'outbox'])
    expect((await server.admin.post(`/emails/${id}/untrash`)).status).toBe(409)
  })

  it('refuses a draft that is not complete with 422, every other mail with 409', async () => {
    const { id } = await draft({ html: null, to: [] })
    const incomplete = await server.admin.post(`/emails/${id}/send`)
    expect([incomplete.status, Object.keys(incomplete.body.errors)]).toEqual([422, ['html', 'to']])
    for (const status of ['queued', 'sending', 'sent', 'received']) {
      await set(id, { status })
      const { status: code, body } = await server.admin.post(`/emails/${id}/send`)
      expect.soft([status, code, body.code]).toEqual([status, 409, 'state_conflict'])
    }
    expect(server.events()).toEqual([])
  })

  it('needs the permission to write mails, not the one to change them', async () => {
    const { id } = await draft()
    const editor = await someone(server, ['mail.view', 'mail.edit', 'mail.draft'])
    const writer = await someone(server, ['mail.compose', 'mail.draft'])
    expect((await editor.caller.post(`/emails/${id}/send`)).status).toBe(403)
    // After sending, the mail is in the outbox, which the writer may not open.
    const { status, body } = await writer.caller.post(`/emails/${id}/send`)
    expect([status, body.data.folders]).toEqual([202, ['outbox']])
    expect((await writer.caller.post(`/emails/${id}/send`)).status).toBe(404)
  })
})

describe('massUpdateEmails', () => {
  it('moves or marks, one event pair each', async () => {
    const [one, two] = [await written(), await written()]
    const ids = [one.id, two.id, 99]
    const moved = await server.admin.post('/emails/mass-update', { ids, folders: ['trash'] })
    expect(moved.body).toMatchObject({
      data: { processed: [one.id, two.id], failed: [{ id: 99, status: 404 }] },
      message: '2 e-mails updated.',
    })
    expect(server.events()).toEqual([...changed, ...changed])
    for (const kind of ['is_read', 'value']) {
      const { status } = await server.admin.post('/emails/mass-update', { ids: [one.id], [kind]: false })
      expect([status, (await shown(one.id)).is_read]).toEqual([200, false])
      await server.admin.put(`/emails/${one.id}`, { is_read: true })
    }
  })

  it('does one thing at a time', async () => {
    const { id } = await written()
    for (const body of [{}, { folders: ['starred'], is_read: true }, { is_read: true, value: true }]) {
      const { status, body: problem } = await server.admin.post('/emails/mass-update', { ids: [id], ...body })
      expect.soft([status, Object.keys(problem.errors)]).toEqual([422, ['folders']])
    }
    expect(server.events()).toEqual([])
  })

  it('changes all or none when it is atomic', async () => {
    const { id } = await written()
    const body = { ids: [id, 99], is_read: false, atomic: true }
    const { status, body: problem } = await server.admin.post('/emails/mass-update', body)
    expect([status, problem.code, (await shown(id)).is_read]).toEqual([422, 'mass_failed', true])
  })
})

describe('massDeleteEmails', () => {
  it('does with each what deleting it would do, or what `type` says', async () => {
    const [one, two, three] = [await written(), await written(), await written()]
    await server.admin.delete(`/emails/${two.id}`)
    server.events()
    const first = await server.admin.post('/emails/mass-delete', { ids: [one.id, two.id] })
    expect(first.body.data.processed).toEqual([one.id, two.id])
    expect(server.events()).toEqual([...changed, ...deleted])
    expect((await shown(one.id)).folders).toEqual(['trash'])
    const trash = await server.admin.post('/emails/mass-delete', { ids: [one.id, three.id], type: 'trash' })
    expect(trash.body.data.processed).toEqual([one.id, three.id])
    server.events()
    await server.admin.post('/emails/mass-delete', { ids: [one.id, three.id, 99], type: 'delete' })
    expect(server.events()).toEqual([...deleted, ...deleted])
    expect((await server.admin.get('/emails')).body.meta.total).toBe(0)
  })
})

describe('listEmails', () => {
  it('filters by everything it names', async () => {
    const make = given(server.admin)
    const lead = await make.lead({ person: { name: 'Grace', emails: [{ value: 'grace@example.com' }] } })
    const tag = await make.tag()
    const one = await written({ lead_id: lead.id, folders: ['starred'], tag_ids: [tag.id], subject: 'Über uns' })
    const two = await draft({
      person_id: lead.person_id,
      parent_id: one.id,
      cc: ['Zoe@example.org'],
      lead_id: null,
      subject: null,
    })
    const three = await written({ html: '<p>Something <i>else</i></p>', subject: null })
    await set(three.id, { status: 'received', source: 'email', sender_type: 'person', is_read: 0 }, 'inbox')
    await set(one.id, { sent_at: '2026-03-02T10:00:00.000Z' })
    const expected: [query: string, ids: Email[]][] = [
      ['folder=starred,inbox', [three, one]],
      ['folder[not]=draft', [three, one]],
      ['status=draft', [two]],
      ['is_read=false', [three]],
      ['source=email', [three]],
      ['sender_type=user', [two, one]],
      [`person_id=${lead.person_id}`, [two]],
      ['person_id[null]=true', [three, one]],
      [`lead_id=${lead.id}`, [one]],
      [`parent_id=${one.id}`, [two]],
      [`thread_id=${one.id}`, [two, one]],
      [`message_id=${two.message_id.toUpperCase()}`, [two]],
      [`message_id[not]=${two.message_id}`, [three, one]],
      ['user_id=1', [three, two, one]],
      ['has_attachments=true', []],
      ['is_root=true', [three, one]],
      ['is_root=false', [two]],
      [`tag_id=${tag.id}`, [one]],
      ['sent_at[gte]=2026-03-02', [one]],
      ['q=%C3%BCBER', [two, one]],
      ['q=zoe', [two]],
      ['q=something+else', [three]],
      ['q=no-reply', [three, two, one]],
      ['q=accord+ADA', [three, two, one]],
      ['q=%22', []],
      ['sort=subject', [two, one, three]],
    ]
    for (const [query, mails] of expected) {
      const { status, body } = await server.admin.get(`/emails?${query}`)
      expect
        .soft([query, status, body.data?.map(({ id }: Email) => id)])
        .toEqual([query, 200, mails.map(({ id }) => id)])
    }
  })

  it('shows person, lead, parent and answers in full', async () => {
    const lead = await given(server.admin).lead({ person: { name: 'Grace', emails: [{ value: 'grace@example.com' }] } })
    const root = await written({ lead_id: lead.id, person_id: lead.person_id })
    const answers = [await written({ parent_id: root.id }), await written({ parent_id: root.id })]
    const { body } = await server.admin.get('/emails?include=person,lead,parent,children&sort=id')
    const [first, second] = body.data
    expect(first.person).toMatchObject({ name: 'Grace', contact_numbers: [] })
    expect(first.lead).toMatchObject({ lead_value: lead.lead_value, emails_count: 3 })
    expect(first.children.map(({ id }: Email) => id)).toEqual(answers.map(({ id }) => id))
    expect(first.children[0].children).toBeUndefined()
    expect(second.parent).toMatchObject({ id: root.id, html: root.html })
    expect(second.children).toEqual([])
  })
})

describe('listEmailThread', () => {
  it('begins with the oldest, page by page', async () => {
    const root = await written()
    const ids = [root.id]
    for (let n = 0; n < 4; n++) {
      server.clock.advanceMs(60_000)
      ids.push((await written({ parent_id: ids[Math.floor(n / 2)] })).id)
    }
    const read: number[] = []
    let next: string | null = `/emails/${ids[3]}/thread?per_page=2&cursor=`
    while (next !== null) {
      const { body }: { body: Schema<'EmailPage'> } = await server.admin.get(next)
      read.push(...body.data.map(({ id }) => id))
      next = body.links.next?.replace(/^.*\/api\/admin/, '') ?? null
    }
    expect(read).toEqual(ids)
  })
})

describe('tags of mails', () => {
  it('come, are listed and go, each with its event', async () => {
    const { id } = await written()
    const attached = await server.admin.post(`/emails/${id}/tags`, { name: 'Important' })
    expect(attached.body.data).toMatchObject([{ name: 'Important' }])
    expect(server.events()).toEqual(events('settings.tag.create', 'emails.tag.create'))
    expect((await server.admin.get(`/emails/${id}/tags`)).body.data).toHaveLength(1)
    const [tag] = attached.body.data
    expect((await server.admin.delete(`/emails/${id}/tags/${tag.id}`)).status).toBe(200)
    expect(server.events()).toEqual(events('emails.tag.delete'))
    await server.admin.post(`/emails/${id}/tags`, { tag_id: tag.id })
    server.events()
    await server.admin.delete(`/tags/${tag.id}`)
    expect(server.events()).toContain('emails.tag.delete.after')
    expect((await shown(id)).tags).toEqual([])
  })

  it('need the permission to change mails', async () => {
    const { id } = await written()
    const reader = await someone(server, ['mail.view', 'mail.outbox'])
    expect((await reader.caller.get(`/emails/${id}/tags`)).status).toBe(200)
    expect((await reader.caller.post(`/emails/${id}/tags`, { name: 'x' })).status).toBe(403)
  })
})

describe('mails of leads', () => {
  it('are linked, listed, counted and unlinked', async () => {
    const make = given(server.admin)
    const [lead, other] = [await make.lead(), await make.lead()]
    const mail = await written()
    server.events()
    const path = `/leads/${lead.id}/emails`
    const linked = await server.admin.post(path, { email_id: mail.id })
    expect([linked.status, linked.body.data.lead]).toEqual([200, { id: lead.id, title: lead.title }])
    expect(server.events()).toEqual(changed)
    const again = await server.admin.post(path, { email_id: mail.id })
    expect([again.status, again.body.data.version]).toEqual([200, 2])
    expect(server.events()).toEqual([])
    expect((await server.admin.get(path)).body.data.map(({ id }: Email) => id)).toEqual([mail.id])
    const { body } = await server.admin.get(`/leads/${lead.id}`)
    expect([body.data.emails_count, body.data.version]).toEqual([1, lead.version])
    await server.admin.post(`/leads/${other.id}/emails`, { email_id: mail.id })
    expect((await server.admin.get(path)).body.meta.total).toBe(0)
    expect((await server.admin.delete(`${path}/${mail.id}`)).status).toBe(404)
    server.events()
    expect((await server.admin.delete(`/leads/${other.id}/emails/${mail.id}`)).status).toBe(200)
    expect(server.events()).toEqual(changed)
    expect((await shown(mail.id)).lead_id).toBeNull()
    const dangling = await server.admin.post(path, { email_id: 99 })
    expect([dangling.status, Object.keys(dangling.body.errors)]).toEqual([422, ['email_id']])
  })

  it('are counted as far as the caller sees them', async () => {
    const lead = await given(server.admin).lead()
    await written({ lead_id: lead.id })
    await draft({ lead_id: lead.id })
    const count = async (caller: Caller) => [
      (await caller.get(`/leads/${lead.id}`)).body.data.emails_count,
      (await caller.get('/leads')).body.data[0].emails_count,
    ]
    expect(await count(server.admin)).toEqual([2, 2])
    expect(await count((await someone(server, ['leads', 'leads.view', 'mail.draft'])).caller)).toEqual([1, 1])
    expect(await count((await someone(server, ['leads', 'leads.view'])).caller)).toEqual([0, 0])
  })

  it('need both permissions to be linked, and If-Match is about the lead', async () => {
    const lead = await given(server.admin).lead()
    const mail = await written()
    await server.admin.put(`/emails/${mail.id}`, { is_read: false })
    server.events()
    const path = `/leads/${lead.id}/emails`
    const seller = await someone(server, ['leads.edit', 'mail.outbox'])
    const refused = await seller.caller.post(path, { email_id: mail.id })
    expect([refused.status, refused.body.required]).toEqual([403, 'mail.edit'])
    const blind = await someone(server, ['leads.edit', 'mail.edit'])
    expect((await blind.caller.post(path, { email_id: mail.id })).status).toBe(422)
    expect(server.events()).toEqual([])
    const headers = { 'if-match': '"1"' }
    expect((await server.admin.post(path, { email_id: mail.id }, { headers: { 'if-match': '"2"' } })).status).toBe(412)
    expect((await server.admin.post(path, { email_id: mail.id }, { headers })).status).toBe(200)
    expect((await seller.caller.delete(`${path}/${mail.id}`)).status).toBe(403)
  })

  it('outlive the lead and the person, without a word', async () => {
    const lead = await given(server.admin).lead({ person: { name: 'Grace', emails: [{ value: 'grace@example.com' }] } })
    const mail = await written({ lead_id: lead.id, person_id: lead.person_id })
    expect((await server.admin.delete(`/leads/${lead.id}`)).status).toBe(200)
    expect((await server.admin.delete(`/contacts/persons/${lead.person_id}`)).status).toBe(200)
    expect(server.events().filter((name) => name.startsWith('email'))).toEqual([])
    const { updated_at: _at, ...left } = await shown(mail.id)
    const { updated_at: _was, ...was } = mail
    // Two deletions changed the mail, so its version increased by two.
    expect(left).toEqual({ ...was, lead_id: null, lead: null, person_id: null, person: null, version: 3 })
  })
})

describe('mails of persons', () => {
  it('are listed below the person, with the filters of mails', async () => {
    const person = await given(server.admin).person()
    const mail = await written({ person_id: person.id })
    await written()
    const path = `/contacts/persons/${person.id}/emails`
    expect((await server.admin.get(path)).body.data.map(({ id }: Email) => id)).toEqual([mail.id])
    expect((await server.admin.get(`${path}?status=draft`)).body.data).toEqual([])
    const without = await someone(server, ['contacts.persons.view'])
    expect((await without.caller.get(path)).status).toBe(403)
  })
})

describe('email_id', () => {
  it('links the mail a lead or a person comes from, after their own events', async () => {
    const mail = await written()
    const lead = await server.admin.post('/leads', { title: 'From a mail', lead_value: 1, email_id: mail.id })
    expect([lead.status, lead.body.data.emails_count]).toEqual([201, 1])
    expect(server.events()).toEqual(events('lead.create', 'email.update'))
    const emails = [{ value: 'new@example.com' }]
    const person = await server.admin.post('/contacts/persons', { name: 'New', emails, email_id: mail.id })
    expect(person.status).toBe(201)
    expect(server.events()).toEqual(events('contacts.person.create', 'email.update'))
    expect(await shown(mail.id)).toMatchObject({
      lead_id: lead.body.data.id,
      person_id: person.body.data.id,
      version: 3,
    })
  })

  it('must name a mail the caller sees and may change; otherwise nothing is created', async () => {
    const mail = await written()
    const dangling = await server.admin.post('/leads', { title: 'x', lead_value: 1, email_id: 99 })
    expect([dangling.status, Object.keys(dangling.body.errors)]).toEqual([422, ['email_id']])
    const seller = await someone(server, ['leads.create', 'contacts.persons.create', 'mail.outbox'])
    for (const [path, body] of [
      ['/leads', { title: 'x', lead_value: 1 }],
      ['/contacts/persons', { name: 'x', emails: [{ value: 'x@example.com' }] }],
    ] as const) {
      const { status, body: problem } = await seller.caller.post(path, { ...body, email_id: mail.id })
      expect.soft([status, problem.required]).toEqual([403, 'mail.edit'])
    }
    expect(server.events()).toEqual([])
    expect((await server.admin.put(`/leads/1`, { email_id: mail.id })).status).toBe(404)
  })
})

describe('deleteUser', () => {
  it('hands mails on in whatever folder they lie, or leaves them without an owner', async () => {
    const writer = await someone(server, ['mail.compose'])
    const heir = await someone(server, ['mail.compose'])
    const mail = await written({}, writer.caller)
    const boss = await someone(server, ['settings.user.users.delete', 'mail.compose'])
    const { status } = await boss.caller.delete(`/settings/users/${writer.id}?reassign_to=${heir.id}`)
    expect(status).toBe(200)
    expect(server.events().sort()).toEqual(events('email.update', 'settings.user.delete', 'user.token.delete').sort())
    expect(await shown(mail.id)).toMatchObject({ user_id: heir.id, version: 2 })
    await server.admin.delete(`/settings/users/${heir.id}`)
    expect(await shown(mail.id)).toMatchObject({ user_id: null, user: null, version: 3 })
  })
})

describe('the event log', () => {
  it('leaves out bodies of more than 64 KiB, and nothing else', async () => {
    const long = await written({ html: `<p>${'long '.repeat(14_000)}</p>` })
    const short = await written()
    const rows = await server.store.db.selectFrom('events').selectAll().where('entity_type', '=', 'emails').execute()
    const logged = (id: number) => JSON.parse(rows.find(({ entity_id }) => entity_id === id)?.after ?? '{}')
    expect(logged(short.id)).toEqual(short)
    const { html: _html, text: _text, ...rest } = long
    expect(logged(long.id)).toEqual(rest)
  })
})
