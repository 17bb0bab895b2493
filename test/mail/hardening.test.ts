// Injection into mails: texts that contain headers, SMTP commands or a second mail. The result must
// be one mail with the right recipients and headers, and an invitation must contain one event.
import { createServer, type Server, type Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { inviteOf } from '../../src/mail/invite.ts'
import { compose } from '../../src/mail/message.ts'
import { createMailer } from '../../src/mail/outbound.ts'
import { attached, outbound } from './given.ts'

const second = 'MAIL FROM:<evil@example.com>\r\nRCPT TO:<victim@example.com>\r\nDATA\r\nSubject: Forged\r\n\r\nx'
/** End-of-data sequences that some servers accept (SMTP smuggling). */
const ends = [
  '\r\n.\r\n',
  '\n.\n',
  '\n.\r\n',
  '\r.\r',
  '\r.\r\n',
  '\r\n.\r',
  '\r\n.\n',
  '\r\n\0.\r\n',
  '\n\n.\n\n',
  '\r\n..\r\n',
]
const names = [
  'a\r\nBcc: x@example.com',
  'a\nBcc: x@example.com',
  'a\rBcc: x@example.com',
  'a\u2028Bcc: x',
  'a\u0085Bcc: x',
  'a\0\r\n\r\n<p>',
]

/** Returns the names of the headers of a mail, unfolded. */
const headersOf = (raw: string): string[] =>
  (raw.split('\r\n\r\n')[0] ?? '')
    .replaceAll(/\r\n[ \t]+/g, ' ')
    .split('\r\n')
    .map((line) => line.slice(0, line.indexOf(':')).toLowerCase())

describe('the bytes of a mail', () => {
  it.each(ends)('hold no half of a line end, and the headers of one mail, for a text with %j', async (end) => {
    const text = `Hello${end}${second}${end}`
    const message = outbound({
      text,
      html: `<p>${text}</p><pre>${text}</pre>`,
      subject: text,
      from: { address: 'no-reply@crm.example.com', name: text },
      attachments: [attached({ name: text, contentType: `text/plain${end}X: y`, bytes: Buffer.from(text) })],
      calendar: `METHOD:${text}`,
      headers: { 'List-Id': text },
    })
    const raw = (await compose(message)).raw.toString('latin1')
    expect(raw).not.toMatch(/(?<!\r)\n|\r(?!\n)|\0/)
    expect(headersOf(raw)).toEqual([...new Set(headersOf(raw))])
    expect(headersOf(raw)).not.toContain('rcpt to')
    for (const line of raw.split('\r\n')) expect(line.length).toBeLessThanOrEqual(998)
  })

  it.each(names)('have the headers of any other mail when values are %j', async (name) => {
    const plain = (await compose(outbound({ headers: { 'List-Unsubscribe': '<x>' }, inReplyTo: 'a@b' }))).raw.toString()
    const message = outbound({
      subject: name,
      from: { address: 'no-reply@crm.example.com', name },
      headers: { 'List-Unsubscribe': name },
      inReplyTo: 'a@b',
      references: [name, `${name}@b`],
    })
    const raw = (await compose(message)).raw.toString('latin1')
    expect(headersOf(raw)).toEqual(headersOf(plain))
  })

  it.each([
    ['an address', { to: ['ada@example.com\r\nRCPT TO:<x@example.com>'] }],
    ['an address with a parameter', { to: ['ada@example.com> SIZE=1 <x@example.com'] }],
    ['an address with another in a comment', { to: ['x@example.com(@victim.example)'] }],
    ['an address in quotes', { to: ['"ada@example.com"@evil.example'] }],
    ['a list', { to: ['ada@example.com, x@example.com'] }],
    ['a sender', { from: { address: 'a@b.co>\r\nRCPT TO:<x@example.com', name: '' } }],
    ['an answer address', { replyTo: 'a@b.co\nBcc: x@example.com' }],
    ['a message id', { messageId: 'x@b.co>\r\nBcc: x@example.com\r\nX: <' }],
    ['the name of a header', { headers: { 'X-A\r\nBcc': 'x@example.com' } }],
    ['a header of ours', { headers: { Bcc: 'x@example.com' } }],
  ])('are not made for %s that is more than one', async (_what, changes) => {
    await expect(compose(outbound(changes))).rejects.toThrow()
  })
})

describe('on the wire', () => {
  let server: Server
  const sockets = new Set<Socket>()
  const wire: string[] = []
  beforeAll(async () => {
    // A server that accepts a bare \n as a line end, and records every line that it would read as a
    // command.
    server = createServer((socket) => {
      sockets.add(socket)
      let inData = false
      let text = ''
      socket.on('error', () => undefined).on('close', () => sockets.delete(socket))
      socket.write('220 wire ESMTP\r\n')
      socket.on('data', (chunk) => {
        text += chunk.toString('latin1')
        for (;;) {
          const end = inData ? text.indexOf('\r\n.\r\n') : text.indexOf('\r\n')
          if (end < 0) return
          const part = text.slice(0, end)
          text = text.slice(end + (inData ? 5 : 2))
          wire.push(part)
          if (inData) socket.write('250 Taken\r\n')
          else if (/^EHLO/i.test(part)) socket.write('250-wire\r\n250 8BITMIME\r\n')
          else if (/^DATA/i.test(part)) socket.write('354 Go on\r\n')
          else if (/^QUIT/i.test(part)) socket.end('221 Bye\r\n')
          else socket.write('250 OK\r\n')
          inData = !inData && /^DATA/i.test(part)
        }
      })
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  })
  afterAll(async () => {
    for (const socket of sockets) socket.destroy()
    await new Promise((resolve) => server.close(resolve))
  })

  it('one mail goes out for one, whatever its text says', async () => {
    const { port } = server.address() as { port: number }
    const mailer = createMailer({ url: `smtp://127.0.0.1:${port}`, domain: 'crm.example.com' })
    try {
      for (const [index, end] of ends.entries()) {
        wire.length = 0
        const text = `.${end}${second}${end}\r\n.`
        const message = outbound({ messageId: `${index}@crm.example.com`, text, html: text, subject: text })
        await mailer.send(message, new AbortController().signal)
        const commands = wire.filter((part) => !part.includes('\n')).map((part) => part.split(':')[0]?.split(' ')[0])
        expect(commands.filter((command) => !/^(EHLO|RSET|NOOP)$/.test(command ?? ''))).toEqual([
          'MAIL',
          'RCPT',
          'DATA',
        ])
        expect(wire.filter((part) => /^RCPT/.test(part))).toEqual(['RCPT TO:<ada@example.com>'])
        const [data = ''] = wire.filter((part) => part.includes('\n'))
        expect(data).not.toMatch(/(?<!\r)\n|\r(?!\n)/)
      }
    } finally {
      mailer.close()
    }
  })
})

describe('an invitation', () => {
  it.each([
    'x\r\nBEGIN:VEVENT',
    'x\nATTACH:https://evil.example/',
    'x";CN=y:mailto:z',
    'x\\nBEGIN:VALARM',
    'x\rEND:VCALENDAR',
  ])('is one event for names, texts and places such as %j', (text) => {
    const content = inviteOf({
      uid: text,
      sequence: 1,
      start: new Date('2026-03-01T09:00:00Z'),
      end: new Date('2026-03-01T10:00:00Z'),
      isAllDay: false,
      summary: text,
      location: text,
      organiser: { name: text, email: `a@b.co${text}` },
      attendees: [{ name: text, email: `c@d.co${text}` }],
      created: new Date('2026-02-01T09:00:00Z'),
      method: 'REQUEST',
    })
    const lines = content.replaceAll(/\r\n[ \t]/g, '').split('\r\n')
    expect(content).not.toMatch(/(?<!\r)\n|\r(?!\n)/)
    expect(lines.filter((line) => /^BEGIN:/.test(line))).toEqual(['BEGIN:VCALENDAR', 'BEGIN:VEVENT'])
    expect(lines.filter((line) => /^(ATTACH|VALARM)/.test(line))).toEqual([])
    expect(lines.filter((line) => /^ATTENDEE/.test(line))).toHaveLength(1)
  })
})
