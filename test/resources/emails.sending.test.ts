// Sending mail to a real SMTP server: a queued mail is sent once and unchanged,
// failures are retried for a limited time, and trashed mails are not sent. test/mail tests the SMTP
// client.
import { afterAll, describe, expect, it } from 'vitest'
import type { Schema } from '../../src/contract/types.ts'
import { Veto } from '../../src/kernel/write/events.ts'
import { createMailer } from '../../src/mail/outbound.ts'
import { parseMail, type ReceivedMail } from '../../src/mail/parse/parse.ts'
import { type ServerOptions, startServer } from '../support/app.ts'
import { file, form } from '../support/form.ts'
import { useSmtp } from '../support/outside.ts'
import { pixel } from '../support/pictures.ts'
import { until } from '../support/until.ts'
import { useServer } from '../support/using.ts'

type Email = Schema<'Email'>

const options = (url: string | null): ServerOptions => ({
  mailer: createMailer({ url, domain: 'localhost' }),
})
const smtp = useSmtp()
const server = useServer(() => options(smtp.url))
afterAll(() => {
  server.app.services.mailer.close()
})

const letter = { subject: 'Offer', html: '<p>Please see <b>below</b>.</p>', to: ['ada@example.com'] }
async function written(changes: Record<string, unknown> = {}): Promise<Email> {
  const { status, body, text } = await server.admin.post('/emails', { ...letter, ...changes })
  if (status !== 201) throw new Error(text)
  server.events()
  return body.data
}
const shown = async (id: number): Promise<Email> => (await server.admin.get(`/emails/${id}`)).body.data
/** Returns the mails that the server accepted, parsed. */
const taken = (): Promise<ReceivedMail[]> => Promise.all(smtp.received.map(({ raw }) => parseMail(Buffer.from(raw))))
const jobs = () =>
  server.store.db.selectFrom('jobs').select(['id', 'state', 'run_at']).where('kind', '=', 'emails.send').execute()
const one = ['email.update.before', 'email.update.after']
const minutes = (count: number): void => server.clock.advanceMs(count * 60_000)
/** Advances the clock past the next attempt, including its jitter, and runs it. */
const later = async (count: number): Promise<void> => {
  minutes(count * 1.11)
  await server.work()
}

describe('a mail with a time to send it', () => {
  const at = '2026-03-01T11:00:00.000Z'

  it('waits for that time', async () => {
    const mail = await written({ send_at: '2026-03-01T12:00:00+01:00' })
    expect([mail.status, mail.send_at]).toEqual(['queued', at])
    await server.work()
    expect([smtp.received.length, (await shown(mail.id)).status]).toEqual([0, 'queued'])
    minutes(91)
    await server.work()
    expect([smtp.received.length, (await shown(mail.id)).status]).toEqual([1, 'sent'])
    const refused = await server.admin.put(`/emails/${mail.id}`, { send_at: '2027-03-01T11:00:00.000Z' })
    expect([refused.status, refused.body.code]).toEqual([409, 'state_conflict'])
    expect((await server.admin.put(`/emails/${mail.id}`, { send_at: at })).status).toBe(200)
  })

  it('is sent at another time when that changes: later, earlier, and at once', async () => {
    const mail = await written({ send_at: at })
    const change = (send_at: string | null) => server.admin.put(`/emails/${mail.id}`, { send_at })
    expect((await change('2026-03-01T13:00:00.000Z')).body.data.send_at).toBe('2026-03-01T13:00:00.000Z')
    minutes(120)
    await server.work()
    expect(smtp.received).toHaveLength(0)
    await change(null)
    await server.work()
    expect(smtp.received).toHaveLength(1)
  })

  it('is not sent from the trash, and again at its time after a restore', async () => {
    const mail = await written({ send_at: at })
    expect((await server.admin.put(`/emails/${mail.id}`, { folders: ['trash'] })).status).toBe(200)
    minutes(120)
    await server.work()
    expect(smtp.received).toHaveLength(0)
    expect((await server.admin.post(`/emails/${mail.id}/untrash`)).status).toBeLessThan(300)
    await server.work()
    expect(smtp.received).toHaveLength(1)
  })

  it('is planned when a draft with a time is sent, and a past time means at once', async () => {
    const draft = await written({ is_draft: true, send_at: at })
    await server.admin.post(`/emails/${draft.id}/send`)
    await server.work()
    expect(smtp.received).toHaveLength(0)
    minutes(91)
    await server.work()
    await written({ send_at: '2020-01-01T00:00:00.000Z' })
    await server.work()
    expect(smtp.received).toHaveLength(2)
  })
})

