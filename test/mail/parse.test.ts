// Parsing mails: the fields of valid mails, and the readable fields of invalid mails.
import { describe, expect, it } from 'vitest'
import { parseMail } from '../../src/mail/parse/parse.ts'
import { lines } from './given.ts'

const read = (...text: string[]) => parseMail(lines(...text))
const from = 'From: Ada <Ada@Example.com>'

describe('a mail', () => {
  it('is read with its people, its thread, its texts and its files', async () => {
    const mail = await read(
      'Return-Path: <ada@example.com>',
      'Delivered-To: Reply+Token@crm.example.com',
      'X-Original-To: <sales@crm.example.com>',
      'From: =?utf-8?Q?J=C3=BCrgen?= <Juergen@Example.com>',
      'Sender: office@example.com',
      'To: "Sales, Accord" <Sales@crm.example.com>, Team: bob@example.com, eve@example.com;',
      'Cc: carol@example.com',
      'Reply-To: answers@example.com',
      'Subject: =?utf-8?B?R3LDvMOfZQ==?= aus',
      ' Köln',
      'Date: Sun, 1 Mar 2026 10:30:00 +0100',
      'Message-ID: < abc@example.com >',
      'In-Reply-To: <one@crm.example.com>',
      'References: <zero@crm.example.com>',
      '\t<one@crm.example.com>  <one@crm.example.com>',
      'MIME-Version: 1.0',
      'Content-Type: multipart/mixed; boundary=b',
      '',
      '--b',
      'Content-Type: multipart/alternative; boundary=c',
      '',
      '--c',
      'Content-Type: text/plain; charset=iso-8859-1',
      'Content-Transfer-Encoding: quoted-printable',
      '',
      'Gr=FC=DFe',
      '--c',
      'Content-Type: text/html; charset=utf-8',
      '',
      '<p>Grüße <img src="cid:logo@x"></p>',
      '--c--',
      '--b',
      'Content-Type: image/png; name="=?utf-8?Q?b=C3=BCro.png?="',
      'Content-ID: <logo@x>',
      'Content-Disposition: inline',
      'Content-Transfer-Encoding: base64',
      '',
      'AAEC/w==',
      '--b',
      'Content-Type: application/pdf',
      "Content-Disposition: attachment; filename*=utf-8''..%2F..%2Fangebot%20%C3%BC.pdf",
      '',
      'pdf',
      '--b--',
    )
    expect(mail).toMatchObject({
      messageId: 'abc@example.com',
      inReplyTo: ['one@crm.example.com'],
      references: ['zero@crm.example.com', 'one@crm.example.com'],
      from: { name: 'Jürgen', address: 'Juergen@Example.com' },
      sender: ['office@example.com'],
      replyTo: ['answers@example.com'],
      to: ['Sales@crm.example.com', 'bob@example.com', 'eve@example.com'],
      cc: ['carol@example.com'],
      bcc: [],
      subject: 'Grüße aus Köln',
      date: new Date('2026-03-01T09:30:00Z'),
      isAutomatic: false,
      droppedAttachments: 0,
    })
    expect(mail.recipients.sort()).toEqual([
      'bob@example.com',
      'carol@example.com',
      'eve@example.com',
      'reply+token@crm.example.com',
      'sales@crm.example.com',
    ])
    expect(mail.text?.trim()).toBe('Grüße')
    expect(mail.html?.trim()).toBe('<p>Grüße <img src="cid:logo@x"></p>')
    expect(mail.attachments.map(({ name, contentType, contentId }) => [name, contentType, contentId])).toEqual([
      ['büro.png', 'image/png', 'logo@x'],
      ['angebot ü.pdf', 'application/pdf', null],
    ])
    expect([...(mail.attachments[0]?.bytes ?? [])]).toEqual([0, 1, 2, 255])
  })

  it('keeps a mail within it as a file, not as text of its own', async () => {
    const mail = await read(
      from,
      'Content-Type: multipart/mixed; boundary=b',
      '',
      '--b',
      '',
      'See below.',
      '--b',
      'Content-Type: message/rfc822',
      '',
      'From: eve@example.com',
      'Subject: Inner',
      '',
      'inner',
      '--b--',
    )
    expect(mail.text?.trim()).toBe('See below.')
    expect(mail.attachments).toMatchObject([{ name: 'attachment-1.eml', contentType: 'message/rfc822' }])
  })

  it('has an id even when its sender gave it none: the same for the same mail, another for another', async () => {
    const [one, same, other] = await Promise.all([
      read(from, 'Subject: Hi', '', 'Hello'),
      read('X-Hop: 2', from, 'Subject: Hi', '', 'Hello'),
      read(from, 'Subject: Hi', '', 'Hello!'),
    ])
    expect(one.messageId).toMatch(/^[0-9a-f]{64}@inbound$/)
    expect(same.messageId).toBe(one.messageId)
    expect(other.messageId).not.toBe(one.messageId)
    expect(one.date).toBeNull()
  })

  it.each([
    ['no header of the kind', [], false],
    ['Auto-Submitted: no', ['Auto-Submitted: No'], false],
    ['an answering machine', ['Auto-Submitted: auto-replied (vacation)'], true],
    ['a list', ['Precedence: list'], true],
    ['a mass mail', ['Precedence: BULK'], true],
    ['a bounce', ['Return-Path: <>'], true],
    ['a report', ['Content-Type: multipart/report; report-type=delivery-status; boundary=b'], true],
    ['a first-class mail', ['Precedence: first-class'], false],
  ])('is automatic or not by its headers: %s', async (_what, headers, isAutomatic) => {
    expect((await read(...headers, from, '', 'x')).isAutomatic).toBe(isAutomatic)
  })
})

