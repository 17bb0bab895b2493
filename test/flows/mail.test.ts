// Sending and receiving mail with a real SMTP server and a real mailbox: mails of both ways form
// one thread, a mail that arrives twice is stored once, and no mail is lost when the mailbox
// misbehaves.
import { afterAll, beforeEach, describe, expect, it } from 'vitest'
import type { Schema } from '../../src/contract/types.ts'
import { Veto } from '../../src/kernel/write/events.ts'
import { createMailer } from '../../src/mail/outbound.ts'
import { form } from '../support/form.ts'
import { given } from '../support/given.ts'
import { letter } from '../support/mailbox.ts'
import { poll, useImap, useSmtp } from '../support/outside.ts'
import { realMail, realMails, type WantedMail } from '../support/real-mails.ts'
import { useServer } from '../support/using.ts'

type Email = Schema<'Email'>

const inbound = '//admin/mail/inbound-parse?secret=open'

const smtp = useSmtp()
const server = useServer(() => ({
  mailer: createMailer({ url: smtp.url, domain: 'localhost' }),
  config: { mailReceiver: 'webklex-imap', inboundSecret: 'open' },
  extensions: [
    (events) =>
      events.on('email.create.before', ({ input }) => {
        if ((input as { subject?: string }).subject === 'Refused') throw new Veto('Not this one.')
      }),
  ],
}))
// Before the schedule begins: it polls only a mailbox that it knows by then.
beforeEach(() => receiver('webklex-imap'))
const imap = useImap(server)
afterAll(() => server.app.services.mailer.close())

/** Sets the way in which the installation receives mail. */
const receiver = (mailReceiver: 'sendgrid' | 'webklex-imap'): void =>
  void Object.assign(server.app.services.config, { mailReceiver })
const mails = async (): Promise<Email[]> => (await server.admin.get('/emails?sort=id&per_page=100')).body.data
const created = ['email.create.before', 'email.create.after']

describe('the e-mails of real programs', () => {
  /** Compares the e-mail of the API with the expected one. */
  function check(mail: Email, want: WantedMail): void {
    if (want.text !== undefined) expect(mail.text?.trim()).toBe(want.text)
    if (want.textContains !== undefined) expect(mail.text).toContain(want.textContains)
    if (want.subject !== undefined) expect(mail.subject).toBe(want.subject)
    if (want.from !== undefined) expect(mail.from).toEqual(want.from)
    if (want.name !== undefined) expect(mail.from_name).toBe(want.name)
    if (want.attachments !== undefined) expect(mail.attachments.map(({ name }) => name)).toEqual(want.attachments)
    if (want.is_automatic !== undefined) expect(mail.is_automatic).toBe(want.is_automatic)
    expect(mail.error).toBeNull()
  }

  it('are shown as expected when they come from a mailbox', async () => {
    for (const [name] of realMails) imap.deliver('INBOX', realMail(name))
    await poll(server)
    const all = await mails()
    expect(all).toHaveLength(realMails.length)
    for (const [index, [, want]] of realMails.entries()) check(all[index] as Email, want)
  })

  it('are shown as expected when a service posts them', async () => {
    receiver('sendgrid')
    for (const [name, want] of realMails) {
      const { body, headers } = await form({ email: new File([new Uint8Array(realMail(name))], 'mail.eml') })
      const posted = await server.anonymous.post(inbound, body, { headers })
      expect([name, posted.status]).toEqual([name, 200])
      check((await server.admin.get(`/emails/${posted.body.data.id}`)).body.data, want)
    }
  })

  it('with one Message-ID are two, and each of them is stored once', async () => {
    const both = ['same-message-id-1.eml', 'same-message-id-2.eml']
    for (const name of [...both, ...both]) imap.deliver('INBOX', realMail(name))
    await poll(server)
    expect(await mails()).toHaveLength(2)
  })
})

