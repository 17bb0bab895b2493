// Numbers in a body: exactly the numbers that JSON.parse would round are found, with the paths of
// their fields.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isExactNumber, lossesIn, numberIn } from '../../src/contract/input/unsafe-numbers.ts'

describe('isExactNumber', () => {
  it.each([
    '0',
    '-0',
    '0.000',
    '1.50',
    '99999999999.9999',
    '-99999999999.9999',
    '1e3',
    '1E+20',
    '0.0001',
    '1e-7',
    '9007199254740991',
    '100000000000000000000000',
    '12345678901234.50000000000000000',
  ])('%s is what a float holds', (text) => {
    expect(isExactNumber(text)).toBe(true)
  })

  it.each([
    '1.00000000000000000001',
    '99999999999.99990000001',
    '9007199254740993',
    '0.1000000000000000000001',
    '1e400',
    '1e-400',
    '123456789012345678',
  ])('%s is not', (text) => {
    expect(isExactNumber(text)).toBe(false)
  })

  it('takes every number that was printed', () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (number) =>
        isExactNumber(JSON.stringify(number)),
      ),
    )
  })
})

const tricky = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.constantFrom('"', '\\', '\\"', '1.00000000000000000001', '{"a":[', ',', ':'),
)
const marker = 'the inexact one'

describe('lossesIn', () => {
  it('finds nothing in the JSON of a value', () => {
    fc.assert(
      fc.property(fc.json({ stringUnit: 'binary' }), fc.boolean(), (text, indented) => {
        const value: unknown = JSON.parse(text)
        expect(lossesIn(JSON.stringify(value, null, indented ? '\t' : undefined), 100).inexact).toEqual([])
      }),
    )
  })

  it('names the path of each number that was rounded, as JSON.parse builds the value', () => {
    const value = fc.letrec((tie) => ({
      any: fc.oneof(
        { depthSize: 'small', withCrossShrink: true },
        tricky,
        fc.double({ noNaN: true, noDefaultInfinity: true }),
        fc.boolean(),
        fc.constant(null),
        fc.constant(marker),
        fc.array(tie('any'), { maxLength: 4 }),
        fc.dictionary(tricky, tie('any'), { maxKeys: 4 }),
      ),
    })).any
    fc.assert(
      fc.property(value, (value) => {
        const text = JSON.stringify([value]).replaceAll(`"${marker}"`, '1.00000000000000000001')
        const expected: string[][] = []
        const walk = (each: unknown, path: string[]): void => {
          if (each === marker) expected.push(path)
          else if (typeof each === 'object' && each !== null)
            for (const [key, inner] of Object.entries(each)) walk(inner, [...path, key])
        }
        // JSON.parse moves keys that are array indexes to the front, so the value is parsed here,
        // too.
        walk(JSON.parse(JSON.stringify([value])), [])
        expect(lossesIn(text, 1000).inexact.map(String).sort()).toEqual(expected.map(String).sort())
      }),
    )
  })

  it('stops at as many as are wanted, and takes a mebibyte', () => {
    expect(lossesIn(`[${Array(50).fill('9007199254740993').join(',')}]`, 3).inexact).toEqual([['0'], ['1'], ['2']])
    // Takes milliseconds. A quadratic algorithm would take minutes and exceed the timeout.
    for (const text of [
      `[${Array(250_000).fill('1.5').join(',')}]`,
      `["${'\\\\'.repeat(500_000)}"]`,
      `[1${'0'.repeat(1_000_000)}1]`,
      `[0.${'0'.repeat(1_000_000)}1]`,
    ])
      lossesIn(text, 100)
  })

  it.each([
    ['{"a":1,"a":2}', ['a']],
    ['{"a":1,"\\u0061":1}', ['a']],
    ['{"a":[{"b":1},{"b":1,"c":{"d":1,"d":2}}]}', ['a.1.c.d']],
    ['{"a":{"a":1},"b":{"a":1},"c":"a","d":["a","a"]}', []],
    ['{"__proto__":1,"__proto__":2}', ['__proto__']],
    ['{"a\\\\":1,"a":2,"b":"\\"","":1}', []],
  ])('finds the keys that an object has twice: %s', (text, expected) => {
    expect(lossesIn(text, 100).repeated.map((path) => path.join('.'))).toEqual(expected)
  })
})

describe('numberIn', () => {
  it.each([
    ['12', 12, 12],
    [' 5', 5, 5],
    ['-3', -3, -3],
    ['0', 0, 0],
    ['1.5', undefined, 1.5],
    ['1.23456', undefined, 1.23456],
    ['0.1234567890123456789', undefined, undefined],
    ...[
      '',
      ' ',
      '007',
      '+1',
      '1e3',
      '0x10',
      '1,5',
      '1.',
      '.5',
      '1 000',
      '٣',
      'NaN',
      'Infinity',
      '12345678901234567',
    ].map((text): [string, undefined, undefined] => [text, undefined, undefined]),
  ])('reads %j as the whole number %j and the amount %j', (text, whole, amount) => {
    expect([numberIn(text, { isWhole: true }), numberIn(text, { isWhole: false })]).toEqual([whole, amount])
  })
})
