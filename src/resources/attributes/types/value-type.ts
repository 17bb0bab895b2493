// The interface of an attribute type. A type defines the schemas of its values, and how values are
// stored, compared, filtered and sorted. Each type is an object in a file of this folder.
import { type RawBuilder, type SqlBool, sql } from 'kysely'
import type { Dialect } from '../../../../db/dialect.ts'
import type { OpenSchema } from '../../../contract/input/open-schema.ts'
import type { Attribute } from '../attribute-set.ts'

/** The location of an attribute's values in a query. */
export interface Place {
  dialect: Dialect
  /** The JSON column. Its name includes the table when the query reads several tables. */
  column: string
  code: string
}

export interface StoreContext {
  /** The stored value; null when there is none. */
  before: unknown
  isRequired: boolean
  validation: Attribute['validation']
  /** Reports an error at a path below the value. */
  refuse: (at: string, sentence: string) => void
}

export interface UniqueKey {
  key: string
  /** The path, within the value, of the part that has this key; '' for the whole value. */
  at: string
}

export interface ValueType {
  /** The schemas of a value in bodies (`input`) and in replies (`output`), both without null. */
  input: (attribute: Attribute) => OpenSchema
  output: (attribute: Attribute) => OpenSchema
  /** Returns a value for the examples of the contract, or null when no value is possible. */
  example: (attribute: Attribute) => unknown
  /**
   * Converts a valid value to its stored form; null clears the value. Without this function, values
   * are stored as sent.
   */
  store?: (value: unknown, storing: StoreContext) => unknown
  /**
   * Converts a stored value to its reply form. Without this function, values are shown as stored.
   */
  show?: (stored: unknown) => unknown
  /**
   * Returns the keys that must be unique among all records. Without this function, the attribute
   * cannot be unique.
   */
  keys?: (stored: unknown) => UniqueKey[]
  /** Parses one filter value. Returns undefined for an invalid one. */
  read?: (text: string, zone: string) => string | number | undefined
  /**
   * Names the values that a filter accepts. The text completes an error message such as `Must be
   * amounts`.
   */
  takes?: string
  matches?: (place: Place, values: readonly (string | number)[]) => RawBuilder<SqlBool>
  /** Whether the filters `gt`, `gte`, `lt` and `lte` compare values, by `sorts`. */
  isOrdered?: true
  /** Returns an SQL expression with one sortable value per record. */
  sorts?: (place: Place, attribute: Attribute) => RawBuilder<unknown>
  /**
   * Returns the SQL expression to index. `matches` must contain the same expression to use the
   * index.
   */
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

/** Returns the schema, extended to accept null. */
export function nullableSchema(schema: OpenSchema): OpenSchema {
  if (schema.type === undefined) return { anyOf: [...(schema.anyOf ?? [schema]), { type: 'null' }] }
  const { enum: choices } = schema as { enum?: unknown[] }
  return { ...schema, type: [schema.type, 'null'].flat(), ...(choices && { enum: [...choices, null] }) }
}