describe('a mail that is sent and answered', () => {
  it('is one thread with its answers, whichever way they come, about its person and lead', async () => {
    const make = given(server.admin)
    const person = await make.person({ emails: [{ value: 'ada@example.com', label: 'work' }] })
    const lead = await make.lead({ person_id: person.id } as never)
    const { data: offer } = (
      await server.admin.post('/emails', {
        subject: 'Offer',
        html: '<p>Hi</p>',
        to: ['ada@example.com'],
        person_id: person.id,
        lead_id: lead.id,
      })
    ).body
    await server.work()
    const sent = smtp.received[0]?.raw ?? ''
    const header = (name: string): string => new RegExp(`^${name}: (.*)$`, 'im').exec(sent)?.[1]?.trim() ?? ''

    // A reply with the thread headers but without the reply address, fetched from the mailbox.
    imap.deliver(
      'INBOX',
      letter({
        id: 'a@x',
        subject: 'Re: Offer',
        more: [`In-Reply-To: ${header('message-id')}`, `References: ${header('message-id')}`],
      }),
    )
    expect(await poll(server)).toEqual([
      'email.create.before',
      'email.update.before',
      'email.create.after',
      'email.update.after',
    ])
    // A reply with only the reply address, posted by a mail service.
    receiver('sendgrid')
    const bare = letter({ id: 'b@x', to: header('reply-to'), subject: 'An other matter' })
    const { body, headers } = await form({ email: bare })
    const posted = await server.anonymous.post(inbound, body, { headers })
    expect(posted.body.data).toMatchObject({
      duplicate: false,
      person_id: person.id,
    })
    // The same two mails arrive again in the other way, and an own mail is returned by a mailing
    // list.
    const again = await form({ email: letter({ id: 'a@x' }) })
    const repeated = await server.anonymous.post(inbound, again.body, { headers: again.headers })
    expect(repeated.body.data.duplicate).toBe(true)
    receiver('webklex-imap')
    imap.deliver('INBOX', bare)
    imap.deliver('INBOX', sent)
    expect(await poll(server)).toEqual([])

    const all = await mails()
    expect(all.map(({ thread_id, person_id, lead_id, status }) => [thread_id, person_id, lead_id, status])).toEqual([
      [offer.id, person.id, lead.id, 'sent'],
      [offer.id, person.id, lead.id, 'received'],
      [offer.id, person.id, lead.id, 'received'],
    ])
    expect(all[0]).toMatchObject({ folders: ['inbox', 'sent'], is_read: false })
    const thread = (await server.admin.get(`/emails/${offer.id}/thread`)).body.data
    expect(thread.map(({ id }: Email) => id)).toEqual(all.map(({ id }) => id))
    const entries = (await server.admin.get(`/leads/${lead.id}/activities`)).body.data as { source: string }[]
    expect(entries.filter(({ source }) => source === 'email')).toHaveLength(3)

    // A reply from Accord joins the thread.
    await server.admin.post('/emails', { html: '<p>Yes</p>', to: ['ada@example.com'], parent_id: all[1]?.id })
    await server.work()
    expect(smtp.received[1]?.raw).toMatch(/^In-Reply-To: <a@x>/im)
    expect(smtp.received[1]?.raw).toMatch(/^Subject: Re: Offer/im)
    expect(smtp.received[1]?.raw).toContain(header('reply-to'))
  })
})

