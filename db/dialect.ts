// What an engine must offer so that migrations and slices need no SQL of their own engine. One file beside this one
// per engine implements it; whatever every engine says alike (Kysely, `on conflict`) does not belong here.

import type { AliasedRawBuilder, Expression, Kysely, RawBuilder, SelectQueryBuilder, SqlBool } from 'kysely'

export type ColumnKind = 'id' | 'integer' | 'money' | 'flag' | 'text' | 'date' | 'timestamp' | 'json'

export interface Relations {
  foreignKeys: ForeignKey[]
  /** Unique indexes over whole tables, and primary keys. */
  uniqueKeys: { table: string; columns: string[]; isPrimary: boolean }[]
  columns: ReadonlyMap<string, ReadonlySet<string>>
}

export interface ForeignKey {
  table: string
  column: string
  /** Its `id` is what the column names. */
  parent: string
  onDelete: 'cascade' | 'set null' | 'restrict'
  isNullable: boolean
}

/**
 * Why the data cannot be read or written at the moment, whoever asks: another connection holds it; the disk is full; it may not be
 * written; the disk does not do what it is told; what is there is no longer a whole database; a change was made, and the disk did not
 * confirm it; the files are not where they were opened.
 */
export type StorageFault = 'busy' | 'full' | 'readonly' | 'failing' | 'damaged' | 'uncertain' | 'lost'

// biome-ignore lint/suspicious/noExplicitAny: whatever is selected of whatever tables
type AnyRows = SelectQueryBuilder<any, any, any>

/** Rows look the same on every engine: flags are 0/1, JSON is its text, timestamps are ISO text, money is a number. */
export interface Dialect {
  readonly name: 'sqlite' | 'postgres'
  /** How many parameters a statement can have. */
  readonly maxParameters: number
  /** Whether an insertion tells the id of its row without being asked to return it, which takes longer. */
  readonly returnsInsertId: boolean

  /** The type of a column in `create table`; for `id` the whole definition of the generated primary key. */
  columnType(kind: ColumnKind): string
  /** What the engine's type does not already guarantee, as a CHECK on the quoted column. */
  columnCheck(kind: ColumnKind, column: string): string | null
  flagLiteral(value: boolean): string
  /** Whether nulls sort below every value: first upwards, last downwards. */
  readonly nullsAreLow: boolean
  /** Ends every `create table`. */
  readonly tableOptions: string

  /** The case-insensitive form of a text expression or column, equal to `caseFold` in TypeScript. */
  fold(text: Expression<string | null> | string): RawBuilder<string>
  /**
   * Whether contact points `[{value, label}]` in a JSON column, or at a path in it, have a value that equals or contains the
   * needle, folded; with `phone`, one whose digits are the needle; with `first`, whether the first of them
   * contains it.
   */
  jsonPointMatches(
    column: string,
    mode: 'equals' | 'contains' | 'first' | 'phone',
    needle: string,
    path?: string,
  ): RawBuilder<SqlBool>
  /** A value inside a JSON column as text, by dotted path: `jsonText('organizations.address', 'city')`. */
  jsonText(column: string, path: string): RawBuilder<string | null>
  /** A whole number inside a JSON column, by dotted path; of true and false 1 and 0. */
  jsonNumber(column: string, path: string): RawBuilder<number | null>
  /** Whether the JSON list at the dotted path holds any of the numbers. */
  jsonHolds(column: string, path: string, numbers: readonly number[]): RawBuilder<SqlBool>
  /** A JSON column without one key of its object. */
  jsonWithout(column: string, key: string): RawBuilder<string>

  /**
   * The rows of a query that names its columns, in their order: the JSON text of a list of objects, whose values are told as those of
   * rows are.
   */
  jsonRows(rows: AnyRows): RawBuilder<string>

  /**
   * One row per text of the array that a JSON column holds, or holds under a key, to be joined: its place, from 0, as `key`, and
   * `value`.
   */
  jsonTexts<A extends string>(
    column: string,
    alias: A,
    key?: string,
  ): AliasedRawBuilder<{ key: number; value: string }, A>

  isUniqueViolation(error: unknown): boolean
  isForeignKeyViolation(error: unknown): boolean
  /** Null for what trying again later does not mend. */
  storageFault(error: unknown): StorageFault | null

  readonly fullText: FullText

  /** What the engine finds wrong with its own file and with foreign keys, in sentences; for `accord doctor`. */
  integrityProblems(db: Kysely<unknown>): Promise<string[]>

