// E-mails as real programs write them: charsets with wrong labels, headers without quotes, bodies
// without a boundary. Bytes are written as latin1, so \x80 is the byte 0x80.
import { describe, expect, it } from 'vitest'
import { parseMail, type ReceivedMail } from '../../src/mail/parse/parse.ts'
import { realMail, realMails } from '../support/real-mails.ts'

const utf8 = (text: string): string => Buffer.from(text).toString('latin1')

interface Written {
  from?: string
  subject?: string
  headers?: string[]
  body?: string
}

const read = ({
  from = 'Ann <ann@x.example>',
  subject = 'x',
  headers = [],
  body = 'x',
}: Written): Promise<ReceivedMail> =>
  parseMail(
    Buffer.from(
      [`From: ${from}`, 'To: crm@x.example', `Subject: ${subject}`, ...headers, '', body].join('\r\n'),
      'latin1',
    ),
  )

describe('the charset of an e-mail', () => {
  const bodies: [string, string, string, string][] = [
    ['windows-1252', 'text/plain; charset=windows-1252', '\x93Hi\x94 \x80 \x96 \x92', '“Hi” € – ’'],
    ['iso-8859-1, as windows-1252', 'text/plain; charset=iso-8859-1', '\x93Hi\x94 \x80', '“Hi” €'],
    ['us-ascii with UTF-8', 'text/plain; charset=us-ascii', utf8('ññ €'), 'ññ €'],
    ['ANSI_X3.4-1968', 'text/plain; charset=ANSI_X3.4-1968', 'Gr\xfc\xdfe \x80', 'Grüße €'],
    ['windows-1251 with UTF-8', 'text/plain; charset=windows-1251', utf8('Привет'), 'Привет'],
    ['windows-1251', 'text/plain; charset=windows-1251', '\xcf\xf0\xe8\xe2\xe5\xf2', 'Привет'],
    ['koi8-r', 'text/plain; charset=koi8-r', '\xf0\xd2\xc9\xd7\xc5\xd4', 'Привет'],
    ['a label with a semicolon', 'text/plain; charset="utf-8;"', utf8('ÄÖÜ €'), 'ÄÖÜ €'],
    ['a label in apostrophes', "text/plain; charset='utf-8'", utf8('ÄÖÜ €'), 'ÄÖÜ €'],
    ['x-mac-roman', 'text/plain; charset=x-mac-roman', 'Gr\x9f\xa7e', 'Grüße'],
    ['cp850', 'text/plain; charset=cp850', 'Gr\x81\xe1e \xd5', 'Grüße ı'],
    ['IBM437', 'text/plain; charset="IBM437"', 'Gr\x81\xe1e', 'Grüße'],
    ['cp852', 'text/plain; format=fixed; charset=CP852', '\x86', 'ć'],
    ['utf-7', 'text/plain; charset=utf-7', 'Gr+APwA3w-e', 'Grüße'],
    ['viscii', 'text/plain; charset=VISCII', 'Vi\xaet', 'Việt'],
    ['an unknown label', 'text/plain; charset=x-unknown', 'Gr\xfc\xdfe', 'Grüße'],
    ['no label', 'text/plain', 'Gr\xfc\xdfe \x80', 'Grüße €'],
    ['gb2312', 'text/plain; charset=gb2312', '\xc4\xe3\xba\xc3', '你好'],
    ['big5', 'text/plain; charset=big5', '\xa7A\xa6n', '你好'],
    ['shift_jis', 'text/plain; charset=shift_jis', '\x93\xfa\x96{', '日本'],
    ['iso-2022-jp', 'text/plain; charset=iso-2022-jp', '\x1b$BF|K\\\x1b(B', '日本'],
    ['euc-kr', 'text/plain; charset=ks_c_5601-1987', '\xc7\xd1\xb1\xdb', '한글'],
    ['UTF-8 with one damaged character', 'text/plain; charset=utf-8', `${utf8('äöüÄÖÜß')}\xff`, 'äöüÄÖÜß\ufffd'],
  ]
  it.each(bodies)('is read: %s', async (_, type, body, text) => {
    expect((await read({ headers: [`Content-Type: ${type}`], body })).text?.trim()).toBe(text)
  })

  it('is read in each part, also when the parts have different DOS code pages', async () => {
    const part = (type: string, text: string) => `--b\r\nContent-Type: ${type}\r\n\r\n${text}\r\n`
    const body = `${part('text/plain; charset=cp850', 'f\x81r')}${part('text/html;\r\n charset="cp866"', '<p>\x8f</p>')}--b--`
    const mail = await read({ headers: ['Content-Type: multipart/alternative; boundary=b'], body })
    expect([mail.text?.trim(), mail.html]).toEqual(['für', expect.stringContaining('<p>П</p>')])
  })

  it('is read in quoted-printable and base64 too', async () => {
    const type = 'Content-Type: text/plain; charset=iso-8859-1'
    const printable = await read({ headers: [type, 'Content-Transfer-Encoding: quoted-printable'], body: '=80 5' })
    const base64 = await read({ headers: [type, 'Content-Transfer-Encoding: base64'], body: 'gCA1' })
    expect([printable.text?.trim(), base64.text?.trim()]).toEqual(['€ 5', '€ 5'])
  })

  it('is taken from the page when only the page names it', async () => {
    const page = '<html><head><meta charset="windows-1251"></head><body>\xcf\xf0\xe8\xe2\xe5\xf2</body></html>'
    const mail = await read({ headers: ['Content-Type: text/html', 'Content-Transfer-Encoding: 8bit'], body: page })
    expect(mail.html).toContain('Привет')
  })

  it.each<[string, string, string]>([
    ['koi8-r, as the body', 'text/plain; charset=koi8-r', '\xfa\xc1\xd0\xd2\xcf\xd3 \xc3\xc5\xce\xd9'],
    ['windows-1251, as the body', 'text/html; charset="windows-1251"', '\xc7\xe0\xef\xf0\xee\xf1 \xf6\xe5\xed\xfb'],
  ])('of plain bytes in headers is that of the body: %s', async (_, type, subject) => {
    const mail = await read({ from: `${subject} <a@x.example>`, subject, headers: [`Content-Type: ${type}`] })
    expect([mail.subject, mail.from?.name]).toEqual(['Запрос цены', 'Запрос цены'])
  })

  it.each(['utf-16le', 'base64', 'utf-7', 'hex'])('of plain bytes in headers is never %s', async (charset) => {
    const headers = [`Content-Type: text/plain; charset=${charset}`]
    expect((await read({ subject: 'M\xfcller +AGE-', headers })).subject).toBe('Müller +AGE-')
  })

  it('of plain bytes in headers is that of the first part', async () => {
    const body = '--b\r\nContent-Type: text/plain; charset=koi8-r\r\n\r\n\xf0\xd2\xc9\r\n--b--'
    const headers = ['Content-Type: multipart/mixed; boundary=b']
    expect((await read({ subject: '\xfa\xc1\xd0\xd2\xcf\xd3', headers, body })).subject).toBe('Запрос')
  })

  const subjects: [string, string, string][] = [
    ['windows-1252 in encoded words', '=?windows-1252?Q?Preis_100_=80_=96_=93ok=94?=', 'Preis 100 € – “ok”'],
    ['iso-8859-1 in encoded words', '=?iso-8859-1?Q?100_=80?=', '100 €'],
    ['raw bytes', 'Gr\xfc\xdfe', 'Grüße'],
    ['raw UTF-8', utf8('Grüße'), 'Grüße'],
    [
      'a character cut in two, base64',
      '=?utf-8?B?5LqI566X44Gu5Lu244Gr44Gk44GE4w==?=\r\n =?utf-8?B?gabjgII=?=',
      '予算の件について。',
    ],
    ['a character cut in two, quoted', '=?utf-8?Q?Gr=C3?= =?utf-8?Q?=BC=C3=9Fe?=', 'Grüße'],
    ['two charsets', '=?utf-8?Q?=C3=BC?= =?iso-8859-15?Q?=A4?=', 'ü€'],
    ['cp850', '=?cp850?Q?Gr=81=E1e?=', 'Grüße'],
    ['words among others', 'Re: =?utf-8?Q?=C3=BC?= and', 'Re: ü and'],
    ['a language tag', '=?utf-8*de?Q?=C3=BC?=', 'ü'],
  ]
  it.each(subjects)('of a subject is read: %s', async (_, subject, text) => {
    expect((await read({ subject })).subject).toBe(text)
  })

  it('of names and file names is read', async () => {
    const { from } = await read({ from: 'J\xfcrgen <j@x.example>' })
    expect(from).toEqual({ address: 'j@x.example', name: 'Jürgen' })
    const part = [
      '--q',
      'Content-Type: application/pdf; name="=?windows-1252?Q?Angebot_=80.pdf?="',
      'Content-Disposition: attachment; filename="=?windows-1252?Q?Angebot_=80.pdf?="',
      'Content-Transfer-Encoding: base64',
      '',
      'JVBERi0=',
      '--q--',
    ]
    const mail = await read({ headers: ['Content-Type: multipart/mixed; boundary=q'], body: part.join('\r\n') })
    expect(mail.attachments.map(({ name }) => name)).toEqual(['Angebot €.pdf'])
  })
})

