// Amounts are exact in input and output, because no floats are added or multiplied.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isDecimal4 } from '../../../src/contract/input/formats.ts'
import { dividedTo, fromScaled, fromSum, smallestUnit, toScaled } from '../../../src/kernel/values/money.ts'

const scaled = fc.integer({ min: 0, max: 999_999_999_999_999 })

describe('toScaled and fromScaled', () => {
  it.each([
    [0, 0],
    [0.1, 1000],
    [0.0001, 1],
    [4821.5, 48_215_000],
    [1.005, 10_050],
    [-12.34, -123_400],
    [99_999_999_999.9999, 999_999_999_999_999],
  ])('%d is %d ten-thousandths', (value, stored) => {
    expect(toScaled(value)).toBe(stored)
    expect(fromScaled(stored)).toBe(value)
  })

  it('gives back every amount that can be stored, to the last digit', () => {
    fc.assert(
      fc.property(scaled, fc.boolean(), (amount, isNegative) => {
        const stored = isNegative && amount !== 0 ? -amount : amount
        const value = fromScaled(stored)
        expect(isDecimal4(value)).toBe(true)
        expect(toScaled(JSON.parse(JSON.stringify(value)) as number)).toBe(stored)
      }),
      { seed: 1, numRuns: 500 },
    )
  })

  it('refuses what has more than four decimals or no decimal form', () => {
    for (const value of [0.00001, 1.23456, Number.NaN, Number.POSITIVE_INFINITY, 1e21, 1e-7]) {
      expect(() => toScaled(value)).toThrow(RangeError)
    }
  })
})

describe('smallestUnit and dividedTo', () => {
  it.each([
    ['USD', 12_345n, 12_300n],
    ['USD', 12_350n, 12_400n],
    ['JPY', 15_000n, 20_000n],
    ['JPY', -15_000n, -20_000n],
    ['KWD', 12_345n, 12_350n],
    ['CLF', 12_345n, 12_345n],
  ])('in %s, %d ten-thousandths are printed as %d', (currency, amount, printed) => {
    expect(dividedTo(smallestUnit(currency), amount, 1n)).toBe(printed)
  })
})

describe('fromSum', () => {
  it('adds whole units and parts without rounding', () => {
    fc.assert(
      fc.property(fc.array(scaled, { maxLength: 40 }), (amounts) => {
        const units = amounts.reduce((sum, each) => sum + BigInt(Math.trunc(each / 10_000)), 0n)
        const parts = amounts.reduce((sum, each) => sum + BigInt(each % 10_000), 0n)
        const total = amounts.reduce((sum, each) => sum + BigInt(each), 0n)
        const text = `${total / 10_000n}.${String(total % 10_000n).padStart(4, '0')}`
        expect(fromSum(`${units}|${parts}`)).toBe(Number(text))
      }),
      { seed: 2, numRuns: 200 },
    )
  })
})
