// Normalization before validation: accepted spellings get the canonical form, and other values stay
// unchanged.
import { describe, expect, it } from 'vitest'
import { normalizeBody, plainIntake, type Shape } from '../../../src/contract/input/normalize.ts'
import { readQuery } from '../../../src/contract/input/query.ts'
import type { Finding } from '../../../src/contract/input/validation-errors.ts'
import { follow, parametersOf } from '../../support/schema.ts'

const reading = { zone: 'Europe/Berlin', strict: true }
const closed = (properties: Record<string, Shape>): Shape => ({
  type: 'object',
  additionalProperties: false,
  properties,
})
const body = (value: unknown, properties: Record<string, Shape>, keys: string[] = []): unknown =>
  normalizeBody(value, closed(properties), { ignorable: { keys, nested: {} }, creates: false }, reading)

const read = (value: unknown, properties: Record<string, Shape>): unknown =>
  normalizeBody(value, closed(properties), plainIntake, reading)

const text: Shape = { type: 'string' }
const nullable: Shape = { type: ['string', 'null'] }

describe('a body of JSON', () => {
  it.each(['', 'yes', 2])('does not take %j for a flag', (done) => {
    expect(read({ done }, { done: { type: 'boolean' } })).toEqual({ done })
  })

  // 0, 1, "0", "1", "true" and "false" are booleans, and a numeric text is an amount.
  it.each([0, 1, '0', '1', 'true', 'false', true, false])('reads %j as a flag', (done) => {
    const flag = ['1', 'true'].includes(String(done))
    expect(read({ done }, { done: { type: 'boolean' } })).toEqual({ done: flag })
  })

  const amount: Shape = { type: ['number', 'null'], format: 'double', 'x-value': 'money' }
  it.each(['12.5', ' 12.5 '])('reads %j as an amount', (price) => {
    expect(read({ price }, { price: amount })).toEqual({ price: 12.5 })
  })

  it.each(['1e3', '12.', 'twelve'])('does not take %j for an amount', (price) => {
    expect(read({ price }, { price: amount })).toEqual({ price })
  })

  it.each([
    ['12', 12],
    [' -3 ', -3],
    ['0', 0],
  ])('reads %j as a whole number', (id, number) => {
    expect(read({ id }, { id: { type: ['integer', 'null'] } })).toEqual({ id: number })
    expect(read({ id }, { id: { anyOf: [{ type: 'integer' }, { type: 'null' }] } })).toEqual({ id: number })
  })

  it.each(['1.5', '01', '+1', '1e3', '99999999999999999'])('does not take %j for a whole number', (id) => {
    expect(read({ id }, { id: { type: 'integer' } })).toEqual({ id })
  })

  it('takes an empty text for null where a value may be null, and nowhere else', () => {
    const sent = { note: ' ', on: '', color: '', price: '', id: '', done: '', count: '' }
    const types: Record<string, Shape> = {
      price: amount,
      id: { type: ['integer', 'null'] },
      done: { type: ['boolean', 'null'] },
    }
    const texts: Record<string, Shape> = {
      note: nullable,
      on: { ...nullable, format: 'date' },
      color: { ...nullable, pattern: '^#' },
    }
    expect(read(sent, { ...texts, ...types, count: { type: 'integer' } })).toEqual({
      ...{ note: null, on: null, color: null, price: null, id: null, done: null },
      count: '',
    })
  })
})