describe('the sender of an e-mail', () => {
  const senders: [string, string[], string][] = [
    ['Doe, John <john@x.example>', ['john@x.example'], 'Doe, John'],
    ['Doe; John <john@x.example>', ['john@x.example'], 'Doe; John'],
    ['Müller, Dr. Jürgen, GmbH <j@x.example>', ['j@x.example'], 'Müller, Dr. Jürgen, GmbH'],
    ['"Doe, John" <john@x.example>', ['john@x.example'], 'Doe, John'],
    ['Ann <ann@x.example>, Bob <bob@x.example>', ['ann@x.example', 'bob@x.example'], 'Ann'],
    ['ann@x.example, bob@x.example', ['ann@x.example', 'bob@x.example'], ''],
    ['"john doe"@x.example', ['"john doe"@x.example'], ''],
    ['<mailto:ann@x.example>', ['ann@x.example'], ''],
    ['Ann (sales) <ann@x.example>', ['ann@x.example'], 'Ann'],
    ['"ann@other.example" <ann@x.example>', ['ann@x.example'], 'ann@other.example'],
    ['ann@x.example', ['ann@x.example'], ''],
  ]
  it.each(senders)('is %s', async (from, authors, name) => {
    const mail = await read({ from: utf8(from) })
    expect([mail.authors, mail.from?.name]).toEqual([authors, name])
  })
})

