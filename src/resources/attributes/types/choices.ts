// select, multiselect, checkbox and lookup: ids of the attribute's own options, or of records. Whether a record exists and
// can be seen is asked in plan.ts.
import { type RawBuilder, sql } from 'kysely'
import type { OpenSchema } from '../../../contract/input/open-schema.ts'
import { labelKey } from '../lookups.ts'
import type { Attribute } from '../set.ts'
import { anyOf, id, numberAt, type Place, same, type ValueType } from './type.ts'

const one = ({ lookup, options }: Attribute): OpenSchema =>
  lookup === null && options.length > 0 ? { type: 'integer', enum: options.map((option) => option.id) } : id

const several = (attribute: Attribute): OpenSchema => ({
  type: 'array',
  uniqueItems: true,
  // Without options there is nothing to choose.
  maxItems: attribute.lookup === null && attribute.options.length === 0 ? 0 : 500,
  items: one(attribute),
})

const first = ({ lookup, options }: Attribute): number | null => (lookup === null ? (options[0]?.id ?? null) : 1)

function read(text: string): number | undefined {
  const number = Number(text)
  return /^\d{1,16}$/.test(text) && Number.isSafeInteger(number) ? number : undefined
}

/** Options in their order, records by name. */
const inOrder = (place: Place, { lookup }: Attribute): RawBuilder<unknown> =>
  lookup === null
    ? sql`(select chosen.sort_order from attribute_options as chosen where chosen.id = ${numberAt(place)})`
    : labelKey(lookup, numberAt(place))

const single: ValueType = {
  input: (attribute) =>
    attribute.lookup === null && attribute.options.length === 0 ? { ...id, maximum: 0 } : one(attribute),
  output: one,
  example: first,
  read,
  takes: 'ids',
  matches: anyOf(numberAt),
  indexed: numberAt,
}

export const select: ValueType = { ...single, sorts: inOrder }
export const lookup: ValueType = { ...single, keys: same }

export const multiselect: ValueType = {
  input: several,
  output: (attribute) => ({ type: 'array', items: one(attribute) }),
  example: (attribute) => [first(attribute)].filter((each) => each !== null),
  read,
  takes: 'ids',
  matches: ({ dialect, column, code }, values) => dialect.jsonHolds(column, code, values as number[]),
}
export const checkbox = multiselect
