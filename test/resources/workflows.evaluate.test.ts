// Conditions of workflows: tested by examples, and against a simple second implementation.
import fc from 'fast-check'
import { DateTime } from 'luxon'
import { describe, expect, it } from 'vitest'
import type { Attribute } from '../../src/resources/attributes/attribute-set.ts'
import type { ComparableField, FieldKind } from '../../src/resources/workflows/comparable-fields.ts'
import { UnanswerableCondition } from '../../src/resources/workflows/conditions.ts'
import { evaluate } from '../../src/resources/workflows/evaluate.ts'

const zone = 'Europe/Berlin'
// In Berlin, this is the next day.
const at = new Date('2026-03-01T23:30:00.000Z')

const own = (type: string) => ({ type, isOwn: true }) as Attribute
const built = (type: string) => ({ type, isOwn: false }) as Attribute
const subjects = new Map<string, ComparableField>([
  ['title', { kind: 'text', attribute: built('text') }],
  ['lead_value', { kind: 'number', attribute: built('price') }],
  ['seats', { kind: 'number', attribute: own('text') }],
  ['closes', { kind: 'date', attribute: built('date') }],
  ['starts', { kind: 'datetime' }],
  ['vip', { kind: 'boolean', attribute: own('boolean') }],
  ['source', { kind: 'choice', attribute: built('select') }],
  ['sectors', { kind: 'list', attribute: own('multiselect') }],
  ['emails', { kind: 'list', attribute: built('email') }],
  ['phones', { kind: 'list', attribute: built('phone') }],
  ['type', { kind: 'list', choices: ['note', 'call'] }],
  ['tag_ids', { kind: 'list', tags: true }],
])

type Row = [attribute: string, operator: string, value: unknown]

const conditionOf = ([attribute, operator, value]: Row) => ({ attribute, operator, value }) as never
const run = (conditions: Row[], snapshot: object, condition_type = 'and', before: object | null = null) =>
  evaluate(
    { condition_type, conditions: conditions.map(conditionOf) },
    { ...snapshot },
    { subjects, at, zone, before: before && { ...before } },
  )
const holds = (condition: Row, snapshot: object): boolean => run([condition], snapshot).matches

const record = {
  title: 'Été in Paris',
  lead_value: 5000.0001,
  closes: '2026-03-16',
  starts: '2026-03-01T23:10:00.000Z',
  source: 3,
  type: 'call',
  tags: [{ id: 7, name: 'VIP' }],
  emails: [{ value: 'Ada@Example.com', label: 'work' }],
  phones: [{ value: '+49 (30) 12-34', label: 'work' }],
  custom_attributes: { seats: '00012.50', vip: true, sectors: [4, 2] },
}