describe('the body of an e-mail', () => {
  it('is found when the header names no boundary or no media type', async () => {
    const body = '--abc\r\nContent-Type: text/plain\r\n\r\nhello\r\n--abc--\r\n'
    expect((await read({ headers: ['Content-Type: multipart/mixed'], body })).text?.trim()).toBe('hello')
    const plain = await read({ headers: ['Content-Type: text'], body: 'hello' })
    expect([plain.text?.trim(), plain.attachments]).toEqual(['hello', []])
  })

  it.each(['', ' ', '\xc2\xa0 ', '\xe2\x80\x8b'])('is the HTML beside a text of blanks', async (blank) => {
    const html = '<b>real text</b>'
    const body = `--q\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n${blank}\r\n--q\r\nContent-Type: text/html\r\n\r\n${html}\r\n--q--`
    const mail = await read({ headers: ['Content-Type: multipart/alternative; boundary=q'], body })
    expect([mail.text, mail.html?.trim()]).toEqual([null, html])
  })

  it.each([
    ['> We need 40 seats \r\n> until Friday.\r\nFine.', '', '> We need 40 seats until Friday.\nFine.'],
    ['>> old \r\n> new \r\n> text', '', '>> old \n> new text'],
    ['one \r\ntwo\r\n\r\nthree', '', 'one two\n\nthree'],
    ['sign\r\n-- \r\nAnn', '', 'sign\n-- \nAnn'],
    ['日本 \r\n語', '; delsp=yes', '日本語'],
    [' > no quotation', '', '> no quotation'],
  ])('has the lines of flowed text joined: %j', async (body, more, text) => {
    const headers = [`Content-Type: text/plain; charset=utf-8; format=flowed${more}`]
    expect((await read({ headers, body: utf8(body) })).text?.trimEnd()).toBe(text)
  })

  it('leaves out the AMP form of a body, and keeps an attached AMP file', async () => {
    const part = (headers: string, text: string) => `--b\r\n${headers}\r\n\r\n${text}\r\n`
    const body = [
      part('Content-Type: text/plain', 'Hi'),
      part('Content-Type: text/x-amp-html; charset=utf-8', '<!doctype html><html ⚡4email>Hi</html>'),
      part('Content-Type: text/html', '<p>Hi</p>'),
      part('Content-Type: text/x-amp-html\r\nContent-Disposition: attachment; filename=page.html', '<html ⚡4email>'),
      '--b--',
    ]
    const mail = await read({ headers: ['Content-Type: multipart/alternative; boundary=b'], body: body.join('') })
    expect(mail.attachments.map(({ name }) => name)).toEqual(['page.html'])
    expect(mail.html).toContain('<p>Hi</p>')
    const alone = await read({ headers: ['Content-Type: text/x-amp-html'], body: '<html>Hi</html>' })
    expect(alone.attachments).toHaveLength(1)
  })
})

