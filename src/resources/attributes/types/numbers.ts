// The types `number`, `price`, which is stored as a scaled integer, and `boolean`.
import { isDecimal4 } from '../../../contract/input/formats.ts'
import { numberIn } from '../../../contract/input/unsafe-numbers.ts'
import { fromScaled, toScaled } from '../../../kernel/values/money.ts'
import { anyOf, keyOfValue, numberAt, type ValueType } from './value-type.ts'

/** The magnitude up to which a double holds 15 digits exactly. */
const maxNumber = 999_999_999_999_999

export const number: ValueType = {
  input: () => ({ type: 'number', format: 'double', minimum: -maxNumber, maximum: maxNumber }),
  output: () => ({ type: 'number', format: 'double' }),
  example: () => 12.5,
  // JSON has a negative zero, which PostgreSQL and SQLite would store in different ways.
  store: (value) => (value === 0 ? 0 : value),
  keys: keyOfValue,
  read: (text) => {
    const found = numberIn(text, { isWhole: false })
    return found !== undefined && Math.abs(found) <= maxNumber ? found : undefined
  },
  takes: 'numbers',
  matches: anyOf(numberAt),
  isOrdered: true,
  sorts: numberAt,
  indexed: numberAt,
}

const maxPrice = 99_999_999_999.9999

function read(text: string): number | undefined {
  const number = numberIn(text, { isWhole: false }) ?? Number.NaN
  return isDecimal4(number) && Math.abs(number) <= maxPrice ? toScaled(number) : undefined
}

export const price: ValueType = {
  input: () => ({ type: 'number', format: 'double', 'x-value': 'money', minimum: 0, maximum: maxPrice }),
  output: () => ({ type: 'number', format: 'double', 'x-value': 'money' }),
  example: () => 1250.5,
  store: (value) => toScaled(value as number),
  show: (stored) => fromScaled(stored as number),
  keys: keyOfValue,
  read,
  takes: 'amounts',
  matches: anyOf(numberAt),
  isOrdered: true,
  sorts: numberAt,
  indexed: numberAt,
}

const flags = new Map([
  ['true', 1],
  ['1', 1],
  ['false', 0],
  ['0', 0],
])

export const boolean: ValueType = {
  input: () => ({ type: 'boolean' }),
  output: () => ({ type: 'boolean' }),
  example: () => true,
  read: (text) => flags.get(text),
  takes: 'true or false',
  matches: anyOf(numberAt),
  sorts: numberAt,
}
