// Polling a mailbox: drafts become sent mails, and a failing listener loses no mails.
// test/flows/mail.test.ts tests the basic flow.
import { describe, expect, it } from 'vitest'
import type { Schema } from '../../src/contract/types.ts'
import { letter } from '../support/mailbox.ts'
import { poll, useImap } from '../support/outside.ts'
import { useServer } from '../support/using.ts'

type Email = Schema<'Email'>

let failing = false
const server = useServer({
  config: { mailReceiver: 'webklex-imap' },
  extensions: [
    (events) =>
      events.on('email.create.before', () => {
        if (failing) throw new TypeError('A defect.')
      }),
  ],
})
const imap = useImap(server)

const mails = async (): Promise<Email[]> => (await server.admin.get('/emails?sort=id')).body.data
const created = ['email.create.before', 'email.create.after']

describe('a mailbox', () => {
  it('shows a draft as it was sent, once it was', async () => {
    imap.addFolder('Drafts', ['\\Drafts'])
    imap.addFolder('Sent Items')
    const own = { id: 'own@x', from: 'team@localhost' }
    const attached = (file: string): string[] => [
      'Content-Type: text/csv',
      `Content-Disposition: attachment; filename=${file}`,
    ]
    imap.deliver('Drafts', letter({ ...own, subject: 'Half', to: '', more: attached('a.csv') }))
    expect(await poll(server)).toEqual(created)
    expect((await mails())[0]).toMatchObject({ subject: 'Half', folders: ['draft'] })
    imap.deliver('Sent Items', letter({ ...own, subject: 'Whole', to: 'ada@example.com', more: attached('b.csv') }))
    expect(await poll(server)).toEqual(['email.update.before', 'email.update.after'])
    const [mail, ...others] = await mails()
    expect(others).toEqual([])
    expect(mail).toMatchObject({ subject: 'Whole', folders: ['sent'], to: ['ada@example.com'] })
    expect(mail?.attachments.map(({ name }) => name)).toEqual(['b.csv'])
    expect((await server.admin.get(`/emails/${mail?.id}/raw`)).text).toContain('Subject: Whole')
    // A sent mail does not become a draft again and is not stored twice.
    imap.renumber('Drafts')
    imap.renumber('Sent Items')
    expect([await poll(server), await mails()]).toEqual([[], [mail]])
  })

  it('loses nothing that came while it could not be read for longer than ten days', async () => {
    imap.addFolder('Later')
    imap.deliver('INBOX', letter({ id: 'before@x' }), { date: new Date('2026-01-01T09:00:00Z') })
    expect(await poll(server)).toEqual([])
    imap.behave('refuse')
    await poll(server)
    const came = server.clock.now()
    server.clock.advanceMs(25 * 86_400_000)
    await poll(server)
    imap.behave('accept')
    imap.addFolder('New')
    for (const [index, path] of ['INBOX', 'Later', 'New'].entries())
      imap.deliver(path, letter({ id: `${index}@x` }), { date: came })
    // A restored mail server often has other UIDs.
    imap.renumber('Later')
    await poll(server)
    expect((await mails()).map(({ message_id }) => message_id)).toEqual(['0@x', '1@x', '2@x'])
  })

  it('tries again what a listener only failed at, and loses nothing', async () => {
    imap.deliver('INBOX', letter({ id: '1@x' }))
    failing = true
    expect(await poll(server)).toEqual(['email.create.before'])
    expect(await mails()).toEqual([])
    failing = false
    expect(await poll(server)).toEqual(created)
  })
})
