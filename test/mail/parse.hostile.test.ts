// Parsing hostile mails: the time is limited, and bytes that are not a mail are refused.
import { describe, expect, it } from 'vitest'
import { parseMail } from '../../src/mail/parse/parse.ts'
import { lines } from './given.ts'

const from = 'From: Ada <Ada@Example.com>'

describe('a text that is not a mail', { timeout: 60_000 }, () => {
  it.each<[string, Uint8Array]>([
    ['nothing', Buffer.alloc(0)],
    ['a blank', Buffer.from('\r\n\r\n')],
    ['JSON', Buffer.from('{"from": "ada@example.com"}')],
    ['a page', Buffer.from('<html><body>Hello</body></html>')],
    ['bytes', Buffer.from(Array.from({ length: 5000 }, (_, n) => (n * 7919) % 256))],
    ['more than 30 MiB', Buffer.alloc(30 * 1024 * 1024 + 1, 'a')],
  ])('is refused: %s', async (_what, bytes) => {
    await expect(parseMail(bytes)).rejects.toMatchObject({ name: 'UnreadableMail' })
  })
})

describe('what is a mail and cannot be read within bounds', { timeout: 60_000 }, () => {
  it.each<[string, Uint8Array, RegExp]>([
    [
      'a thousand levels',
      lines(
        from,
        'Content-Type: multipart/mixed; boundary=b0',
        '',
        ...Array.from({ length: 1000 }, (_, n) => `--b${n}\r\nContent-Type: multipart/mixed; boundary=b${n + 1}\r\n`),
      ),
      /nested too deeply/,
    ],
    ['a header without end', lines(from, `X: ${'a'.repeat(3_000_000)}`, '', 'x'), /headers are too long/],
    [
      'parts against boundaries',
      lines(
        from,
        'Content-Type: multipart/mixed; boundary=b',
        '',
        ...Array.from({ length: 20_000 }, (_, n) => `--b\r\nContent-Type: multipart/mixed; bOundary=c${n}\r\n`),
      ),
      /too many parts/,
    ],
  ])('comes with what its headers say, and why: %s', async (_what, bytes, error) => {
    const mail = await parseMail(bytes)
    expect(mail.error).toMatch(error)
    expect([mail.from?.address, mail.text, mail.html, mail.attachments]).toEqual(['Ada@Example.com', null, null, []])
    expect(mail.messageId).toMatch(/^[0-9a-f]{64}@inbound$/)
    expect((await parseMail(bytes)).messageId).toBe(mail.messageId)
  })

  it('has its thread, its people and its subject, wherever they stand among long headers', async () => {
    const mail = await parseMail(
      lines(
        `X: ${'a'.repeat(600_000)}`,
        from,
        'To: crm@example.com,',
        ' =?utf-8?q?B=C3=B6?= <bo@example.com>',
        'Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=',
        'Message-ID: <deep@example.com>',
        'In-Reply-To: <offer@example.com>',
        'Auto-Submitted: auto-replied',
        '',
        'Subject: not this one',
      ),
    )
    expect(mail).toMatchObject({
      error: expect.stringContaining('headers are too long'),
      messageId: 'deep@example.com',
      inReplyTo: ['offer@example.com'],
      to: ['crm@example.com', 'bo@example.com'],
      subject: 'Grüße',
      isAutomatic: true,
    })
  })

  it('is not a mail without headers, unless it lies in a mailbox', async () => {
    const bytes = Buffer.from('{"from": "ada@example.com"}')
    const mail = await parseMail(bytes, {}, { isMail: true })
    expect(mail).toMatchObject({ error: 'This is not an e-mail: it has no headers.', from: null, subject: null })
  })
})

// A quadratic algorithm would take minutes and exceed the timeout.
describe('what is made to take long', { timeout: 60_000 }, () => {
  const part = ['--b', 'A: b', '', 'hi'].join('\r\n')
  const multipart = `${from}\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n`
  it.each<[string, string]>([
    ['ten thousand parts', `${multipart}${`${part}\r\n`.repeat(10_000)}--b--`],
    ['a million lines', `${from}\r\n\r\n${'a\n'.repeat(1_000_000)}`],
    [
      'a million flowing lines',
      `${from}\r\nContent-Type: text/plain; format=flowed; delsp=yes\r\n\r\n${'a \n'.repeat(1_000_000)}`,
    ],
    ['a list of addresses without end', `${from}\r\nTo: ${'a:'.repeat(120_000)}\r\n\r\nx`],
    ['brackets', `${from}\r\nReferences: ${'<'.repeat(200_000)}\r\nMessage-ID: ${'<'.repeat(50_000)}\r\n\r\nx`],
    ['encoded words', `From: a@b.c\r\nSubject: ${'=?utf-8?q?a?= '.repeat(16_000)}\r\n\r\nx`],
    ['tags', `${multipart}--b\r\n\r\nx\r\n--b\r\nContent-Type: text/html\r\n\r\n${'<a '.repeat(1_000_000)}\r\n--b--`],
  ])('is read in bounded time all the same: %s', async (_what, text) => {
    const mail = await parseMail(Buffer.from(text))
    expect(mail.from?.address).toMatch(/@/)
    expect(mail.subject?.length ?? 0).toBeLessThan(999)
  })

  it('of very many files the first hundred are kept, and the others counted', async () => {
    const file = '--b\r\nContent-Type: application/x-y\r\n\r\nhi\r\n'
    const mail = await parseMail(Buffer.from(`${multipart}${file.repeat(300)}--b--`))
    expect(mail.attachments).toHaveLength(100)
    expect([mail.droppedAttachments, mail.error]).toEqual([200, 'Attachments of the e-mail are not shown: 200.'])
  })
})