describe('a body', () => {
  it('loses the blanks around its texts and keeps those inside', () => {
    expect(body({ name: '  Ada  Lovelace\t' }, { name: text })).toEqual({ name: 'Ada  Lovelace' })
  })

  it('holds a letter in one way, however it was composed', () => {
    expect(body({ name: 'Ame\u0301lie' }, { name: text })).toEqual({ name: 'Am\u00e9lie' })
  })

  it('reads an empty text as null where null may be, and as missing where not', () => {
    const found: Finding[] = []
    const lines: Shape = { type: 'array', items: closed({ name: text }) }
    const sent = { name: ' ', note: '', lines: [{ name: 'A' }, { name: '' }] }
    expect(normalizeBody(sent, closed({ name: text, note: nullable, lines }), plainIntake, reading, found)).toEqual({
      note: null,
      lines: [{ name: 'A' }, {}],
    })
    expect(found).toEqual([
      ['name', 'The field is required.'],
      ['lines.1.name', 'The field is required.'],
    ])
  })

  it('takes the choices of an enum to the letter', () => {
    const separator: Shape = { type: 'string', enum: [',', '\t'] }
    expect(body({ separator: '\t' }, { separator })).toEqual({ separator: '\t' })
    expect(body({ separator: ' , ' }, { separator })).toEqual({ separator: ' , ' })
    expect(body({ separator: '' }, { separator: { ...separator, type: ['string', 'null'] } })).toEqual({
      separator: null,
    })
  })

  it('leaves a password as it was typed', () => {
    expect(body({ password: ' a  b ' }, { password: { type: 'string', format: 'password' } })).toEqual({
      password: ' a  b ',
    })
  })

  it.each([0, 1, '0', '1', 'true', 'false'])('reads %j as a truth value', (value) => {
    const read = body({ done: value }, { done: { type: 'boolean' } })
    expect(read).toEqual({ done: ['1', 'true'].includes(String(value)) })
  })

  it.each(['yes', 'TRUE', 2, 'on', null])('does not guess what %j means', (value) => {
    expect(body({ done: value }, { done: { type: 'boolean' } })).toEqual({ done: value })
  })

  it('reads an amount from a text, and leaves alone what is none', () => {
    const price: Shape = { type: 'number', format: 'money' }
    for (const [sent, read] of [
      ['4821.50', 4821.5],
      [' 7 ', 7],
      ['1e3', '1e3'],
      ['0x10', '0x10'],
      ['+5', '+5'],
      ['12345678901234.5678', '12345678901234.5678'],
      ['1,5', '1,5'],
      ['', ''],
    ] as const) {
      expect.soft(body({ price: sent }, { price })).toEqual({ price: read })
    }
  })

  it('brings times into UTC, dates into days, and countries into capitals', () => {
    const shapes = {
      at: { type: 'string', format: 'date-time' },
      on: { type: 'string', format: 'date' },
      in: { type: 'string', format: 'country' },
    }
    expect(body({ at: '2026-07-01 09:30', on: '2026-07-01T23:30:00Z', in: 'gb' }, shapes)).toEqual({
      at: '2026-07-01T07:30:00.000Z',
      on: '2026-07-02',
      in: 'GB',
    })
  })

  it('drops keys that replies have and bodies have not, and keeps unknown ones to be refused', () => {
    expect(body({ id: 7, name: 'Ada', nope: 1 }, { name: text }, ['id'])).toEqual({ name: 'Ada', nope: 1 })
  })

  describe('with a key that only replies have', () => {
    const line = closed({ id: { type: 'integer' }, name: text })
    const shape = closed({ name: text, owner: line, lines: { type: 'array', items: line } })
    const below = { keys: ['total'], nested: {} }
    const ignorable = {
      keys: ['status', 'version'],
      hints: { status: 'follows the stage; send stage_id' },
      nested: { owner: below, lines: below },
    }
    const found = (sent: unknown, creates: boolean, strict = true): Finding[] => {
      const list: Finding[] = []
      normalizeBody(sent, shape, { ignorable, creates }, { ...reading, strict }, list)
      return list
    }
    const status: Finding = ['status', 'Read-only: follows the stage; send stage_id.']

    it('is refused when it makes a record, with what to send instead', () => {
      expect(found({ name: 'A', status: 2, version: 1 }, true)).toEqual([
        status,
        ['version', 'Read-only: the server sets it.'],
      ])
    })

    it('loses the key when it changes a record, and is refused when it has no other', () => {
      expect(found({ name: 'A', status: 2 }, false)).toEqual([])
      expect(found({ status: 2 }, false)).toEqual([status])
      expect(found({}, false)).toEqual([])
    })

    it('is asked about its parts, but for those that name what is there already', () => {
      const sentence = 'Read-only: the server sets it.'
      const lines = [{ id: 3, total: 1 }, { total: 1 }]
      expect(found({ name: 'A', lines, owner: { id: 3, total: 1 } }, true)).toEqual([['lines.1.total', sentence]])
      expect(found({ name: 'A', lines }, false)).toEqual([])
      expect(found({ name: 'A', owner: { total: 1 } }, false)).toEqual([['owner.total', sentence]])
    })

    it('loses it where the installation is lenient', () => {
      expect(found({ status: 2 }, true, false)).toEqual([])
      expect(found({ status: 2 }, false, false)).toEqual([])
    })
  })

  it('lets `__proto__` arrive as the unknown key it is', () => {
    const read = body(JSON.parse('{"__proto__":{"admin":true},"name":"Ada"}'), { name: text }) as object
    expect(Object.keys(read).sort()).toEqual(['__proto__', 'name'])
    expect(Object.getPrototypeOf(read)).toBe(Object.prototype)
    expect('admin' in read).toBe(false)
  })

  it('drops unknown keys when the installation is lenient', () => {
    const shape: Shape = { type: 'object', additionalProperties: false, properties: { name: text } }
    expect(normalizeBody({ name: 'Ada', nope: 1 }, shape, plainIntake, { zone: 'UTC', strict: false })).toEqual({
      name: 'Ada',
    })
  })

  it('has line ends of one kind', () => {
    expect(body({ name: 'a\r\nb\rc\r\n' }, { name: text })).toEqual({ name: 'a\nb\nc' })
    expect(body({ password: 'a\rb' }, { password: { type: 'string', format: 'password' } })).toEqual({
      password: 'a\rb',
    })
  })

  it('keeps one entry too many of a list, and so many unknown keys: enough to be refused', () => {
    const ids: Shape = { type: 'array', maxItems: 3, items: { type: 'integer' } }
    expect(body({ ids: [1, 2, 3, 4, 5, 6] }, { ids })).toEqual({ ids: [1, 2, 3, 4] })
    const unknown = Object.fromEntries(Array.from({ length: 5000 }, (_, index) => [`k${index}`, index]))
    expect(Object.keys(body(unknown, {}) as object).length).toBeLessThan(200)
  })

  it('is not changed itself', () => {
    const sent = Object.freeze({ name: ' Ada ', lines: Object.freeze([Object.freeze({ name: ' B ' })]) })
    const lines: Shape = { type: 'array', items: { type: 'object', properties: { name: text } } }
    expect(body(sent, { name: text, lines })).toEqual({ name: 'Ada', lines: [{ name: 'B' }] })
    expect(sent.name).toBe(' Ada ')
  })
})

