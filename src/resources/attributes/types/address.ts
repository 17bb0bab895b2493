// The type `address`. Address parts that the body omits keep their value, as for built-in
// addresses.
import type { Schema } from '../../../contract/types.ts'
import { mergeAddress, needed } from '../../../kernel/values/address.ts'
import { refTo, type StoreContext, type ValueType } from './value-type.ts'

function store(value: unknown, { before, isRequired, refuse }: StoreContext): unknown {
  const text = mergeAddress(before === null ? null : JSON.stringify(before), value as Schema<'AddressInput'>)
  const merged = typeof text === 'string' ? (JSON.parse(text) as Schema<'Address'>) : null
  if (isRequired && merged !== null)
    for (const part of needed) if (merged[part] === null) refuse(part, 'The field is required.')
  return merged
}

export const address: ValueType = {
  input: () => refTo('AddressInput'),
  output: () => refTo('Address'),
  example: () => ({ address: '12 Analytical Way', country: 'GB', state: null, city: 'London', postcode: 'W1 2AB' }),
  store,
}