describe('a queued mail', () => {
  it('is sent as it was written, with two changes that are told: sending, and sent', async () => {
    const mail = await written({ cc: ['bo@example.com'], bcc: ['hidden@example.com'] })
    server.clock.advanceMs(1000)
    await server.work()
    expect(server.seen.filter(({ name }) => name.endsWith('.after')).map(({ changed }) => changed?.toSorted())).toEqual(
      [
        ['attempts', 'status'],
        ['folders', 'sent_at', 'status'],
      ],
    )
    expect(server.events()).toEqual([...one, ...one])
    expect(await shown(mail.id)).toMatchObject({
      status: 'sent',
      attempts: 1,
      error: null,
      sent_at: '2026-03-01T09:30:01.000Z',
      folders: ['sent'],
      version: 3,
    })
    expect(smtp.received.map(({ from, to }) => [from, to])).toEqual([
      ['no-reply@localhost', ['ada@example.com', 'bo@example.com', 'hidden@example.com']],
    ])
    expect(smtp.received[0]?.raw).not.toContain('hidden@')
    const [sent] = await taken()
    expect(sent).toMatchObject({
      messageId: mail.message_id,
      from: { address: 'no-reply@localhost', name: 'Accord CRM' },
      to: ['ada@example.com'],
      cc: ['bo@example.com'],
      subject: 'Offer',
      html: expect.stringMatching(/^<p>Please see <b>below<\/b>\.<\/p>\s*$/),
      references: [],
      inReplyTo: [],
      isAutomatic: false,
    })
    expect(sent?.text?.trim()).toBe('Please see below.')
    expect(sent?.replyTo).toEqual([expect.stringMatching(/^reply\+[0-9]+-[0-9a-f]{32}@localhost$/)])
    expect(sent?.replyTo?.[0]).toContain(`+${mail.id}-`)
    expect(await jobs()).toEqual([])
  })

  it('goes to hidden recipients alone, with a header that names no one', async () => {
    const mail = await written({ to: [], bcc: ['hidden@example.com', 'other@example.com'] })
    await server.work()
    expect((await shown(mail.id)).status).toBe('sent')
    expect(smtp.received[0]?.to).toEqual(['hidden@example.com', 'other@example.com'])
    expect(smtp.received[0]?.raw).toMatch(/^To: "?undisclosed-recipients"?:;\r$/m)
    const refused = await server.admin.post('/emails', { ...letter, to: [] })
    expect([refused.status, Object.keys(refused.body.errors)]).toEqual([422, ['to']])
  })

  it('carries a pasted picture as an attachment, because mail programs show no data URLs', async () => {
    const src = `data:image/png;base64,${Buffer.from(pixel).toString('base64')}`
    await written({ html: `<p>Logo: <img src="${src}" alt="logo"></p>` })
    await server.work()
    const [mail] = await taken()
    const [picture] = mail?.attachments ?? []
    expect(picture).toMatchObject({ contentType: 'image/png' })
    expect(Buffer.compare(picture?.bytes ?? Buffer.alloc(0), Buffer.from(pixel))).toBe(0)
    expect(mail?.html).toContain(`src="cid:${picture?.contentId}"`)
    expect(mail?.html).not.toContain('data:')
  })

  it('is a draft no more when it is sent, and a draft is not sent', async () => {
    const draft = await written({ is_draft: true })
    await server.work()
    expect([smtp.received.length, (await jobs()).length]).toEqual([0, 0])
    const { status } = await server.admin.post(`/emails/${draft.id}/send`)
    server.events()
    await server.work()
    expect([status, (await shown(draft.id)).status, smtp.received.length]).toEqual([202, 'sent', 1])
    expect((await server.admin.post(`/emails/${draft.id}/send`)).status).toBe(409)
    await server.work()
    expect(smtp.received).toHaveLength(1)
  })

  it('says what it answers, and the mails before that', async () => {
    const root = await written()
    const answer = await written({ parent_id: root.id })
    const last = await written({ parent_id: answer.id })
    await server.work()
    const sent = (await taken()).find(({ messageId }) => messageId === last.message_id)
    expect(sent).toMatchObject({
      subject: 'Offer',
      inReplyTo: [answer.message_id],
      references: [root.message_id, answer.message_id],
    })
    expect(new Set((await taken()).flatMap(({ replyTo }) => replyTo)).size).toBe(1)
  })

  it('brings its files, shows its own pictures, and lets the reader fetch those from elsewhere', async () => {
    const upload = await form({ file: file('logo.png', pixel) })
    const { data: picture } = (await server.admin.post('/files', upload.body, { headers: upload.headers })).body
    const other = await form({ file: file('other.png', pixel) })
    const { data: foreign } = (await server.admin.post('/files', other.body, { headers: other.headers })).body
    const text = await form({ file: file('offer.txt', '42 €') })
    const { data: offer } = (await server.admin.post('/files', text.body, { headers: text.headers })).body
    await written({
      html: `<p>A<img src="${picture.url}"><img src="${foreign.url}"><img src="https://x.example/a.png?b=1&amp;c=2"></p>`,
      attachment_ids: [picture.id, offer.id],
    })
    await server.work()
    const [sent] = await taken()
    expect(sent?.attachments.map(({ name, contentType, contentId }) => [name, contentType, contentId])).toEqual(
      expect.arrayContaining([
        ['logo.png', 'image/png', `${picture.id}@localhost`],
        ['offer.txt', 'text/plain', null],
      ]),
    )
    expect(sent?.attachments.find(({ name }) => name === 'offer.txt')?.bytes.toString()).toBe('42 €')
    expect(sent?.html).toContain(`<img src="cid:${picture.id}@localhost"`)
    expect(sent?.html).toContain(`<img src="${foreign.url}"`)
    expect(sent?.html).toContain('<img src="https://x.example/a.png?b=1&amp;c=2"')
  })

  it('sends an attached invite.ics as an invitation', async () => {
    const ics = ['BEGIN:VCALENDAR', 'VERSION:2.0', 'METHOD:REQUEST', 'END:VCALENDAR', ''].join('\r\n')
    const upload = await form({ file: file('invite.ics', ics) })
    const { data } = (await server.admin.post('/files', upload.body, { headers: upload.headers })).body
    await written({ attachment_ids: [data.id] })
    await server.work()
    expect(smtp.received[0]?.raw).toMatch(/content-type: text\/calendar;[\s\S]*method=REQUEST/i)
    expect((await taken())[0]?.attachments.map(({ name }) => name)).toEqual(expect.arrayContaining(['invite.ics']))
  })

  it('adds no header, whatever its subject says', async () => {
    await written({ subject: 'Offer\r\nBcc: evil@example.com\r\n\r\nbody' })
    await server.work()
    expect(smtp.received[0]?.to).toEqual(['ada@example.com'])
    expect((await taken())[0]).toMatchObject({ subject: 'Offer Bcc: evil@example.com body', bcc: [] })
    expect(smtp.received[0]?.raw).not.toMatch(/^bcc:/im)
  })

  it('waits without a server for outgoing mail, and says so', async () => {
    const none = await startServer(options(null))
    const { body } = await none.admin.post('/emails', letter)
    none.events()
    await none.work()
    none.clock.advanceMs(24 * 3600_000)
    await none.work()
    expect(none.events()).toEqual([])
    expect((await none.admin.get(`/emails/${body.data.id}`)).body.data).toMatchObject({ status: 'queued', attempts: 0 })
    await none.close()
  })
})

