// Composed mails, checked as bytes and with the own parser: threads, blind copies, all scripts, and
// no header injection.
import { Readable } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { inviteOf } from '../../src/mail/invite.ts'
import { compose, type OutboundMessage } from '../../src/mail/message.ts'
import { parseMail } from '../../src/mail/parse/parse.ts'
import { attached, outbound } from './given.ts'

const wire = async (changes: Partial<OutboundMessage>): Promise<string> =>
  (await compose(outbound(changes))).raw.toString('latin1')
const head = async (changes: Partial<OutboundMessage>): Promise<string> =>
  (await wire(changes)).split('\r\n\r\n')[0] ?? ''
const back = async (changes: Partial<OutboundMessage>) => parseMail((await compose(outbound(changes))).raw)

describe('headers', () => {
  it('place the mail in its thread', async () => {
    const made = await head({
      inReplyTo: 'b@example.com',
      references: ['a@example.com', 'not an id', 'b@example.com'],
      replyTo: 'reply+token@crm.example.com',
    })
    expect(made).toContain('In-Reply-To: <b@example.com>')
    expect(made).toContain('References: <a@example.com> <b@example.com>')
    expect(made).toContain('Reply-To: reply+token@crm.example.com')
    expect(made).toContain('Date: Sun, 01 Mar 2026 09:30:00 +0000')
    expect(made).not.toContain('not an id')
  })

  it('hold the text that takes a recipient off the list, whole', async () => {
    const url = `https://crm.example.com/unsubscribe/${'a'.repeat(200)}`
    const made = await head({
      headers: { 'List-Unsubscribe': `<${url}>`, 'List-Unsubscribe-Post': 'List-Unsubscribe=One-Click' },
    })
    expect(made.replaceAll('\r\n ', '')).toContain(`<${url}>`)
    expect(made).toContain('List-Unsubscribe-Post: List-Unsubscribe=One-Click')
  })

  it('never name a blind copy, which only the envelope knows', async () => {
    const { raw, recipients } = await compose(outbound({ cc: ['bob@example.com'], bcc: ['eve@example.com'] }))
    expect([...recipients.keys()]).toEqual(['ada@example.com', 'bob@example.com', 'eve@example.com'])
    expect(raw.toString()).not.toMatch(/bcc|eve@example\.com/i)
  })

  it('carry a subject that looks encoded as it was typed', async () => {
    for (const subject of ['=?utf-8?Q?Caf=C3=A9?= as typed', 'What is =?iso-8859-1?B?YQ==?= and =?', '=?'.repeat(60)])
      expect((await back({ subject })).subject).toBe(subject)
  })

  it.each([
    ['one word', 'x'.repeat(998)],
    ['many words', 'word '.repeat(199).trim()],
    ['letters outside ASCII', 'Größe '.repeat(160).trim()],
  ])('fold a long subject of %s into lines of at most 78 characters', async (_which, subject) => {
    const lines = (await head({ subject })).split('\r\n')
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(78)
    expect((await back({ subject })).subject).toBe(subject)
  })

  it('carry any script in subject and names, and domains as DNS has them', async () => {
    const mail = await back({
      subject: 'Angebot für 日本 🎉 — ½ price',
      from: { address: 'no-reply@bücher.example', name: 'Bücher & Co, "Köln" 🏢' },
      to: ['ada@例え.example'],
    })
    expect(mail).toMatchObject({
      subject: 'Angebot für 日本 🎉 — ½ price',
      from: { name: 'Bücher & Co, "Köln" 🏢', address: 'no-reply@xn--bcher-kva.example' },
      to: ['ada@xn--r8jz45g.example'],
    })
    expect(await head({ subject: 'Grüße' })).toMatch(/^[\x20-\x7e\r\n]*$/)
  })

  const injected = 'x\r\nBcc: eve@example.com\r\n\r\nbody'
  const places: [string, Partial<OutboundMessage>][] = [
    ['the subject', { subject: injected }],
    ['the subject, by a bare line feed', { subject: 'x\nBcc: eve@example.com' }],
    ['the subject, by a bare carriage return', { subject: 'x\rBcc: eve@example.com' }],
    ["the sender's name", { from: { address: 'a@example.com', name: injected } }],
    ['a further header', { headers: { 'X-Campaign': injected } }],
    ['the name of an attachment', { attachments: [attached({ name: injected })] }],
    ['the type of an attachment', { attachments: [attached({ contentType: `text/plain${injected}` })] }],
    ['the id of an image', { html: '<img src="cid:x">', attachments: [attached({ contentId: injected })] }],
    ['the references', { references: [injected], inReplyTo: injected }],
  ]
  it.each(places)('cannot be added through %s', async (_where, changes) => {
    const { raw, recipients } = await compose(outbound(changes))
    expect(raw.toString()).not.toMatch(/^bcc:/im)
    expect([...recipients.keys()]).toEqual(['ada@example.com'])
    expect((await parseMail(raw)).bcc).toEqual([])
  })

  const refused: [string, Partial<OutboundMessage>][] = [
    ['a recipient with a break', { to: ['ada@example.com\r\nBcc: eve@example.com'] }],
    ['two recipients in one', { to: ['ada@example.com, eve@example.com'] }],
    ['a recipient with a name', { cc: ['Ada <ada@example.com>'] }],
    ['a command in an address', { bcc: ['ada@example.com> SIZE=1'] }],
    ['an address without a domain', { to: ['ada'] }],
    ['an address to answer to with a break', { replyTo: 'a@example.com\nBcc: eve@example.com' }],
    ['a message id with a break', { messageId: 'a@b\r\nBcc: eve@example.com' }],
    ['a header that is made from a field', { headers: { Bcc: 'eve@example.com' } }],
    ['a header name with a break', { headers: { 'X-A: b\r\nBcc': 'eve@example.com' } }],
    ['no recipient', { to: [] }],
  ]
  it.each(refused)('are not made for %s', async (_what, changes) => {
    await expect(compose(outbound(changes))).rejects.toMatchObject({ name: 'MailRefused' })
  })
})