describe('what can be saved of a broken mail', () => {
  it.each<[string, string[], object]>([
    ['a date that is none', [from, 'Date: yesterday, about noon', '', 'x'], { date: null }],
    ['a date before mail', [from, 'Date: Mon, 1 Mar 1926 10:30:00 +0000', '', 'x'], { date: null }],
    ['no sender', ['Subject: Hi', '', 'x'], { from: null, to: [], subject: 'Hi' }],
    ['a sender without an address', ['From: Ada Lovelace', '', 'x'], { from: null }],
    [
      'a sender header instead',
      ['Sender: ada@example.com', '', 'x'],
      { from: { address: 'ada@example.com', name: '' } },
    ],
    ['headers only', [from], { from: { address: 'Ada@Example.com', name: 'Ada' }, text: null, html: null }],
    ['an unknown script', [from, 'Content-Type: text/plain; charset=x-klingon', '', 'qapla'], { text: 'qapla\n' }],
    ['a subject in a broken encoding', [from, 'Subject: =?utf-8?B?%%%?= =?x?Q?', '', 'x'], {}],
    ['a multipart without a boundary', [from, 'Content-Type: multipart/mixed', '', 'x'], {}],
    [
      'a multipart without an end',
      [from, 'Content-Type: multipart/mixed; boundary=b', '', '--b', '', 'x'],
      { text: 'x\n' },
    ],
    ['base64 that is none', [from, 'Content-Transfer-Encoding: base64', '', '!!!=A=?'], {}],
    [
      'a mailbox file around it',
      ['From ada Sun Mar  1 2026', from, '', 'x'],
      { from: { name: 'Ada', address: 'Ada@Example.com' } },
    ],
    [
      'an id with spaces and no brackets',
      [from, 'Message-ID: abc def@x', 'References: a@x, b@x', '', 'x'],
      { messageId: 'abc', references: ['a@x', 'b@x'] },
    ],
    [
      'an id without end',
      [from, `Message-ID: <${'a'.repeat(5000)}>`, '', 'x'],
      { messageId: expect.stringMatching(/@inbound$/) },
    ],
  ])('%s', async (_what, text, expected) => {
    expect(await read(...text)).toMatchObject(expected)
  })

  it('never carries zero bytes, halves of characters or breaks into what is stored', async () => {
    const mail = await parseMail(
      Buffer.from(`From: "A\u0000\u0007B" <a@b.c>\r\nSubject: =?utf-8?Q?x=0D=0ABcc:_y=00?=\r\n\r\nz\0z`),
    )
    expect(mail.subject).toBe('x Bcc: y')
    expect(mail.from?.name).toBe('AB')
    expect(mail.text).toBe('zz\n')
  })

  it('names its files by names only', async () => {
    const names = ['../../etc/passwd', 'C:\\temp\\x.txt', '..', '', 'a\u0000b.txt', `${'ü'.repeat(300)}.pdf`]
    const parts = names.flatMap((name) => [
      '--b',
      'Content-Type: application/x-y',
      `Content-Disposition: attachment; filename*=utf-8''${encodeURIComponent(name)}`,
      '',
      'x',
    ])
    const mail = await read(from, 'Content-Type: multipart/mixed; boundary=b', '', ...parts, '--b--')
    expect(mail.attachments.map(({ name }) => name)).toEqual([
      'passwd',
      'x.txt',
      'attachment-3',
      'attachment-4',
      'a b.txt',
      `${'ü'.repeat(60)}.pdf`,
    ])
  })
})