describe('a mail that is not taken', () => {
  it('is tried five times, after 1, 5, 30 and 120 minutes, and has failed then', async () => {
    smtp.behave('greylist')
    const mail = await written()
    await server.work()
    expect(server.events()).toEqual([...one, ...one])
    expect(await shown(mail.id)).toMatchObject({
      status: 'queued',
      attempts: 1,
      folders: ['outbox'],
      error: expect.stringContaining('Come back later'),
    })
    await server.work()
    expect(server.events()).toEqual([])
    for (const [index, wait] of [1, 5, 30].entries()) {
      minutes(wait * 0.89)
      await server.work()
      expect(server.events()).toEqual([])
      minutes(wait * 0.22)
      await server.work()
      expect(await shown(mail.id)).toMatchObject({ status: 'queued', attempts: index + 2 })
      expect(server.events()).toEqual([...one, ...one])
    }
    await later(120)
    expect(server.events()).toEqual([...one, ...one])
    expect(await shown(mail.id)).toMatchObject({
      status: 'failed',
      attempts: 5,
      folders: ['outbox'],
      sent_at: null,
      error: expect.stringContaining('Come back later'),
    })
    await later(1000)
    expect([server.events(), smtp.received]).toEqual([[], []])
  })

  it('can be mended and sent anew after it has failed', async () => {
    smtp.behave('refuse')
    const mail = await written()
    await server.work()
    expect(await shown(mail.id)).toMatchObject({
      status: 'failed',
      attempts: 1,
      error: expect.stringContaining('unknown here'),
    })
    smtp.behave('accept')
    await server.admin.put(`/emails/${mail.id}`, { to: ['bo@example.com'] })
    await later(1000)
    expect(smtp.received).toEqual([])
    await server.admin.post(`/emails/${mail.id}/send`)
    await server.work()
    expect(await shown(mail.id)).toMatchObject({ status: 'sent', attempts: 1, error: null })
    expect([smtp.received[0]?.to, (await taken())[0]?.messageId]).toEqual([['bo@example.com'], mail.message_id])
  })

  it('is tried again when an operator retries its job', async () => {
    smtp.behave('refuse')
    const mail = await written()
    await server.work()
    const [job] = await jobs()
    smtp.behave('accept')
    expect((await server.admin.post(`/jobs/${job?.id}/retry`)).status).toBeLessThan(300)
    await server.work()
    expect([(await shown(mail.id)).status, smtp.received.length]).toEqual(['sent', 1])
  })

  it('is sent when some of its recipients are taken, and names the others', async () => {
    smtp.behave({ refuseRecipient: 'bo@example.com' })
    const mail = await written({ cc: ['bo@example.com'] })
    await server.work()
    expect(await shown(mail.id)).toMatchObject({
      status: 'sent',
      folders: ['sent'],
      error: expect.stringMatching(/^Not accepted for bo@example\.com: .*unknown here/),
    })
    await later(1000)
    expect(smtp.received).toHaveLength(1)
  })

  it('names no recipient that was hidden, neither to listeners nor to anybody who sees it', async () => {
    smtp.behave({ refuseRecipient: 'hidden@example.com' })
    const mail = await written({ bcc: ['hidden@example.com'] })
    await server.work()
    expect(await shown(mail.id)).toMatchObject({ status: 'sent', error: 'Not accepted for a hidden recipient' })
    expect(JSON.stringify(server.seen).toLowerCase()).not.toContain('hidden@example.com')
    server.events()
    // The reply to a refused mail must not reveal the recipients either.
    smtp.behave('refuse')
    const alone = await written({ bcc: ['hidden@example.com'], to: ['hidden@example.com.example'] })
    await server.work()
    const { error, status } = await shown(alone.id)
    expect([status, error]).toEqual(['failed', expect.stringContaining('unknown here')])
    expect(error?.replaceAll('hidden@example.com.example', '')).not.toContain('hidden@')
  })

  it('is sent again with the same Message-ID when it may have arrived, and says so', async () => {
    smtp.behave('half-accept')
    const mail = await written()
    await server.work()
    expect(await shown(mail.id)).toMatchObject({
      status: 'queued',
      error: expect.stringContaining('It may have arrived.'),
    })
    smtp.behave('accept')
    await later(1)
    expect(await shown(mail.id)).toMatchObject({ status: 'sent', attempts: 2, error: null })
    expect((await taken()).map(({ messageId }) => messageId)).toEqual([mail.message_id, mail.message_id])
  })

  it('is sent again with the same Message-ID after a crash in the middle of a try', async () => {
    const mail = await written()
    await server.store.db
      .updateTable('emails')
      .set({ status: 'sending', attempts: 1 })
      .where('id', '=', mail.id)
      .execute()
    await server.work()
    expect((await shown(mail.id)).status).toBe('sent')
    expect(server.events()).toEqual(one)
    expect((await taken()).map(({ messageId }) => messageId)).toEqual([mail.message_id])
  })
})

