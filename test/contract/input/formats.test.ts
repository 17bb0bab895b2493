// The accepted forms and the canonical form of dates, timestamps, e-mail addresses and phone
// numbers.

import type { Ajv } from 'ajv'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { describe, expect, it } from 'vitest'
import {
  addFormats,
  canonicalDate,
  canonicalTime,
  dayBoundary,
  hasBoundaries,
  valueNames,
} from '../../../src/contract/input/formats.ts'

const ajv = addFormats(new Ajv2020({ strict: false, validateSchema: false }) as unknown as Ajv)
const accepts = (name: string, value: unknown): boolean =>
  ajv.validate({ [valueNames.includes(name) ? 'x-value' : 'format']: name }, value)

describe('canonicalTime', () => {
  it.each([
    ['2026-03-01T09:30:00Z', 'UTC', '2026-03-01T09:30:00.000Z'],
    ['2026-03-01T09:30:00.123456789Z', 'UTC', '2026-03-01T09:30:00.123Z'],
    ['2026-03-01t09:30:00z', 'UTC', '2026-03-01T09:30:00.000Z'],
    ['2026-03-01T09:30:00+05:30', 'Europe/Berlin', '2026-03-01T04:00:00.000Z'],
    ['2026-03-01T09:30:00-0800', 'UTC', '2026-03-01T17:30:00.000Z'],
    ['2026-03-01 09:30', 'Europe/Berlin', '2026-03-01T08:30:00.000Z'],
    ['2026-07-01 09:30:15', 'Europe/Berlin', '2026-07-01T07:30:15.000Z'],
    ['2026-07-01T09:30', 'America/New_York', '2026-07-01T13:30:00.000Z'],
    ['2024-02-29T00:00:00Z', 'UTC', '2024-02-29T00:00:00.000Z'],
    ['2026-03-01', 'UTC', '2026-03-01T00:00:00.000Z'],
    ['2026-07-01', 'America/New_York', '2026-07-01T04:00:00.000Z'],
    // The clocks are set forward at midnight, so the day starts at 01:00.
    ['2026-09-06', 'America/Santiago', '2026-09-06T04:00:00.000Z'],
  ])('reads %s in %s as %s', (text, zone, time) => {
    expect(canonicalTime(text, zone)).toBe(time)
  })

  it('reads an hour that exists twice as the first of the two, and one that does not exist as a moment beside it', () => {
    expect(['2026-03-29T00:30:00.000Z', '2026-03-29T01:30:00.000Z']).toContain(
      canonicalTime('2026-03-29 02:30', 'Europe/Berlin'),
    )
    expect(canonicalTime('2026-10-25 02:30', 'Europe/Berlin')).toBe('2026-10-25T00:30:00.000Z')
  })

  it.each([
    '',
    'soon',
    '2026-02-30',
    '0000-01-01',
    '2026-02-30T10:00:00Z',
    '2026-13-01T10:00:00Z',
    '2026-03-01T25:00:00Z',
    '2026-03-01T10:00:00+25:00',
    '2025-02-29T00:00:00Z',
    '1772357400',
    '2026-03-01T09:30:00Z ',
  ])('finds no time in %j', (text) => expect(canonicalTime(text, 'UTC')).toBeUndefined())

  it('gives its own form back unchanged', () => {
    const time = '2026-03-01T09:30:00.000Z'
    expect(canonicalTime(canonicalTime(time, 'Asia/Tokyo') ?? '', 'America/Lima')).toBe(time)
  })
})

describe('canonicalDate', () => {
  it.each([
    ['2026-03-31', 'UTC', '2026-03-31'],
    ['2026-03-31T23:30:00Z', 'Europe/Berlin', '2026-04-01'],
    ['2026-03-31T23:30:00-08:00', 'UTC', '2026-04-01'],
    ['2026-03-31 23:30', 'America/New_York', '2026-03-31'],
  ])('reads %s in %s as %s', (text, zone, date) => {
    expect(canonicalDate(text, zone)).toBe(date)
  })

  it.each(['2026-02-30', '2026-00-10', '31.03.2026', '3/31/2026', '20260331', 'today'])('finds no date in %j', (text) =>
    expect(canonicalDate(text, 'UTC')).toBeUndefined(),
  )
})

describe('dayBoundary', () => {
  it('knows that a day may have 23 or 25 hours', () => {
    const hours = (date: string): number =>
      (Date.parse(dayBoundary(date, 'Europe/Berlin', true)) -
        Date.parse(dayBoundary(date, 'Europe/Berlin', false)) +
        1) /
      3_600_000
    expect(['2026-03-28', '2026-03-29', '2026-10-25'].map(hours)).toEqual([24, 23, 25])
  })
})

describe('hasBoundaries', () => {
  it.each([
    ['9999-12-31', 'UTC', true],
    ['9999-12-31', 'America/New_York', false],
    ['9999-12-31', 'Asia/Tokyo', true],
    ['0001-01-01', 'UTC', true],
    ['0001-01-01', 'Asia/Tokyo', false],
    ['0001-01-01', 'America/New_York', true],
    ['2026-02-30', 'UTC', false],
  ])('%s in %s: %s', (date, zone, has) => {
    expect(hasBoundaries(date, zone)).toBe(has)
  })
})

describe('formats', () => {
  it.each([
    [
      'email',
      [
        'jörg@müller.de',
        '用户@例子.广告',
        'ada@xn--mller-kva.de',
        'δοκιμή@παράδειγμα.ελ',
        'ada@example.com',
        "o'brien+crm@sub.example.co.uk",
        'a@b',
        'ADA@EXAMPLE.COM',
      ],
      [
        'ada',
        'ada@',
        '@example.com',
        'a b@example.com',
        'ada@exa_mple.com',
        'ada@mül ler.de',
        'ada@mü_ller.de',
        `${'ü'.repeat(33)}@example.com`,
        'ada@-example.com',
        '.ada@example.com',
        'ada..l@example.com',
        `${'a'.repeat(65)}@example.com`,
        'ada@example.com\n',
        // The Kelvin sign and the long s, whose lower and upper case are ASCII letters.
        '\u212aim@example.com',
        'ada@\u017fub.example.com',
      ],
    ],
    [
      'phone',
      ['+1 202 555 0143', '(212) 555-0143 x12', 'tel:112', '1'.repeat(40)],
      ['call me', '12', '+', '1'.repeat(41)],
    ],
    ['country', ['GB', 'DE'], ['XX', 'gb', 'GBR', '']],
    ['date', ['2026-03-31'], ['2026-02-30', '2026-03-31T00:00:00Z']],
    ['date-time', ['2026-03-01T09:30:00.000Z'], ['2026-03-01T09:30:00Z', '2026-03-01']],
    [
      'instant',
      ['2026-03-01', '2026-03-01T09:30:00.000Z'],
      ['soon', '2026-02-30', '2026-03-01T09:30:00+01:00', '2026-03-01 09:30', '10000-01-01T04:59:59.999Z', ''],
    ],
    ['money', [0, 0.1, 4821.5, 99_999_999_999.9999, -1], [0.00001, 1e21, 1.23456]],
  ])('%s', (format, good, bad) => {
    for (const value of good) expect.soft([value, accepts(format, value)]).toEqual([value, true])
    for (const value of bad) expect.soft([value, accepts(format, value)]).toEqual([value, false])
  })

  // An exponential algorithm would not end.
  it('answers however an address is made up', () => {
    for (const text of [`${'a.'.repeat(30)}@`, `a@${'a-'.repeat(120)}`, `a@${'a.'.repeat(120)}!`])
      expect(accepts('email', text)).toBe(false)
  })
})
