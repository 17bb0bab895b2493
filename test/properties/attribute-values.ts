// Arbitrary values of attributes of all types for the property tests.
import fc from 'fast-check'
import { digitsOf } from '../../db/schema/search-folding.ts'
import type { Schema } from '../../src/contract/types.ts'
import { fold } from '../../src/kernel/values/format.ts'

export type Values = Record<string, unknown>

/** One attribute definition of each type. */
export const attributes: [code: string, more: Record<string, unknown>][] = [
  ['text', {}],
  ['textarea', {}],
  ['number', {}],
  ['price', {}],
  ['boolean', {}],
  ['select', { options: [{ name: 'c' }, { name: 'a' }, { name: 'b' }] }],
  ['multiselect', { options: [{ name: 'x' }, { name: 'y' }, { name: 'z' }] }],
  ['checkbox', { lookup_type: 'lead_sources' }],
  ['email', {}],
  ['address', {}],
  ['phone', {}],
  ['url', {}],
  ['lookup', { lookup_type: 'lead_types' }],
  ['datetime', {}],
  ['date', {}],
  ['image', {}],
  ['file', {}],
  ['subheading', {}],
]

const letters = fc.constantFrom(
  'a',
  'B',
  'é',
  'ß',
  '5',
  ' ',
  '%',
  '_',
  ',',
  '\\',
  "'",
  '"',
  '中',
  '\u{1f600}',
  '{',
  ']',
)
const words = (maxLength: number) =>
  fc
    .array(letters, { minLength: 1, maxLength })
    .map((parts) => parts.join('').trim().normalize('NFC'))
    .filter((text) => text !== '')
const money = fc.integer({ min: 0, max: 999_999_999_999_999 }).map((scaled) => Number(`${scaled}e-4`))
const day = fc
  .date({ min: new Date('0002-01-01'), max: new Date('9998-12-31'), noInvalidDate: true })
  .map((date) => date.toISOString())
const number = fc.double({ min: -1e6, max: 1e6, noNaN: true }).map((value) => Number(value.toFixed(8)) + 0)
const label = fc.constantFrom('work', 'home', 'mobile')
const email = fc.nat(50).map((n) => `Ada${n}@Example.com`)
const phone = fc.tuple(fc.nat(99), fc.nat(9999)).map(([area, n]) => `+1 (2${area}) 555-${n}`)
const points = (value: fc.Arbitrary<string>, key: (text: string) => string) =>
  fc.uniqueArray(fc.record({ value, label }), { maxLength: 4, selector: (point) => key(point.value) })
const part = fc.option(words(20))

/**
 * Returns arbitrary values of each type as they are written. They are read back unchanged, except
 * as defined in `shown`.
 */
export const valuesWith = (options: Record<string, number[]>, files: readonly number[]): fc.Arbitrary<Values> =>
  fc.record(
    {
      a_text: fc.option(words(60)),
      a_textarea: fc.option(words(300)),
      a_number: fc.option(number),
      a_price: fc.option(money),
      a_boolean: fc.option(fc.boolean()),
      a_select: fc.option(fc.constantFrom(...(options.select ?? []))),
      a_multiselect: fc.option(fc.shuffledSubarray(options.multiselect ?? [])),
      a_checkbox: fc.option(fc.shuffledSubarray([1, 2, 3, 4, 5])),
      a_email: fc.option(points(email, fold)),
      a_address: fc.option(
        fc.record({
          address: part,
          country: fc.constantFrom('GB', 'FR', null),
          state: part,
          city: words(20),
          postcode: part,
        }),
      ),
      a_phone: fc.option(points(phone, digitsOf)),
      a_url: fc.option(words(20).map((text) => `https://example.com/${encodeURIComponent(text)}`)),
      a_lookup: fc.option(fc.constantFrom(1, 2)),
      a_datetime: fc.option(day),
      a_date: fc.option(day.map((text) => text.slice(0, 10))),
      a_image: fc.option(fc.constantFrom(...files)),
      a_file: fc.option(fc.constantFrom(...files)),
    } satisfies Record<`a_${Exclude<Schema<'AttributeType'>, 'subheading'>}`, fc.Arbitrary<unknown>>,
    { requiredKeys: [] },
  )