describe('a worker that stops', () => {
  it('lets a mail that is on its way come to its end', async () => {
    smtp.behave('slow')
    const stopping = await startServer(options(smtp.url))
    const { body } = await stopping.admin.post('/emails', letter)
    const before = smtp.connections().total
    const done = stopping.work()
    await until(() => smtp.connections().total > before)
    await stopping.app.worker.stop()
    await done
    expect((await stopping.admin.get(`/emails/${body.data.id}`)).body.data).toMatchObject({
      status: 'sent',
      attempts: 1,
    })
    expect(smtp.received).toHaveLength(1)
    stopping.app.services.mailer.close()
    await stopping.close()
  })
})

describe('a mail that is on its way', () => {
  it('cannot be deleted meanwhile, so that it is not sent again once it is restored', async () => {
    let goOn = (): void => undefined
    const waitFor = new Promise<void>((resolve) => {
      goOn = resolve
    })
    smtp.behave({ waitFor })
    const mail = await written()
    const done = server.work()
    await until(async () => (await shown(mail.id)).status === 'sending')
    const refused = await server.admin.delete(`/emails/${mail.id}?type=delete`)
    goOn()
    await done
    expect([refused.status, refused.body.code]).toEqual([409, 'state_conflict'])
    smtp.behave('accept')
    expect((await server.admin.delete(`/emails/${mail.id}?type=delete`)).status).toBe(200)
    await server.admin.post(`/emails/${mail.id}/restore`)
    await later(1000)
    expect([(await shown(mail.id)).status, smtp.received.length]).toEqual(['sent', 1])
  })

  it('can be deleted where no mail is sent any more, and has failed when it comes back', async () => {
    const silent = await startServer(options(null))
    const { body } = await silent.admin.post('/emails', letter)
    const path = `/emails/${body.data.id}`
    await silent.store.db.updateTable('emails').set({ status: 'sending' }).execute()
    expect((await silent.admin.delete(`${path}?type=delete`)).status).toBe(200)
    const back = await silent.admin.post(`${path}/restore`)
    expect([back.status, back.body.data.status, back.body.data.error]).toEqual([
      200,
      'failed',
      expect.stringContaining('may have arrived'),
    ])
    await silent.close()
  })
})

