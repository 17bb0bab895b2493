// The types of merges: the rules that a definition has, and the functions that a resource has.
import type { RawBuilder, SqlBool } from 'kysely'
import type { Context } from '../context.ts'
import type { UnmergeConflict } from '../history/moved-references.ts'
import type { MatchKey, MatchKind } from '../values/match-keys.ts'

/** How records of a type are compared and merged. */
export interface Merging<Row, Reply> {
  /** Returns the keys by which possible duplicates of a record are found. */
  matchKeys: (reply: Reply) => MatchKey[]
  /** The field of each kind of key, for warnings. */
  matchedFields: Partial<Record<MatchKind, string>>
  /** Returns an SQL condition that two records with the same key may be the same. */
  isMatch: (pair: Record<'kind' | 'value' | 'own' | 'other', RawBuilder<unknown>>) => RawBuilder<SqlBool>
  /** The columns with lists that a merge unites, and the key of an entry. */
  lists: Readonly<Record<string, (entry: { value: string }) => string>>
  /** The columns that go with another column. */
  follows: Readonly<Record<string, string>>
  /** The tables whose rows follow from the row of the record. */
  derived: readonly string[]
  /** Recomputes these rows, and the unique values of the record. */
  refresh: (ctx: Context, row: Row) => Promise<void>
  /** Moves the references in stored values from one record to another. */
  moveValues?: (ctx: Context, from: number, to: number) => Promise<MovedValue[]>
  /** Moves the files in the values that another record has got, and returns their ids. */
  moveFiles?: (ctx: Context, way: { from: number; to: number; ids: readonly number[] }) => Promise<number[]>
  /** Sets values as they were before, except those that were changed since. */
  moveValuesBack?: (ctx: Context, moved: readonly MovedValue[]) => Promise<UnmergeConflict[]>
}

/** The value of a custom attribute that named a merged record. */
export interface MovedValue {
  entity: string
  id: number
  code: string
  before: unknown
  after: unknown
}

export interface Merges {
  /** Returns the id of the record into which a record was merged; null for another record. */
  into(ctx: Context, id: number): Promise<number | null>
  /** Returns the ids of the records that were merged into a record. */
  of(ctx: Context, id: number): Promise<number[]>
  /** Recomputes the keys of records whose fields were changed without an event. */
  refreshKeys(ctx: Context, ids: readonly number[]): Promise<void>
}
