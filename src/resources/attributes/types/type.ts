// What a type of attributes says of itself: the schemas of its values, how they are stored and compared, how lists are
// filtered and sorted by them. One object per type in the files beside this one; types.ts has them by name.
import { type RawBuilder, type SqlBool, sql } from 'kysely'
import type { Dialect } from '../../../../db/dialect.ts'
import type { OpenSchema } from '../../../contract/input/open-schema.ts'
import type { Attribute } from '../set.ts'

/** Where values of an attribute are in a query. */
export interface Place {
  dialect: Dialect
  /** The JSON column, with its table where there are several. */
  column: string
  code: string
}

export interface Storing {
  /** What is stored now; null for nothing. */
  before: unknown
  isRequired: boolean
  validation: Attribute['validation']
  /** Tells of something wrong at a path below the value. */
  refuse: (at: string, sentence: string) => void
}

export interface Key {
  key: string
  /** Where in the value it is. */
  at: string
}

export interface ValueType {
  /** Schemas of a value as it is written and shown, without null. */
  input: (attribute: Attribute) => OpenSchema
  output: (attribute: Attribute) => OpenSchema
  /** A value as it is shown, for the examples of the contract; null when there can be none. */
  example: (attribute: Attribute) => unknown
  /** What is kept of a value that fits the schema; null for nothing. Without it, the value itself. */
  store?: (value: unknown, storing: Storing) => unknown
  /** What is shown of a stored value. Without it, the value itself. */
  show?: (stored: unknown) => unknown
  /** The forms in which a stored value must be unique. */
  keys?: (stored: unknown) => Key[]
  /** One value of a filter in the form values are compared in; undefined when it is none. */
  read?: (text: string, zone: string) => string | number | undefined
  /** What a filter takes, as the end of a sentence. */
  takes?: string
  matches?: (place: Place, values: readonly (string | number)[]) => RawBuilder<SqlBool>
  /** One comparable value a row. */
  sorts?: (place: Place, attribute: Attribute) => RawBuilder<unknown>
  /** The expression that `matches` looks at, when an index of it helps. */
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

export const same = (stored: unknown): Key[] => [{ key: String(stored), at: '' }]

export const id: OpenSchema = { type: 'integer', minimum: 1, maximum: Number.MAX_SAFE_INTEGER }
export const component = (name: string): OpenSchema => ({ $ref: `#/components/schemas/${name}` })

/** The schema, and null. */
export function nullable(schema: OpenSchema): OpenSchema {
  if (schema.type === undefined) return { anyOf: [...(schema.anyOf ?? [schema]), { type: 'null' }] }
  const { enum: choices } = schema as { enum?: unknown[] }
  return { ...schema, type: [schema.type, 'null'].flat(), ...(choices && { enum: [...choices, null] }) }
}