describe('a mailbox', () => {
  it('is read folder by folder, each mail once, and left as it was', async () => {
    imap.addFolder('Junk', ['\\Junk'])
    imap.addFolder('Sent Items')
    imap.addFolder('All Mail', ['\\All'])
    imap.deliver('INBOX', letter({ id: '1@x' }))
    imap.deliver('Junk', letter({ id: '2@x' }))
    imap.deliver('Sent Items', letter({ id: '3@x', from: 'team@localhost' }))
    for (const id of ['1@x', '2@x', '3@x']) imap.deliver('All Mail', letter({ id }))
    expect(await poll(server)).toEqual([...created, ...created, ...created])
    expect(
      (await mails())
        .map(({ message_id, folders, sender_type, is_read }) => [message_id, folders, sender_type, is_read])
        .sort(),
    ).toEqual([
      ['1@x', ['inbox'], 'person', false],
      ['2@x', ['spam'], 'person', false],
      ['3@x', ['sent'], 'user', true],
    ])
    const fetched = (): number => imap.commands.filter((each) => each.startsWith('UID FETCH')).length
    const before = fetched()
    expect([await poll(server), fetched() - before]).toEqual([[], 0])
    imap.deliver('INBOX', letter({ id: '4@x' }))
    expect(await poll(server)).toEqual(created)
    imap.renumber('INBOX')
    expect(await poll(server)).toEqual([])
    expect(await mails()).toHaveLength(4)
    expect(imap.folder('INBOX').messages.flatMap(({ flags }) => flags)).toEqual([])
    const raw = await server.admin.get('/emails/1/raw')
    expect([raw.status, raw.text]).toEqual([200, letter({ id: '1@x' })])
  })

  it('shows what was sent elsewhere with its answers, though the answers are read first', async () => {
    imap.addFolder('Sent Items')
    imap.deliver('INBOX', letter({ id: 'answer@x', more: ['In-Reply-To: <sent@x>'] }))
    imap.deliver('Sent Items', letter({ id: 'sent@x', from: 'team@localhost' }))
    await poll(server)
    const [answer, sent] = await mails()
    expect([answer?.message_id, sent?.message_id]).toEqual(['answer@x', 'sent@x'])
    expect([sent?.thread_id, sent?.parent_id, answer?.thread_id, answer?.version]).toEqual([
      answer?.id,
      null,
      answer?.id,
      1,
    ])
  })

  it('shows what cannot be read with a note, once, and is read on behind it', async () => {
    const deep = [
      ...[
        'Message-ID: <deep@x>',
        'From: ada@example.com',
        'Subject: Deep',
        'Content-Type: multipart/mixed; boundary=b0',
        '',
      ],
      ...Array.from({ length: 1000 }, (_, n) => `--b${n}\r\nContent-Type: multipart/mixed; boundary=b${n + 1}\r\n`),
    ].join('\r\n')
    imap.deliver('INBOX', deep)
    imap.deliver('INBOX', 'no mail at all')
    imap.deliver('INBOX', letter({ id: '3@x' }), { flags: ['\\Seen'] })
    expect(await poll(server)).toEqual([...created, ...created, ...created])
    const fetched = imap.commands.length
    expect(await poll(server)).toEqual([])
    expect(imap.commands.slice(fetched).filter((each) => each.startsWith('UID FETCH'))).toEqual([])
    const [unreadable, strange, read] = await mails()
    expect(unreadable).toMatchObject({
      message_id: 'deep@x',
      subject: 'Deep',
      from: ['ada@example.com'],
      error: expect.stringContaining('nested too deeply'),
      attachments: [{ name: 'message.eml', size: deep.length }],
      is_read: false,
    })
    expect(strange).toMatchObject({ from: [], subject: null, error: 'This is not an e-mail: it has no headers.' })
    const url = `/emails/${strange?.id}/attachments/${strange?.attachments[0]?.id}/download`
    expect((await server.admin.get(url)).text).toBe('no mail at all')
    expect(read).toMatchObject({ message_id: '3@x', error: null, is_read: true })
  })

  it('shows the headers of a mail larger than 30 MiB, and where the rest is', async () => {
    imap.deliver('INBOX', letter({ id: 'large@x' }))
    imap.behave('huge')
    expect(await poll(server)).toEqual(created)
    expect(await poll(server)).toEqual([])
    const error = 'The e-mail has 39 MiB, but at most 30 MiB are read. It remains in the folder INBOX of the mailbox.'
    expect(await mails()).toMatchObject([{ message_id: 'large@x', error, text: error, attachments: [] }])
  })

  it('is read on after mails that a listener refuses or that are empty', async () => {
    imap.deliver('INBOX', letter({ id: '1@x', subject: 'Refused' }))
    imap.deliver('INBOX', '')
    imap.deliver('INBOX', letter({ id: '3@x' }))
    expect(await poll(server)).toEqual(['email.create.before', ...created])
    expect(await poll(server)).toEqual([])
    expect((await mails()).map(({ message_id }) => message_id)).toEqual(['3@x'])
  })

  it.each(['refuse', 'drop'] as const)('that answers wrongly (%s) loses nothing, and is asked again', async (mode) => {
    imap.deliver('INBOX', letter({ id: '1@x' }))
    imap.behave(mode)
    expect(await poll(server)).toEqual([])
    expect(await server.store.db.selectFrom('jobs').selectAll().execute()).toEqual([])
    imap.behave('accept')
    expect(await poll(server)).toEqual(created)
  })

  it('is the one of the configuration, when that names one', async () => {
    imap.deliver('INBOX', letter({ id: '1@x' }))
    const { host, port, username, password } = imap
    Object.assign(server.app.services.config, {
      imap: { host: '127.0.0.1', port: 9, username: 'x', password: 'y', encryption: 'ssl', validateCert: true },
    })
    const account = { host, port, username, password, encryption: 'none' }
    const values = Object.fromEntries(
      Object.entries(account).map(([name, value]) => [`email.imap.account.${name}`, value]),
    )
    const { status, text } = await server.admin.put('/settings/configuration', { values })
    expect([status, text.includes(password)]).toEqual([200, false])
    expect(await poll(server)).toEqual(created)
  })

  it('is not asked where mail is posted', async () => {
    receiver('sendgrid')
    imap.deliver('INBOX', letter({ id: '1@x' }))
    expect([await poll(server), imap.connections().total]).toEqual([[], 0])
  })
})