describe('a condition', () => {
  it.each<[string, Row[], Row[]]>([
    [
      'compares texts without regard to case',
      [
        ['title', '==', 'été IN paris'],
        ['title', '{}', 'IN P'],
        ['title', '!=', 'Paris'],
        ['title', '!{}', 'London'],
      ],
      [
        ['title', '==', 'Été'],
        ['title', '!{}', 'PARIS'],
      ],
    ],
    [
      'compares numbers exactly, however they are written',
      [
        ['lead_value', '>', 5000],
        ['lead_value', '==', '5000.0001'],
        ['lead_value', '<=', '+5000.0001'],
        ['seats', '==', 12.5],
        ['seats', '<', '12.5001'],
      ],
      [
        ['lead_value', '<=', '5000'],
        ['lead_value', '<', 5000.0001],
        ['seats', '!=', '12.50'],
      ],
    ],
    [
      'compares dates by value, from today on in the time zone of the installation',
      [
        ['closes', '==', '{{today+14}}'],
        ['closes', '>', '{{ today }}'],
        ['closes', '<=', '2026-03-16T10:00:00Z'],
        ['closes', '!=', '{{today-1}}'],
      ],
      [
        ['closes', '<', '{{today + 14}}'],
        ['closes', '==', '2026-03-15'],
      ],
    ],
    [
      'compares moments with moments, and with days by the day they are on',
      [
        ['starts', '==', '{{today}}'],
        ['starts', '==', '2026-03-02'],
        ['starts', '==', '2026-03-02 00:10'],
        ['starts', '<', '2026-03-01T23:11:00Z'],
        ['starts', '<=', '2026-03-02'],
      ],
      [
        ['starts', '==', '2026-03-01'],
        ['starts', '<', '2026-03-02'],
        ['starts', '!=', '2026-03-02T00:10:00+01:00'],
      ],
    ],
    [
      'takes one choice, or any of several',
      [
        ['source', '==', 3],
        ['source', '==', [1, 3]],
        ['source', '!=', [1, 2]],
        ['vip', '==', true],
        ['vip', '!=', [false]],
      ],
      [
        ['source', '!=', [1, 3]],
        ['vip', '==', false],
      ],
    ],
    [
      'looks for any of several in a list',
      [
        ['sectors', '{}', [1, 2]],
        ['sectors', '!{}', [1, 3]],
        ['tag_ids', '{}', 7],
        ['type', '{}', ['note', 'call']],
        ['emails', '{}', 'ada@example.COM'],
        ['phones', '{}', '+49301234'],
        ['phones', '{}', '49 (30) 1234'],
      ],
      [
        ['sectors', '!{}', [4]],
        ['tag_ids', '{}', [8]],
        ['type', '!{}', 'call'],
        ['emails', '{}', 'ada'],
        ['phones', '{}', '301234'],
      ],
    ],
  ])('%s', (_promise, right, wrong) => {
    expect(right.filter((condition) => !holds(condition, record))).toEqual([])
    expect(wrong.filter((condition) => holds(condition, record))).toEqual([])
  })

  it.each<[Row, object]>([
    [['title', 'changed_to', 'été in PARIS'], { title: 'Other' }],
    [['lead_value', 'changed_to', 5000.0001], { lead_value: null }],
    [['closes', 'changed_to', '2026-03-16'], { closes: '2026-03-15' }],
    [['vip', 'changed_to', true], { custom_attributes: {} }],
    [['source', 'changed_to', [1, 3]], { source: 2 }],
    [['sectors', 'changed_to', [4]], { custom_attributes: { vip: true, sectors: [2] } }],
    [['tag_ids', 'changed_to', [7]], { tags: [] }],
  ])('%j holds for the event that brings it about, and for no other', (condition, differs) => {
    const was = { ...record, ...differs }
    expect(run([condition], record, 'and', was).matches).toBe(true)
    expect(run([condition], record, 'and', record).matches).toBe(false)
    expect(run([condition], was, 'and', record).matches).toBe(false)
    expect(run([condition], record, 'and', null).matches).toBe(true)
  })

  it('knows nothing as equal to nothing alone, and in no order', () => {
    const empty = { title: null, lead_value: null, closes: null, custom_attributes: {} }
    for (const [attribute, value] of [
      ['title', 'x'],
      ['lead_value', 0],
      ['closes', '{{today}}'],
      ['seats', 0],
      ['vip', false],
    ] as const) {
      expect([holds([attribute, '==', null], empty), holds([attribute, '!=', null], empty)]).toEqual([true, false])
      expect([holds([attribute, '==', value], empty), holds([attribute, '!=', value], empty)]).toEqual([false, true])
      expect(holds([attribute, '!=', null], { ...record, custom_attributes: { seats: '1', vip: false } })).toBe(true)
    }
    for (const operator of ['>', '<', '>=', '<=']) expect(holds(['lead_value', operator, 0], empty)).toBe(false)
    expect([holds(['sectors', '{}', 2], empty), holds(['sectors', '!{}', 2], empty)]).toEqual([false, true])
  })

  it('on a deleted or changed attribute cannot be evaluated', () => {
    expect(() => holds(['hue', '==', 1], record)).toThrow(UnanswerableCondition)
    expect(() => holds(['title', '>=', 'a'], record)).toThrow(UnanswerableCondition)
    // An invalid condition throws even if another condition of an `or` is true.
    const either: Row[] = [
      ['source', '==', 3],
      ['hue', '==', 1],
    ]
    expect(() => run(either, record, 'or')).toThrow('The attribute hue of a condition no longer exists.')
  })
})

describe('several conditions', () => {
  const right: Row = ['source', '==', 3]
  const wrong: Row = ['source', '==', 4]
  it.each<[string, string, Row[], boolean, number[]]>([
    ['none of all', 'and', [], true, []],
    ['none of any', 'or', [], true, []],
    ['all', 'and', [right, right], true, [0, 1]],
    ['not all', 'and', [wrong, right], false, [1]],
    ['one of any', 'or', [wrong, right], true, [1]],
    ['only failing ones of any', 'or', [wrong, wrong], false, []],
  ])('answer for %s, and which of them hold', (_what, type, conditions, matches, held) => {
    expect(run(conditions, record, type)).toEqual({ matches, held })
  })
})

// ── Against a second implementation ──