  /**
   * Reads a state of one moment off the event loop, and holds no lock that writes wait for. `work` runs its statements one after another;
   * it can make temporary tables, which are gone afterwards.
   */
  readInThread<Tables, T>(db: Kysely<Tables>, work: (snapshot: Kysely<Tables>) => Promise<T>): Promise<T>

  /** Refreshes the statistics of the query planner. */
  updateStatistics<Tables>(db: Kysely<Tables>): Promise<void>
  /** Commits a write that changes nothing, down to the disk. Waits for no other connection, and rejects when it cannot. */
  tryWrite<Tables>(db: Kysely<Tables>): Promise<void>
  hasTables(db: Kysely<unknown>): Promise<boolean>
  /** Foreign keys, unique keys and columns of all tables, as they are after the migrations. */
  relations(db: Kysely<unknown>): Promise<Relations>
  readonly copies: Copies
}

/** Copies of a whole database, and what has to be known to make and to check them. */
export interface Copies {
  /** Bytes that a copy takes at most. */
  sizeOf(db: Kysely<unknown>): Promise<number>
  /** Bytes of the log beside the database, which the engine is to keep small. */
  walBytes(url: string): number
  /** Writes all of it as it is at one moment into a new file, while others read and write. It is on disk when it answers. */
  copyTo(db: Kysely<unknown>, path: string): Promise<void>
  /** Every table with rows of ours, none that the engine keeps for itself; columns by name, the key in its order. */
  tables(db: Kysely<unknown>): Promise<{ name: string; columns: string[]; key: string[] }[]>
  /** Copies the database aside before migrations touch it and answers where to; null where a copy is not ours to make. */
  copyBeforeMigration(db: Kysely<unknown>, url: string, stamp: string): Promise<string | null>
}

/** Ends a text that was cut: an index must not miss what it held. */
export const truncationMark = '\u0001'.repeat(3)

/** Full text over `title` and `body` of a table with `id` and `entity_type`, kept in step with it by the engine itself. */
export interface FullText {
  /** Begins with what the table holds already. */
  create(db: Kysely<unknown>, table: string): Promise<void>
  drop(db: Kysely<unknown>, table: string): Promise<void>
  /** Makes it again beside the present one, in transactions as short as the caller likes. */
  readonly rebuild: IndexRebuild
  /** A subquery of the hits, best first and of equals the last one written. Null when nothing that was asked is a word. */
  hits(table: string, question: FullTextQuestion): RawBuilder<FullTextHit> | null
  /**
   * A subquery of `entity_id` of rows of a type in whose texts each of the folded pieces may occur, within words as well: of those that
   * have them all none is missing. Null when the index knows too little of the pieces.
   */
  candidates(table: string, type: string, pieces: readonly string[]): RawBuilder<number> | null
  /**
   * What the engine finds when it compares its words with the table; null when they agree. To be asked within `readApart`. Rejects when
   * they cannot be compared at the moment.
   */
  findMismatch(db: Kysely<unknown>, table: string): Promise<string | null>
}

/** Each step but `discard` runs in a transaction of its own. The present index answers until `finish`. Rows written meanwhile index themselves. */
export interface IndexRebuild {
  /** The indexes of a table, to be renewed one after another. */
  indexes(table: string): readonly string[]
  begin(db: Kysely<unknown>, table: string, index: string): Promise<void>
  /** Copies the next of the rows there were at `begin`; false once the last is copied. */
  copyRows(db: Kysely<unknown>, table: string, index: string, count: number): Promise<boolean>
  /** Puts together a little of what was taken up, and changes at least two rows unless nothing is left to do. */
  merge(index: string): string
  /** Replaces the old index by the new one. To be called once `take` has answered false. */
  finish(db: Kysely<unknown>, table: string, index: string): Promise<void>
  /** Whether there is something to discard: a rebuild runs, or was cut off. */
  hasLeftovers(db: Kysely<unknown>, table: string): Promise<boolean>
  /** Removes replaced indexes, and what a rebuild that was cut off has left. Not in a transaction: it has short ones of its own. */
  discard(db: Kysely<unknown>, table: string): Promise<void>
}

export interface FullTextQuestion {
  /** Each must begin some word of the row, without regard to case and diacritics. */
  words: readonly string[]
  types: readonly string[]
  /** A subquery of the ids that count; left out, all do. */
  among?: Expression<unknown>
  limit: number
}

export interface FullTextHit {
  id: number
  /** Grows with the match, most of all in the title. */
  score: number
}
