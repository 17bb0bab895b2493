// The types `select`, `multiselect`, `checkbox` and `lookup`. A value is an id, or a list of ids,
// of options or records. validate-values.ts checks that the records exist and are visible.
import { type RawBuilder, sql } from 'kysely'
import type { OpenSchema } from '../../../contract/input/open-schema.ts'
import type { Attribute } from '../attribute-set.ts'
import { labelSortKey } from '../lookups.ts'
import { anyOf, idSchema, keyOfValue, numberAt, type Place, type ValueType } from './value-type.ts'

const one = ({ lookup, options }: Attribute): OpenSchema =>
  lookup === null && options.length > 0 ? { type: 'integer', enum: options.map((option) => option.id) } : idSchema

const several = (attribute: Attribute): OpenSchema => ({
  type: 'array',
  uniqueItems: true,
  // An attribute without options accepts only the empty list.
  maxItems: attribute.lookup === null && attribute.options.length === 0 ? 0 : 500,
  items: one(attribute),
})

const firstChoice = ({ lookup, options }: Attribute): number | null => (lookup === null ? (options[0]?.id ?? null) : 1)

function read(text: string): number | undefined {
  const number = Number(text)
  return /^\d{1,16}$/.test(text) && Number.isSafeInteger(number) ? number : undefined
}

/** Sorts options by their sort order and records by their label. */
const inOrder = (place: Place, { lookup }: Attribute): RawBuilder<unknown> =>
  lookup === null
    ? sql`(select chosen.sort_order from attribute_options as chosen where chosen.id = ${numberAt(place)})`
    : labelSortKey(lookup, numberAt(place))

const single: ValueType = {
  input: (attribute) =>
    attribute.lookup === null && attribute.options.length === 0 ? { ...idSchema, maximum: 0 } : one(attribute),
  output: one,
  example: firstChoice,
  read,
  takes: 'ids',
  matches: anyOf(numberAt),
  indexed: numberAt,
}

export const select: ValueType = { ...single, sorts: inOrder }
export const lookup: ValueType = { ...single, keys: keyOfValue }

export const multiselect: ValueType = {
  input: several,
  output: (attribute) => ({ type: 'array', items: one(attribute) }),
  example: (attribute) => [firstChoice(attribute)].filter((each) => each !== null),
  read,
  takes: 'ids',
  matches: ({ dialect, column, code }, values) => dialect.jsonHolds(column, code, values as number[]),
}
export const checkbox = multiselect