describe('a query string', () => {
  const parameters = Object.fromEntries(
    parametersOf('listLeads', 'query').map(({ name, schema }) => [
      name,
      { ...schema, ...(schema.items && { items: follow(schema.items) }) } as Shape,
    ]),
  )
  const query = (raw: string, strict = true, zone = 'UTC', found: Finding[] = []) =>
    readQuery(raw, parameters, { zone, strict }, found)

  it('is split at commas, unless a backslash says that the comma is meant', () => {
    expect(query('title=a,b\\,c, d&lead_source_id=1,2')).toEqual({
      title: ['a', 'b,c', 'd'],
      lead_source_id: ['1', '2'],
    })
  })

  it('keeps an encoded comma in a text; in names and numbers it separates', () => {
    expect(query('title=ACME%2C%20Inc.,b&sort=id%2C-title&lead_source_id=1%2C2')).toEqual({
      title: ['ACME, Inc.', 'b'],
      sort: ['id', '-title'],
      lead_source_id: ['1', '2'],
    })
    expect(query('title=a%5C%2Cb&title=a\\%2Cb')).toEqual({ title: ['a,b', 'a,b'] })
  })

  it('collects a list that is given in parts', () => {
    expect(query('lead_source_id=1&lead_source_id=2,3')).toEqual({ lead_source_id: ['1', '2', '3'] })
  })

  it('keeps both values of a parameter that is not a list, so that it is refused', () => {
    expect(query('page=1&page=2')).toEqual({ page: ['1', '2'] })
  })

  it('reads truth values, plus signs and escapes', () => {
    expect(query('is_rotten=1&q=acme+paris%26co')).toEqual({ is_rotten: 'true', q: 'acme paris&co' })
  })

  it('drops unknown parameters only when the installation is lenient', () => {
    expect(query('nope=1')).toEqual({ nope: '1' })
    expect(query('nope=1', false)).toEqual({})
  })

  it('brings dates and timestamps into one form, and keeps a day where either may be', () => {
    expect(
      query(
        'expected_close_date[gte]=2026-03-01T23:30:00Z&created_at[gt]=2026-03-01 09:30&closed_at[lt]=2026-03-01',
        true,
        'Europe/Berlin',
      ),
    ).toEqual({
      'expected_close_date[gte]': '2026-03-02',
      'created_at[gt]': '2026-03-01T08:30:00.000Z',
      'closed_at[lt]': '2026-03-01',
    })
  })

  it.each([
    ['9999-12-31', 'America/New_York'],
    ['9999-12-31T23:30', 'America/New_York'],
    ['0001-01-01', 'Asia/Tokyo'],
    ['0001-01-01 00:30', 'Asia/Tokyo'],
    ['0001-01-01T00:00:00+14:00', 'UTC'],
    ['soon', 'UTC'],
  ])('leaves nothing of %s, which no timestamp in %s can say', (text, zone) => {
    expect(query(`created_at[gt]=${encodeURIComponent(text)}`, true, zone)).toEqual({ 'created_at[gt]': '' })
  })

  it('takes numbers in plain decimals only, in lists as well', () => {
    expect(query('page=0x1&per_page=1e1&lead_value[gte]=%2B5&id=1,0x1,1e1,+2,3')).toEqual({
      page: ['0x1'],
      per_page: ['1e1'],
      'lead_value[gte]': ['+5'],
      id: ['1', ['0x1'], ['1e1'], '2', '3'],
    })
  })

  it('is searched for texts that are refused', () => {
    const found: Finding[] = []
    query('q=a%00b&name=ok&title=a,b%C2%80', true, 'UTC', found)
    expect(found).toEqual([
      ['query.q', 'Must not contain control characters.'],
      ['query.title', 'Must not contain control characters.'],
    ])
  })
})