describe('flowed text beside HTML', () => {
  const part = (type: string, text: string): string => `--q\r\nContent-Type: text/${type}\r\n\r\n${text}\r\n`
  const html = part('html', '<p>Content-Type: text/plain; format=flowed</p>')
  const textIn = async (...parts: string[]): Promise<string | undefined> => {
    const headers = ['Content-Type: multipart/alternative;', ' boundary="q"']
    return (await read({ headers, body: `${parts.join('')}--q--` })).text?.trimEnd()
  }

  it('is joined within one depth of quotation', async () => {
    const quoted = '> We need 40 seats \r\n> until Friday.\r\nFine with \r\nme.'
    expect(await textIn(part('plain; format=flowed', quoted), html)).toBe(
      '> We need 40 seats until Friday.\nFine with me.',
    )
    const folded = 'plain;\r\n charset=utf-8;\r\n format="flowed";\r\n delsp=yes'
    expect(await textIn(part(folded, '> a \r\n> b'), html)).toBe('> ab')
  })

  it('is left apart from texts that are not flowed', async () => {
    const text = await textIn(part('plain; format=flowed', 'one \r\ntwo'), part('plain', '> a \r\n> b'), html)
    expect(text).toContain('> a \n> b')
    expect(text).toContain('one two')
  })
})

describe('an automatic e-mail', () => {
  it('is one from a mail daemon, without further headers', async () => {
    expect((await read({ from: 'MAILER-DAEMON@mail.x.example', subject: 'failure notice' })).isAutomatic).toBe(true)
    expect((await read({ from: 'Daemon Hill <daemon@x.example>' })).isAutomatic).toBe(false)
  })

  it.each(['X-Autoreply: yes', 'X-Autorespond: vacation', 'X-Loop: a@x.example', 'Precedence: auto_reply'])(
    'is known by %s',
    async (header) => {
      expect((await read({ headers: [header] })).isAutomatic).toBe(true)
    },
  )

  it.each([
    ['Automatische Antwort: Angebot', true],
    ['Réponse automatique : Offre', true],
    ['Automatic reply: Offer', true],
    ['Odpowiedź automatyczna: Oferta', true],
    ['自動応答: 見積', true],
    ['Re: Automatic door', false],
    ['An automatic reply: how to', false],
  ])('is known by its subject: %s', async (subject, expected) => {
    expect((await read({ subject: utf8(subject) })).isAutomatic).toBe(expected)
  })
})

describe('the e-mails of test/support/mails', () => {
  it.each(realMails)('are read as expected: %s', async (name, want) => {
    const mail = await parseMail(realMail(name))
    const shown = mail.text ?? mail.html?.replaceAll(/<[^<>]*>/g, '') ?? ''
    if (want.text !== undefined) expect(shown.trim()).toBe(want.text)
    if (want.textContains !== undefined) expect(shown).toContain(want.textContains)
    if (want.subject !== undefined) expect(mail.subject).toBe(want.subject)
    if (want.from !== undefined) expect(mail.authors).toEqual(want.from)
    if (want.name !== undefined) expect(mail.from?.name).toBe(want.name)
    if (want.attachments !== undefined) expect(mail.attachments.map((file) => file.name)).toEqual(want.attachments)
    if (want.is_automatic !== undefined) expect(mail.isAutomatic).toBe(want.is_automatic)
    expect(mail.error).toBeNull()
  })
})

describe('an e-mail that reports on another', () => {
  const report = (type: string, text: string) =>
    read({
      headers: ['Content-Type: multipart/report; boundary=b'],
      body: `--b\r\nContent-Type: text/plain\r\n\r\nAbout your mail\r\n--b\r\nContent-Type: ${type}\r\n\r\n${text}\r\n--b--\r\n`,
    })

  it.each([
    ['a copy of its headers', 'text/rfc822-headers', 'Message-ID: <own@x.example>'],
    ['a copy of it', 'message/rfc822', 'Subject: x\r\nMessage-ID: <own@x.example>\r\n\r\nHi'],
    ['a read receipt', 'message/disposition-notification', 'Original-Message-ID: <own@x.example>'],
  ])('names it: %s', async (_, type, text) => {
    expect((await report(type, text)).reportsOn).toEqual(['own@x.example'])
  })

  it('is a report; an e-mail with an attached one is none', async () => {
    const headers = ['Content-Type: multipart/mixed; boundary=b']
    const body = '--b\r\nContent-Type: message/rfc822\r\n\r\nMessage-ID: <own@x.example>\r\n\r\nHi\r\n--b--\r\n'
    expect((await read({ headers, body })).reportsOn).toEqual([])
  })
})
