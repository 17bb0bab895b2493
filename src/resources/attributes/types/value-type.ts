// The interface of an attribute type: schemas of its values, how they are stored and compared, and
// how lists filter and sort by them. Each type is an object in a file of this folder.
import { type RawBuilder, type SqlBool, sql } from 'kysely'
import type { Dialect } from '../../../../db/dialect.ts'
import type { OpenSchema } from '../../../contract/input/open-schema.ts'
import type { Attribute } from '../attribute-set.ts'

/** Where a query finds the values of an attribute. */
export interface Place {
  dialect: Dialect
  /** The JSON column, qualified with its table where the query has several. */
  column: string
  code: string
}

export interface StoreContext {
  /** The stored value; null for none. */
  before: unknown
  isRequired: boolean
  validation: Attribute['validation']
  /** Reports an error at a path below the value. */
  refuse: (at: string, sentence: string) => void
}

export interface UniqueKey {
  key: string
  /** The path within the value. */
  at: string
}

export interface ValueType {
  /** Schemas of a value in bodies and in replies, without null. */
  input: (attribute: Attribute) => OpenSchema
  output: (attribute: Attribute) => OpenSchema
  /** A value for the examples of the contract; null when there can be none. */
  example: (attribute: Attribute) => unknown
  /** Converts a valid value to its stored form; null clears it. Default: stored as sent. */
  store?: (value: unknown, storing: StoreContext) => unknown
  /** Converts a stored value to its reply form. Default: shown as stored. */
  show?: (stored: unknown) => unknown
  /** The keys by which a stored value must be unique. */
  keys?: (stored: unknown) => UniqueKey[]
  /** Parses one filter value; undefined when it is invalid. */
  read?: (text: string, zone: string) => string | number | undefined
  /** What a filter accepts, as the end of a sentence. */
  takes?: string
  matches?: (place: Place, values: readonly (string | number)[]) => RawBuilder<SqlBool>
  /** SQL for one comparable value per row. */
  sorts?: (place: Place, attribute: Attribute) => RawBuilder<unknown>
  /** The expression in `matches` that an index can serve. */
  indexed?: (place: Place) => RawBuilder<unknown>
}

export const numberAt = ({ dialect, column, code }: Place): RawBuilder<number | null> =>
  dialect.jsonNumber(column, code)
export const textAt = ({ dialect, column, code }: Place): RawBuilder<string | null> => dialect.jsonText(column, code)
export const foldedAt = (place: Place): RawBuilder<string> => place.dialect.fold(textAt(place))

export const anyOf =
  (at: (place: Place) => RawBuilder<unknown>) =>
  (place: Place, values: readonly (string | number)[]): RawBuilder<SqlBool> =>
    sql<SqlBool>`(${at(place)}) in (${sql.join(values)})`

export const keyOfValue = (stored: unknown): UniqueKey[] => [{ key: String(stored), at: '' }]

export const idSchema: OpenSchema = { type: 'integer', minimum: 1, maximum: Number.MAX_SAFE_INTEGER }
export const refTo = (name: string): OpenSchema => ({ $ref: `#/components/schemas/${name}` })

/** The schema, extended to accept null. */
export function nullableSchema(schema: OpenSchema): OpenSchema {
  if (schema.type === undefined) return { anyOf: [...(schema.anyOf ?? [schema]), { type: 'null' }] }
  const { enum: choices } = schema as { enum?: unknown[] }
  return { ...schema, type: [schema.type, 'null'].flat(), ...(choices && { enum: [...choices, null] }) }
}
