// Generates files to upload: tables, mails, pictures, and files with a wrong type, with hostile
// names.
import { workbook } from '../support/workbook.ts'
import { hostileText, letters, mark } from './hostile.ts'
import type { Random } from './random.ts'

export const fileNames = [
  'a.txt',
  'table.csv',
  'table.xlsx',
  '',
  '.',
  '../../etc/passwd',
  '..\\..\\a.dll',
  'CON',
  'a\u0000.png',
  `${'n'.repeat(300)}.txt`,
  '=1+1.csv',
  '"quoted".txt',
  'ä😀.pdf',
  'a\u202egpj.exe',
  `x";filename="${mark}.html`,
  'a;b.txt',
  'script.svg',
]

export function fileBytes(random: Random): Buffer {
  const kind = random.weighted({
    csv: 30,
    sheet: 6,
    mail: 14,
    random: 8,
    text: 10,
    picture: 8,
    empty: 3,
    big: 1,
    zip: 3,
  })
  if (kind === 'csv') return csvOf(random)
  if (kind === 'sheet')
    return workbook(Array.from({ length: random.whole(1, 4) }, () => [cell(random), cell(random), random.whole(0, 9)]))
  if (kind === 'mail') return mailOf(random)
  if (kind === 'text') return Buffer.from(hostileText(random))
  if (kind === 'random') return random.bytes(random.whole(1, 400))
  if (kind === 'picture')
    return Buffer.concat([
      Buffer.from(
        random.pick([
          '\x89PNG\r\n\x1a\n',
          '\xff\xd8\xff\xe0',
          'GIF89a',
          '%PDF-1.7\n',
          '<svg xmlns="http://www.w3.org/2000/svg">',
          'RIFF....WEBP',
        ]),
        'latin1',
      ),
      random.bytes(60),
    ])
  if (kind === 'big') return Buffer.alloc(random.whole(1, 6) * 1_000_000, 'a,b\n')
  if (kind === 'zip')
    return Buffer.concat([workbook([['name'], ['x']]).subarray(0, random.whole(4, 300)), random.bytes(20)])
  return Buffer.alloc(0)
}

/** Returns a cell, often a valid value, so that some rows reach the rules of their records. */
const cell = (random: Random): string =>
  random.chance(0.5)
    ? hostileText(random).slice(0, 3_000)
    : random.pick(['Ann', 'p3@example.com', '1', '2026-03-01', 'Acme', ''])
const columns = [
  'name',
  'title',
  'sku',
  'price',
  'emails',
  'email',
  'lead_value',
  'id',
  'description',
  'person_name',
  'quantity',
  'contact_numbers',
  'address.city',
  '',
]

function csvOf(random: Random): Buffer {
  const width = random.whole(1, 6)
  const head = Array.from({ length: width }, () => random.pick(columns))
  const quoted = (text: string): string => (random.chance(0.9) ? `"${text.replaceAll('"', '""')}"` : text)
  const rows = Array.from({ length: random.whole(0, 8) }, () =>
    Array.from({ length: random.chance(0.9) ? width : random.whole(0, 9) }, () => quoted(cell(random))),
  )
  const text = [head, ...rows]
    .map((row) => row.join(random.chance(0.95) ? ',' : ';'))
    .join(random.pick(['\n', '\r\n', '\r']))
  return random.chance(0.9) ? Buffer.from(text) : Buffer.concat([Buffer.from(text, 'utf16le'), random.bytes(3)])
}

function mailOf(random: Random): Buffer {
  const address = (): string =>
    random.pick([
      'a@example.com',
      'Ann <p3@example.com>',
      '=?utf-8?B?w7w=?= <b@example.com>',
      '<>',
      '"a\\"b" <c@d>',
      'undisclosed-recipients:;',
      letters(random, 5),
      hostileText(random).replaceAll(/[\r\n]/g, ' '),
    ])
  const lines = [
    `From: ${address()}`,
    `To: ${Array.from({ length: random.whole(1, 4) }, address).join(', ')}`,
    `Subject: ${random.pick(['Hello', '=?utf-8?Q?=00=ff?=', '=?x?B?!!?=', letters(random, 30)])}`,
    `Message-ID: ${random.pick(['<m1@x>', '<m2@x>', `<${letters(random, 8)}@y>`, 'none', '<>'])}`,
    `In-Reply-To: ${random.pick(['<m1@x>', '<m2@x> <m3@x>', '<'])}`,
    `Date: ${random.pick(['Sun, 01 Mar 2026 09:30:00 +0000', 'yesterday', 'Sun, 99 Mar 99999 09:30:00'])}`,
    `Content-Type: ${random.pick(['text/plain', 'text/html; charset=utf-8', 'multipart/mixed; boundary=q', 'text/plain; charset=klingon', 'message/rfc822'])}`,
    `Content-Transfer-Encoding: ${random.pick(['7bit', 'base64', 'quoted-printable', 'x'])}`,
  ].filter(() => random.chance(0.85))
  const body = random.pick([
    hostileText(random),
    '--q\r\nContent-Disposition: attachment; filename="../a\u0000"\r\n\r\nx\r\n--q--',
    'SGVsbG8=',
    '=00=FF=ZZ',
  ])
  return Buffer.from([...lines, '', body].join(random.pick(['\r\n', '\n'])))
}