describe('a listener', () => {
  it.each([
    ['refuses', new Veto('Never.')],
    ['fails', new TypeError('A defect.')],
  ])('that %s when it hears that a mail was sent does not have it sent again', async (_, thrown) => {
    const url = smtp.url
    const picky = await startServer({
      ...options(url),
      extensions: [
        (events) =>
          events.on('email.update.before', ({ input }) => {
            if ((input as { status?: string }).status === 'sent') throw thrown
          }),
      ],
    })
    const { body } = await picky.admin.post('/emails', letter)
    await picky.work()
    picky.clock.advanceMs(24 * 3600_000)
    await picky.work()
    expect((await picky.admin.get(`/emails/${body.data.id}`)).body.data).toMatchObject({
      status: 'sent',
      folders: ['sent'],
    })
    expect(smtp.received).toHaveLength(1)
    picky.app.services.mailer.close()
    await picky.close()
  })
})

describe('a mail that is thrown away while it waits', () => {
  it('is not sent from the trash, and is sent once it is taken out', async () => {
    const mail = await written()
    await server.admin.put(`/emails/${mail.id}`, { folders: ['trash'] })
    server.events()
    await server.work()
    expect([smtp.received, server.events(), (await shown(mail.id)).status]).toEqual([[], [], 'queued'])
    await server.admin.post(`/emails/${mail.id}/untrash`)
    await server.work()
    expect([(await shown(mail.id)).status, (await shown(mail.id)).folders, smtp.received.length]).toEqual([
      'sent',
      ['sent'],
      1,
    ])
  })

  it('is sent once only when it goes to the trash and back at once, also between two tries', async () => {
    smtp.behave('greylist')
    const mail = await written()
    for (let round = 0; round < 3; round++) {
      await server.admin.put(`/emails/${mail.id}`, { folders: ['trash'] })
      await server.admin.put(`/emails/${mail.id}`, { folders: ['starred'] })
      await server.work()
    }
    expect(await shown(mail.id)).toMatchObject({ attempts: 1, folders: ['starred', 'outbox'] })
    smtp.behave('accept')
    await later(1)
    await later(1000)
    expect(smtp.received).toHaveLength(1)
    expect(await jobs()).toEqual([])
  })

  it('is not sent once it is deleted, and waits again once it is restored', async () => {
    const mail = await written()
    await server.admin.delete(`/emails/${mail.id}?type=delete`)
    server.events()
    await server.work()
    expect([smtp.received, server.events(), await jobs()]).toEqual([[], [], []])
    await server.admin.post(`/emails/${mail.id}/restore`)
    await server.work()
    expect([(await shown(mail.id)).status, smtp.received.length]).toEqual(['sent', 1])
  })

  it('has a job again when it has lost its own', async () => {
    const mail = await written()
    const trashed = await written()
    await server.admin.put(`/emails/${trashed.id}`, { folders: ['trash'] })
    await server.store.db.deleteFrom('jobs').execute()
    await server.tick()
    minutes(60)
    await server.tick()
    await server.work()
    expect([(await shown(mail.id)).status, (await shown(trashed.id)).status, smtp.received.length]).toEqual([
      'sent',
      'queued',
      1,
    ])
  })
})
