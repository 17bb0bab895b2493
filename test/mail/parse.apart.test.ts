// Parsing large mails: a time limit applies, and a subprocess returns the same result.
// test/timing/mail.test.ts tests that the server responds meanwhile.
import { describe, expect, it } from 'vitest'
import { type MailSource, readMailSource } from '../../src/mail/parse/fields.ts'
import { parseMail } from '../../src/mail/parse/parse.ts'
import { readInSubprocess } from '../../src/mail/parse/subprocess.ts'
import { readSendgridForm } from '../../src/mail/sendgrid.ts'
import { lines } from './given.ts'

const from = 'From: Ada <ada@example.com>'
const long = (bytes: number): Buffer => lines(from, '', `${'x'.repeat(98)}\r\n`.repeat(bytes / 100))
const outcome = ({ status, ...rest }: PromiseSettledResult<unknown>): string =>
  'reason' in rest ? (rest.reason as Error).name : status

describe('a large mail', { timeout: 60_000 }, () => {
  it.each<[string, MailSource]>([
    [
      'bytes',
      {
        raw: lines(
          from,
          'Date: Sun, 1 Mar 2026 10:30:00 +0100',
          'Content-Type: multipart/mixed; boundary=b',
          '',
          '--b',
          'Content-Type: text/plain; charset=iso-8859-1',
          'Content-Transfer-Encoding: quoted-printable',
          '',
          'Gr=FC=DFe',
          '--b',
          'Content-Type: text/html; charset=utf-8',
          '',
          '<p>Grüße</p>',
          '--b',
          'Content-Type: text/calendar; method=REQUEST',
          '',
          'BEGIN:VCALENDAR',
          '--b',
          'Content-Type: application/x-y; name=a.bin',
          'Content-Transfer-Encoding: base64',
          '',
          'AAEC/w==',
          '--b--',
        ),
        fields: { envelope: '{"to":["Eve@example.com"]}' },
      },
    ],
    [
      'a form',
      {
        raw: null,
        fields: { from: 'ada@example.com', text: Buffer.from('Grüße', 'latin1'), charsets: '{"text":"iso-8859-1"}' },
      },
    ],
  ])('is the same as where it is read at once: %s', async (_what, given) => {
    const mail = await readInSubprocess(given, {})
    expect(mail).toEqual(await readMailSource(given))
    expect(mail.attachments.every(({ bytes }) => Buffer.isBuffer(bytes))).toBe(true)
  })

  it('is refused for the reason it has', async () => {
    await expect(parseMail(Buffer.alloc(100_000, 'a'))).rejects.toThrow('This is not an e-mail: it has no headers.')
    await expect(readSendgridForm({ text: 'a'.repeat(100_000) }, [])).rejects.toThrow(/The form holds no e-mail/)
  })
})

describe('the limits', { timeout: 60_000 }, () => {
  it('end a mail that takes too long, and the next is read', async () => {
    const bytes = long(4 * 1024 * 1024)
    expect(await parseMail(bytes, { maxMs: 20 })).toMatchObject({
      error: 'The e-mail takes too much time or memory to be read.',
      from: { address: 'ada@example.com' },
    })
    expect(await parseMail(bytes)).toMatchObject({
      error: 'Only the beginning of the e-mail is shown: it is too long.',
      from: { address: 'ada@example.com' },
    })
  })

  it('end a mail that takes too much memory, and not the server', async () => {
    const text = `${'<&'.repeat(40)}\r\n`.repeat(60_000)
    const bytes = lines(
      from,
      'Content-Type: multipart/mixed; boundary=b',
      '',
      '--b',
      'Content-Type: text/html',
      '',
      'x',
      '--b',
      '',
      text,
      '--b--',
    )
    expect((await parseMail(bytes, { maxMiB: 64 })).error).toBe('The e-mail takes too much time or memory to be read.')
    expect((await parseMail(long(100_000))).text).not.toBeNull()
  })

  it('let a few be read at once, as many wait as may, and refuse the others for now; small ones pass by', async () => {
    const email = long(100_000)
    const patient = [parseMail(email), parseMail(email), parseMail(email)]
    const posted = [1, 2].map(() => readSendgridForm({ email }, [], { maxWaiting: 2 }))
    expect((await parseMail(lines(from, '', 'x'))).text).toBe('x\n')
    expect((await Promise.allSettled([...patient, ...posted])).map(outcome)).toEqual([
      ...['fulfilled', 'fulfilled', 'fulfilled'],
      ...['fulfilled', 'MailReaderBusy'],
    ])
  })
})
