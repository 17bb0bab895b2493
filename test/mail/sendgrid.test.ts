// Parsing SendGrid's two forms: both give the same mail, and forms without a mail are refused.
import { describe, expect, it } from 'vitest'
import { compose } from '../../src/mail/message.ts'
import { type PostedFile, readSendgridForm } from '../../src/mail/sendgrid.ts'
import { attached, outbound } from './given.ts'

const headers = [
  'Received: by mx.example.com',
  'From: Ada <ada@example.com>',
  'To: sales@crm.example.com',
  'Message-ID: <abc@example.com>',
  'In-Reply-To: <one@crm.example.com>',
  'References: <zero@crm.example.com>',
  ' <one@crm.example.com>',
  'Date: Sun, 1 Mar 2026 10:30:00 +0100',
  'Auto-Submitted: auto-replied',
  'Content-Type: multipart/mixed; boundary=b',
].join('\n')

const parsed = {
  headers,
  from: 'Ada Größe <ada@example.com>',
  to: '"Sales, Accord" <sales@crm.example.com>, bob@example.com',
  cc: 'carol@example.com',
  subject: 'Re: Angebot – März',
  text: 'Grüße',
  html: '<img src="cid:logo@x">',
  envelope: '{"to":["Reply+Token@crm.example.com"],"from":"bounce@example.com"}',
  charsets: '{"to":"UTF-8","subject":"UTF-8","text":"UTF-8","html":"UTF-8"}',
  attachments: '2',
  'attachment-info':
    '{"attachment1":{"filename":"größe.pdf","name":"größe.pdf","type":"application/pdf"},"attachment2":{"filename":"logo.png","type":"image/png","content-id":"<logo@x>"}}',
  'content-ids': '{"logo@x":"attachment2"}',
  spam_score: '0.1',
}
const files: PostedFile[] = [
  { field: 'attachment2', name: 'logo.png', contentType: 'image/png', bytes: Buffer.from([1, 2]) },
  { field: 'attachment1', name: 'gr__e.pdf', contentType: 'application/octet-stream', bytes: Buffer.from('pdf') },
  { field: 'other', name: 'x', contentType: 'text/plain', bytes: Buffer.from('x') },
]

describe('the parsed form', () => {
  it('is a mail with its thread, its people and its files', async () => {
    const { mail, raw } = await readSendgridForm(parsed, files)
    expect(raw).toBeNull()
    expect(mail).toMatchObject({
      messageId: 'abc@example.com',
      inReplyTo: ['one@crm.example.com'],
      references: ['zero@crm.example.com', 'one@crm.example.com'],
      from: { name: 'Ada Größe', address: 'ada@example.com' },
      to: ['sales@crm.example.com', 'bob@example.com'],
      cc: ['carol@example.com'],
      subject: 'Re: Angebot – März',
      date: new Date('2026-03-01T09:30:00Z'),
      text: 'Grüße',
      html: '<img src="cid:logo@x">',
      isAutomatic: true,
    })
    expect(mail.recipients).toContain('reply+token@crm.example.com')
    expect(mail.attachments).toEqual([
      { name: 'größe.pdf', contentType: 'application/pdf', contentId: null, bytes: Buffer.from('pdf') },
      { name: 'logo.png', contentType: 'image/png', contentId: 'logo@x', bytes: Buffer.from([1, 2]) },
    ])
  })

  it('is read in the script it says, where the bytes of the field were kept', async () => {
    const { mail } = await readSendgridForm(
      {
        ...parsed,
        text: Buffer.from('Grüße', 'latin1'),
        html: Buffer.from('Grüße'),
        subject: Buffer.from('Grüße'),
        charsets: '{"text":"iso-8859-1","html":"us-ascii","subject":"x-klingon"}',
      },
      [],
    )
    expect([mail.text, mail.html, mail.subject]).toEqual(['Grüße', 'Grüße', 'Grüße'])
    const japanese = { ...parsed, text: '\u001b$BF|K\\8l\u001b(B', charsets: '{"text":"iso-2022-jp"}' }
    expect((await readSendgridForm(japanese, [])).mail.text).toBe('日本語')
  })

  it('uses the fields that are there: without headers, with broken JSON, without files', async () => {
    const { mail } = await readSendgridForm(
      { from: 'ada@example.com', subject: 'Hi', envelope: '{', charsets: '[]', 'attachment-info': 'null', to: '' },
      [{ field: 'attachment1', name: '../x.txt', contentType: 'text/plain', bytes: Buffer.from('x') }],
    )
    expect(mail).toMatchObject({ from: { address: 'ada@example.com' }, to: [], recipients: [], text: null, date: null })
    expect(mail.messageId).toMatch(/@inbound$/)
    expect(mail.attachments).toMatchObject([{ name: 'x.txt', contentType: 'text/plain' }])
  })
})

describe('the raw form', () => {
  it('wins over the fields beside it, and adds whom the envelope names', async () => {
    const { raw } = await compose(outbound({ inReplyTo: 'one@crm.example.com', attachments: [attached()] }))
    const posted = await readSendgridForm({ ...parsed, email: raw.toString() }, [])
    expect(posted.raw?.equals(raw)).toBe(true)
    expect(posted.mail).toMatchObject({
      subject: 'Your offer',
      inReplyTo: ['one@crm.example.com'],
      from: { address: 'no-reply@crm.example.com' },
      attachments: [{ name: 'offer.txt' }],
    })
    expect(posted.mail.recipients.sort()).toEqual(['ada@example.com', 'reply+token@crm.example.com'])
  })

  it('may come as a file', async () => {
    const bytes = Buffer.from('From: ada@example.com\r\n\r\nGr\xfc\xdfe', 'latin1')
    const { raw } = await readSendgridForm({}, [{ field: 'email', name: 'x', contentType: 'message/rfc822', bytes }])
    expect(raw?.equals(bytes)).toBe(true)
  })
})

describe('a form without a mail', () => {
  it.each<[string, Record<string, string>]>([
    ['is empty', {}],
    ['says nothing of a mail', { name: 'Ada', text: 'Hello' }],
    ['holds something else as mail', { email: '{"a": 1}' }],
    ['has headers without end', { headers: `X: ${'a'.repeat(2_000_000)}` }],
  ])('is refused when it %s', async (_what, fields) => {
    await expect(readSendgridForm(fields, [])).rejects.toMatchObject({ name: 'UnreadableMail' })
  })
})
