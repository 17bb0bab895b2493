// What an engine must offer so that migrations and slices need no SQL of their own engine. One file beside this one
// per engine implements it; whatever every engine says alike (Kysely, `on conflict`) does not belong here.

import type { Expression, Kysely, RawBuilder, SqlBool } from 'kysely'

export type ColumnKind = 'id' | 'integer' | 'money' | 'flag' | 'text' | 'date' | 'timestamp' | 'json'

/** Rows look the same on every engine: flags are 0/1, JSON is its text, timestamps are ISO text, money is a number. */
export interface Dialect {
  readonly name: 'sqlite' | 'postgres'

  /** The type of a column in `create table`; for `id` the whole definition of the generated primary key. */
  columnType(kind: ColumnKind): string
  /** What the engine's type does not already guarantee, as a CHECK on the quoted column. */
  columnCheck(kind: ColumnKind, column: string): string | null
  flagLiteral(value: boolean): string
  /** Ends every `create table`. */
  readonly tableOptions: string

  /** The case-insensitive form of a text expression or column, equal to `foldText` in TypeScript. */
  fold(text: Expression<string | null> | string): RawBuilder<string>
  /** Whether a JSON column of contact points `[{value, label}]` has a value that equals or contains the needle, folded. */
  jsonPointMatches(column: string, mode: 'equals' | 'contains', needle: string): RawBuilder<SqlBool>
  /** A value inside a JSON column as text, by dotted path: `jsonText('organizations.address', 'city')`. */
  jsonText(column: string, path: string): RawBuilder<string | null>

  isUniqueViolation(error: unknown): boolean
  isForeignKeyViolation(error: unknown): boolean
  /** Another connection holds the database; trying again later may work. */
  isBusy(error: unknown): boolean

  /** What the engine finds wrong with its own file and with foreign keys, in sentences; for `accord doctor`. */
  findings(db: Kysely<unknown>): Promise<string[]>

  hasTables(db: Kysely<unknown>): Promise<boolean>
  /** Copies the database aside before migrations touch it and answers where to; null where a copy is not ours to make. */
  copyAside(db: Kysely<unknown>, url: string, stamp: string): Promise<string | null>
}