const day = fc.integer({ min: -3, max: 3 }).map((days) => DateTime.fromISO('2026-03-02').plus({ days }).toISODate())
const moment = fc
  .integer({ min: -60, max: 60 })
  .map((hours) => new Date(at.getTime() + hours * 3_600_000 + 1_800_000).toISOString())
const words = fc.constantFrom('acme', 'ACME', 'Été', 'été', 'Acme Paris', '', ' ')
const ids = fc.integer({ min: 1, max: 4 })
const scaled = fc.integer({ min: -30, max: 30 })
const today = fc.integer({ min: -3, max: 3 }).map((days) => `{{today${days < 0 ? days : `+${days}`}}}`)

/** Arbitrary values of records and of conditions, by kind. */
const values: Record<FieldKind, [actual: fc.Arbitrary<unknown>, wanted: fc.Arbitrary<unknown>]> = {
  number: [scaled.map((n) => n / 10), scaled.map((n) => (n % 2 ? n / 10 : (n / 10).toFixed(3)))],
  date: [day, fc.oneof(day, today)],
  datetime: [moment, fc.oneof(day, today, moment)],
  text: [words, words],
  boolean: [fc.boolean(), fc.oneof(fc.boolean(), fc.uniqueArray(fc.boolean(), { minLength: 1 }))],
  choice: [ids, fc.oneof(ids, fc.uniqueArray(ids, { minLength: 1 }))],
  list: [fc.uniqueArray(ids), fc.oneof(ids, fc.uniqueArray(ids, { minLength: 1 }))],
}
const codes: Record<FieldKind, string> = {
  number: 'lead_value',
  date: 'closes',
  datetime: 'starts',
  text: 'title',
  boolean: 'vip',
  choice: 'source',
  list: 'sectors',
}
const operators: Record<FieldKind, string[]> = {
  number: ['==', '!=', '>=', '<=', '>', '<'],
  date: ['==', '!=', '>=', '<=', '>', '<'],
  datetime: ['==', '!=', '>=', '<=', '>', '<'],
  text: ['==', '!=', '{}', '!{}'],
  boolean: ['==', '!='],
  choice: ['==', '!='],
  list: ['{}', '!{}'],
}

const onDay = (iso: string): string => DateTime.fromISO(iso, { zone }).toISODate() ?? ''
const dayOf = (text: string): string =>
  text.startsWith('{')
    ? (DateTime.fromISO('2026-03-02')
        .plus({ days: Number(text.slice(7, -2)) })
        .toISODate() ?? '')
    : text

/** The simple second implementation of the operators. */
function expected(kind: FieldKind, actual: any, operator: string, wanted: any): boolean {
  if (operator.startsWith('!')) return !expected(kind, actual, operator === '!=' ? '==' : '{}', wanted)
  if (actual === null || wanted === null) return operator === '==' && actual === wanted
  if (kind === 'list') return [wanted].flat().some((each) => actual.includes(each))
  if (kind === 'choice' || kind === 'boolean') return [wanted].flat().includes(actual)
  let [a, b] = [actual, wanted]
  if (kind === 'text') [a, b] = [a.toLowerCase(), b.toLowerCase()]
  if (kind === 'number') [a, b] = [Math.round(a * 1000), Math.round(Number(b) * 1000)]
  if (kind === 'date') b = dayOf(b)
  if (kind === 'datetime') {
    const isMoment = b.includes('T')
    ;[a, b] = isMoment ? [Date.parse(a), Date.parse(b)] : [onDay(a), dayOf(b)]
  }
  if (operator === '{}') return a.includes(b)
  if (operator === '==') return a === b
  if (operator === '>') return a > b
  if (operator === '<') return a < b
  return operator === '>=' ? a >= b : a <= b
}

const one = fc.constantFrom(...(Object.keys(values) as FieldKind[])).chain((kind) => {
  const [actual, wanted] = values[kind]
  return fc.record({
    kind: fc.constant(kind),
    operator: fc.constantFrom(...operators[kind]),
    actual: fc.option(actual, { freq: 8, nil: null }),
    wanted: kind === 'list' ? wanted : fc.option(wanted, { freq: 8, nil: null }),
  })
})

describe('every condition', () => {
  it('is answered as the table of the domain answers it', () => {
    fc.assert(
      fc.property(one, ({ kind, operator, actual, wanted }) => {
        const code = codes[kind]
        const snapshot = subjects.get(code)?.attribute?.isOwn
          ? { custom_attributes: { [code]: actual } }
          : { [code]: actual }
        expect(holds([code, operator, wanted], snapshot)).toBe(expected(kind, actual, operator, wanted))
      }),
      { seed: 18, numRuns: 4000 },
    )
  })
})