describe('the body', () => {
  it('comes as text and as HTML, with lines no server breaks', async () => {
    const mail = await back({ html: `<p>${'ü'.repeat(3000)}</p>`, text: `${'ü'.repeat(3000)}\n.\nend` })
    expect(mail.html).toContain('ü'.repeat(3000))
    expect(mail.text?.replaceAll('\r', '')).toContain(`${'ü'.repeat(3000)}\n.\nend`)
    const longest = Math.max(...(await wire({ text: 'x'.repeat(5000) })).split('\r\n').map((line) => line.length))
    expect(longest).toBeLessThan(999)
  })

  it('has attachments byte by byte, and images where the HTML shows them', async () => {
    const bytes = Buffer.from([0, 1, 2, 13, 10, 46, 13, 10, 255])
    const mail = await back({
      html: '<img src="cid:logo@x">',
      attachments: [
        attached({ name: 'Übersicht – März.bin', contentType: 'application/octet-stream', bytes }),
        attached({ name: 'logo.png', contentType: 'image/png', contentId: 'logo@x', bytes }),
        attached({ name: 'old.eml', contentType: 'message/rfc822', bytes: Buffer.from('From: a@b.c\n\nx') }),
      ],
    })
    expect(mail.attachments.map(({ name, contentId }) => [name, contentId])).toEqual(
      expect.arrayContaining([
        ['Übersicht – März.bin', null],
        ['logo.png', 'logo@x'],
        ['old.eml', null],
      ]),
    )
    expect(mail.attachments.filter((each) => each.bytes.equals(bytes))).toHaveLength(2)
  })

  it('is not made when an attachment cannot be read, and the mail is put off', async () => {
    const broken = attached({
      content: () =>
        new Readable({
          read() {
            this.destroy(new Error('ENOENT: /data/files/ab/cdef'))
          },
        }),
    })
    await expect(compose(outbound({ attachments: [broken] }))).rejects.toMatchObject({
      name: 'MailDeferred',
      message: 'An attachment could not be read.',
    })
  })
})

describe('an invitation', () => {
  const invitation = {
    uid: 'activity-7@crm.example.com',
    sequence: 3,
    start: new Date('2026-03-10T14:00:00Z'),
    end: new Date('2026-03-10T15:00:00Z'),
    isAllDay: false,
    summary: 'Demo; with, signs\r\nBEGIN:VALARM',
    description: 'Line one\nLine two',
    location: 'Köln',
    organiser: { name: 'Ada "The" Owner', email: 'ada@crm.example.com' },
    attendees: [{ name: 'Bob', email: 'bob@example.com' }],
    created: new Date('2026-03-01T09:30:00Z'),
    method: 'REQUEST' as const,
  }

  it('is one event in UTC with an id that stays, and the same each time', () => {
    const text = inviteOf(invitation)
    expect(text.match(/BEGIN:VEVENT/g)).toHaveLength(1)
    for (const line of [
      'METHOD:REQUEST',
      'UID:activity-7@crm.example.com',
      'SEQUENCE:3',
      'DTSTART:20260310T140000Z',
      'DTEND:20260310T150000Z',
      'DTSTAMP:20260301T093000Z',
      'LOCATION:Köln',
    ])
      expect(text.split('\r\n')).toContain(line)
    expect(text).toMatch(/ORGANIZER;CN="Ada 'The' Owner":mailto:ada@crm\.example\.com/i)
    expect(text.replaceAll('\r\n ', '')).toMatch(/ATTENDEE;[^\r]*mailto:bob@example\.com/i)
    expect(text).not.toMatch(/^BEGIN:VALARM/m)
    expect(inviteOf(invitation)).toBe(text)
  })

  it('is the one calendar part beside the text and the HTML', async () => {
    for (const method of ['REQUEST', 'CANCEL'] as const) {
      const made = await wire({ calendar: inviteOf({ ...invitation, method }) })
      const types = [...made.matchAll(/^Content-Type: ([^;\r]*)/gm)].map(([, type]) => type)
      expect(types).toEqual(['multipart/alternative', 'text/plain', 'text/html', 'text/calendar'])
      expect(made).toMatch(
        new RegExp(`Content-Type: text/calendar; charset=utf-8; method=${method};\\s+name=invite.ics`),
      )
      expect(made).not.toMatch(/Content-Disposition/i)
    }
  })

  it('leaves room for attachments', async () => {
    const made = await wire({ calendar: inviteOf(invitation), attachments: [attached()] })
    expect(made.match(/^Content-Type: text\/calendar/gm)).toHaveLength(1)
    expect(made.match(/^Content-Disposition: attachment/gm)).toHaveLength(1)
  })
})
