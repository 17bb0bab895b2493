// Generates headers: those that an operation declares, with valid and invalid values, and headers
// that servers and proxies may trust wrongly. All are valid HTTP. socket.ts sends invalid headers.
import { fact, parametersOf } from '../support/schema.ts'
import { hostileText, mark } from './hostile.ts'
import type { Pool } from './pool.ts'
import type { Random } from './random.ts'

export type Header = [name: string, value: string]

/** Returns the bytes of a text as characters that are valid in a header. */
const carried = (text: string): string =>
  Buffer.from(text)
    .toString('latin1')
    .replaceAll(/[^\t\x20-\x7e\x80-\xff]/g, '')

const accepts = [
  'application/json',
  'application/json',
  'application/json',
  '*/*',
  'text/html',
  'text/csv',
  'application/x-ndjson',
  'application/pdf',
  'image/svg+xml',
  'application/problem+json',
  'text/event-stream',
  'text/csv;q=0.5, application/json;q=0.1',
  'text/html, */*;q=0.8',
  'application/*',
  'x/y',
  '',
  ',',
  ';q=',
  `${'a/b,'.repeat(500)}c/d`,
  'application/json;q=2',
  '*',
]
const ranges = [
  'bytes=0-',
  'bytes=0-0',
  'bytes=-1',
  'bytes=-0',
  'bytes=5-2',
  'bytes=0-1,2-3',
  'bytes=99999999999999999999-',
  'bytes=0-99999999999999999999',
  'bytes=',
  'bytes',
  'lines=1-2',
  'bytes=a-b',
  `bytes=${'0-1,'.repeat(1_000)}2-3`,
]
const matches = [
  '*',
  '"0"',
  '"1"',
  'W/"1"',
  '"1", "2"',
  '1',
  '"',
  '""',
  '"1',
  `"${'9'.repeat(400)}"`,
  '"1e0"',
  '"\u00ff"',
  '"-1"',
]
const keys = [
  'key-1',
  'key-2',
  'key-3',
  'key-4',
  'k'.repeat(255),
  'k'.repeat(256),
  '',
  ' ',
  '"quoted"',
  '\u00e9',
  'a b',
  "';--",
]

const odd: Record<string, readonly string[]> = {
  'x-request-id': ['abc.DEF-1_2', 'a b', `x<${mark}>`, 'r'.repeat(128), 'r'.repeat(129), '', '\u00e9', '../x'],
  'x-forwarded-for': ['127.0.0.1', '::1', 'unknown', '1.2.3.4, 5.6.7.8', 'x'.repeat(3_000), "';--", mark],
  'x-forwarded-host': ['evil.example', `${mark}.example`, 'a b', '"><script>', 'x:99999'],
  'x-forwarded-proto': ['https', 'javascript', `${mark}`, ''],
  forwarded: ['for=1.2.3.4;host=evil.example', `for="${mark}"`],
  host: [
    'localhost',
    'evil.example',
    'localhost:99999',
    `${mark}.example`,
    '[::1]:80',
    'a..b',
    '<script>',
    'LOCALHOST',
  ],
  origin: ['null', 'https://evil.example', `https://${mark}`, 'http://localhost'],
  referer: ['http://localhost/', 'javascript:1', mark],
  cookie: [
    'a=b',
    'accord_session=x; XSRF-TOKEN=y',
    `XSRF-TOKEN=${mark}`,
    '=;=;',
    `${'a=b; '.repeat(900)}`,
    'a="b',
    '__proto__=1',
    'accord_session=%00%ff',
  ],
  'x-xsrf-token': ['x', mark, ''],
  'x-requested-with': ['XMLHttpRequest', mark],
  'user-agent': ['x'.repeat(4_000), '() { :; }; echo x', '\u00ff'],
  'accept-language': ['de', 'x'.repeat(2_000), '*;q=0'],
  'accept-encoding': ['gzip', 'br;q=1, *;q=0', 'identity;q=0'],
  'if-modified-since': ['Sun, 01 Mar 2026 09:30:00 GMT', 'never'],
  'if-range': ['"1"', 'x'],
  expect: ['100-continue', 'the unexpected'],
  te: ['trailers', 'chunked'],
  'x-http-method-override': ['DELETE', 'TRACE'],
  'x-original-url': ['/api/admin/settings/users'],
  'accord-dry-run': ['TRUE', '1', 'yes', '', 'false', 'true, true'],
  'last-event-id': ['0', '-1', 'x', '99999999999999999999', '1e3'],
  'x-inbound-secret': ['x', mark],
  authorization: [
    'Bearer',
    'Bearer ',
    'bearer 1|x',
    'Basic YTpi',
    'Basic !!!',
    'Bearer 1|',
    'Bearer |x',
    `Bearer 1|${'x'.repeat(5_000)}`,
    'Bearer 99999999999999999999|x',
    'Bearer 1|\u00e9',
    'Digest a="b"',
    'Bearer 0x1|a',
    'Bearer a b',
  ],
}

export function headersOf(random: Random, pool: Pool, operation: string | null, isOdd: boolean): Header[] {
  const accept = random.chance(0.7) ? 'application/json' : random.pick(accepts)
  const headers: Header[] = random.chance(0.97) ? [['accept', accept]] : []
  const known = operation === null ? [] : parametersOf(operation, 'header').map(({ name }) => name)
  const add = (name: string, share: number, value: () => string): void => {
    if (random.chance(known.includes(name) ? share : share / 20)) headers.push([name.toLowerCase(), carried(value())])
  }
  add('Accord-Dry-Run', 0.08, () => 'true')
  add('If-Match', 0.1, () => (random.chance(0.6) ? random.pick(pool.etags) : random.pick(matches)))
  add('If-None-Match', 0.12, () => (random.chance(0.6) ? random.pick(pool.etags) : random.pick(matches)))
  add('Idempotency-Key', 0.08, () => (random.chance(0.8) ? `key-${random.whole(1, 60)}` : random.pick(keys)))
  add('Range', 0.4, () => random.pick(ranges))
  if (operation !== null && fact(operation).tag === 'Authentication' && random.chance(0.6))
    headers.push(['origin', 'http://localhost'])
  if (!isOdd) return headers
  for (let count = random.whole(1, 3); count > 0; count--) {
    const name = random.pick(Object.keys(odd))
    const value = random.chance(0.75)
      ? random.pick(odd[name] ?? [''])
      : carried(hostileText(random, 300)).slice(0, 6_000)
    headers.push([random.chance(0.95) ? name : `x-${mark}`, carried(value)])
  }
  return headers
}
