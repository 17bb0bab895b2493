// Generates hostile texts, numbers and values. They depend only on the random generator, so that a
// request can be repeated.
import { moments, numerals } from './ends.ts'
import type { Random } from './random.ts'

/** A reply must not contain this text in a header, or unescaped in a page. */
export const mark = 'fzmark'
export const markup = `<script>${mark}(1)</script>`

const attacks: readonly string[] = [
  "' OR '1'='1' --",
  "'; DROP TABLE leads; --",
  '" OR ""="',
  "') UNION SELECT password_hash FROM users --",
  '%',
  '_%_',
  '\\',
  "\\'",
  '*',
  '"a" OR "b" NEAR/0 c*',
  'title: x AND (y',
  '{{7*7}}',
  '{{ lead.title }}',
  '{{constructor.constructor("return process")()}}',
  '{{#each this}}{{this}}{{/each}}',
  '{{{lead.title}}}',
  '{% lead.title %}',
  '{%persons.name%}',
  '{% for x in y %}',
  '{{%',
  ['$', '{7*7}'].join(''),
  '#{7*7}',
  '<%= 7*7 %>',
  markup,
  `"><img src=x onerror=${mark}(1)>`,
  `javascript:${mark}(1)`,
  '<![CDATA[x]]>',
  '<!--',
  '</style><svg/onload=1>',
  '../../../etc/passwd',
  '..\\..\\windows\\win.ini',
  '/etc/passwd',
  'C:\\CON',
  'file:///etc/passwd',
  '.',
  '..',
  '-',
  "=cmd|'/c calc'!A1",
  '+1+1',
  '-1+1',
  '@SUM(A1)',
  '\t=1+1',
  '=HYPERLINK("http://a.example","b")',
  '(a+)+$',
  '^(([a-z])+.)+[A-Z]([a-z])+$',
  `${'a'.repeat(60)}!`,
  `${'1'.repeat(60)}x`,
  `${' '.repeat(300)}x`,
  `a@${'a.'.repeat(100)}b`,
  `x\r\nBcc: ${mark}@example.com`,
  `x\nSet-Cookie: ${mark}=1`,
  'a@example.com, b@example.com',
  '"a b"@example.com',
  'a@[127.0.0.1]',
  'ä@exämple.com',
  '<a@example.com>',
  'null',
  'undefined',
  'true',
  'NaN',
  'Infinity',
  '[object Object]',
  '__proto__',
  'constructor',
  'toString',
  'hasOwnProperty',
  'http://127.0.0.1:22/',
  'http://169.254.169.254/latest/meta-data/',
  'https://[::1]/',
  'https://user:pass@example.com/',
  'gopher://a',
  'data:text/html,x',
  'https://example.com:99999/',
  '//example.com',
]

const alphabets: readonly string[] = [
  'abcdefghijklmnopqrstuvwxyz',
  'ABC abc 012 ._-',
  'äöüßéèñçøåœ',
  '漢字仮名交じり文',
  'עברית العربية',
  '👩‍👩‍👧‍👦🏳️‍🌈🧑🏽‍🚀',
  '\u0301\u0316\u0489\u20dd',
  '\u202e\u202d\u2066\u2069\u200b\u200d\ufeff',
  '\u0130\u0131ſKÅﬀ',
  'İstanbul ẞ Ω ﷺ ㏂',
  '\u2028\u2029\u0085\u00a0\u3000',
  '"\'`\\/&<>;:,|#%?=+*~^$()[]{}@!',
  '\t\n\r ',
]

const controls = ['\u0000', '\u0001', '\u0007', '\u001b[31m', '\u007f', '\u009b', '\ufffe', '\uffff']
const broken = ['\ud800', '\udc00', '\ud83d', 'a\udfffb', '\udc00\ud800']

/**
 * Returns random characters of one alphabet. Uses code points, so that surrogate pairs stay intact.
 */
export function letters(random: Random, length: number, alphabet = random.pick(alphabets)): string {
  const points = [...alphabet]
  return Array.from({ length }, () => random.pick(points)).join('')
}

/**
 * Returns a hostile text. `size` is the maximum length of the field, which some texts reach or
 * exceed.
 */
export function hostileText(random: Random, size = 255): string {
  const kind = random.weighted({
    attack: 30,
    letters: 18,
    control: 8,
    broken: 6,
    edge: 12,
    long: 3,
    huge: 0.6,
    blank: 6,
    date: 8,
    number: 8,
  })
  if (kind === 'attack') return random.pick(attacks)
  if (kind === 'letters') return letters(random, random.whole(1, 40))
  if (kind === 'control') return `a${random.pick(controls)}${random.chance(0.5) ? 'b' : ''}`
  if (kind === 'broken') return random.pick(broken)
  if (kind === 'edge')
    return letters(
      random,
      Math.max(0, Math.min(size, 70_000) + random.whole(-1, 1)),
      random.pick(['x', 'é', '𝒳', 'ß', ' ']),
    )
  if (kind === 'long')
    return random.pick(['x', '𝒳', "'", '(', '<', '\\', '%', 'a@', '1', '{{', ' ']).repeat(random.whole(1_000, 9_000))
  if (kind === 'huge') return random.pick(['x', '\u0301', '"', '<b>']).repeat(random.whole(66_000, 300_000))
  if (kind === 'date') return random.pick(moments)
  if (kind === 'number') return String(random.pick(numerals))
  return random.pick(['', ' ', '\n', '\u00a0', '\u200b', '\ufeff'])
}

const numbers = numerals.map(Number).filter((each) => Number.isFinite(each))

/** Returns a value of any type with some nesting. */
export function anything(random: Random, depth = 2): unknown {
  const kind = random.weighted({
    text: 40,
    number: 20,
    flag: 8,
    nothing: 10,
    list: depth > 0 ? 10 : 0,
    object: depth > 0 ? 12 : 0,
  })
  if (kind === 'text') return hostileText(random)
  if (kind === 'number') return random.pick(numbers)
  if (kind === 'flag') return random.chance(0.5)
  if (kind === 'nothing') return null
  if (kind === 'list') return Array.from({ length: random.few(6) }, () => anything(random, depth - 1))
  const keys = Array.from({ length: random.few(4) }, () => oddKey(random))
  return Object.fromEntries(keys.map((key) => [key, anything(random, depth - 1)]))
}

const keys = [
  'id',
  'name',
  'value',
  'label',
  'length',
  'toJSON',
  '__proto__',
  'constructor',
  'prototype',
  'toString',
  '0',
  '-1',
  '',
  '.',
  'a.b',
  '$ref',
  'ｉｄ',
  'id ',
  'ID',
]

export const oddKey = (random: Random): string =>
  random.chance(0.6) ? random.pick(keys) : hostileText(random, 60).slice(0, 9_000)
