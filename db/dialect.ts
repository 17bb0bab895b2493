// The interface of a database engine. With it, migrations and slices need no SQL of one engine. SQL
// that is the same on every engine, such as `on conflict`, does not belong here.

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
  /** The table whose `id` the column holds. */
  parent: string
  onDelete: 'cascade' | 'set null' | 'restrict'
  isNullable: boolean
}

/**
 * Why the data cannot be read or written at the moment, for any caller.
 * - `busy`: another connection has the lock.
 * - `full`, `readonly`, `failing`: the disk is full, cannot be written, or fails.
 * - `damaged`: the file is not a whole database.
 * - `uncertain`: the disk did not confirm a commit.
 * - `lost`: the database file is no longer where it was opened.
 * - `unreachable`: the database server does not answer.
 */
export type StorageFault = 'busy' | 'full' | 'readonly' | 'failing' | 'damaged' | 'uncertain' | 'lost' | 'unreachable'

// biome-ignore lint/suspicious/noExplicitAny: any selection from any tables
type AnyRows = SelectQueryBuilder<any, any, any>

/**
 * Rows look the same on every engine: flags are 0/1, JSON is text, timestamps are ISO text, money
 * is a number.
 */
export interface Dialect {
  readonly name: 'sqlite' | 'postgres'
  /** Maximum number of parameters in a statement. */
  readonly maxParameters: number
  /** Whether an insert reports the id of its row without `returning`, which takes longer. */
  readonly returnsInsertId: boolean

  /**
   * The column type in `create table`; for `id` the whole definition of the generated primary key.
   */
  columnType(kind: ColumnKind): string
  /**
   * A CHECK on the quoted column for rules that the engine's type does not enforce; null when there
   * are none.
   */
  columnCheck(kind: ColumnKind, column: string): string | null
  flagLiteral(value: boolean): string
  /** Whether nulls sort below every value. */
  readonly nullsAreLow: boolean
  /** Text at the end of every `create table`. */
  readonly tableOptions: string
  /** Statements that run before the first migration, such as those that create SQL functions. */
  readonly setUpStatements: readonly string[]

  /**
   * The case-insensitive form of a text expression or column, equal to `caseFold` in TypeScript.
   */
  fold(text: Expression<string | null> | string): RawBuilder<string>
  /**
   * Whether a contact point `[{value, label}]` in a JSON column, or at a path in it, matches the
   * needle. `equals` and `contains` compare case-folded values, `phone` compares digits, and
   * `first` looks only into the first contact point.
   */
  jsonPointMatches(
    column: string,
    mode: 'equals' | 'contains' | 'first' | 'phone',
    needle: string,
    path?: string,
  ): RawBuilder<SqlBool>
  /** A value inside a JSON column as text, by dotted path: `jsonText('table.column', 'city')`. */
  jsonText(column: string, path: string): RawBuilder<string | null>
  /** A whole number inside a JSON column, by dotted path. True is 1 and false is 0. */
  jsonNumber(column: string, path: string): RawBuilder<number | null>
  /** Whether the JSON list at the dotted path contains any of the numbers. */
  jsonHolds(column: string, path: string, numbers: readonly number[]): RawBuilder<SqlBool>
  /** A JSON column without one key of its object. */
  jsonWithout(column: string, key: string): RawBuilder<string>

  /**
   * The rows of a query with named columns as the JSON text of a list of objects, in the query's
   * order. `timestamps` names the columns of that kind.
   */
  jsonRows(rows: AnyRows, timestamps?: readonly string[]): RawBuilder<string>

  /**
   * A table to join, with one row for each text of the array in a JSON column, or under a key of
   * it. `key` is the index from 0.
   */
  jsonTexts<A extends string>(
    column: string,
    alias: A,
    key?: string,
  ): AliasedRawBuilder<{ key: number; value: string }, A>

  /** The first seven characters, `YYYY-MM`, of a column of the kind `date`. */
  monthOf(column: string): RawBuilder<string | null>
  /**
   * Locks the selected rows until the end of the transaction and skips rows that other transactions
   * have locked. Unchanged where only one transaction can write.
   */
  skippingLocked<Query extends AnyRows>(query: Query): Query

  isUniqueViolation(error: unknown): boolean
  isForeignKeyViolation(error: unknown): boolean
  /** Null for errors that a later retry does not fix. */
  storageFault(error: unknown): StorageFault | null

  readonly fullText: FullText

  /** The problems of the file and of foreign keys, in sentences; for `accord doctor`. */
  integrityProblems(db: Kysely<unknown>): Promise<string[]>

  /**
   * Runs `work` over a snapshot, off the event loop and without a lock that writes wait for. Its
   * statements run one after another. It can create temporary tables, which are gone afterwards.
   */
  readInThread<Tables, T>(db: Kysely<Tables>, work: (snapshot: Kysely<Tables>) => Promise<T>): Promise<T>

  /** Refreshes the statistics of the query planner. */
  updateStatistics<Tables>(db: Kysely<Tables>): Promise<void>
  /**
   * Commits and syncs a write that changes nothing. Rejects at once when another connection has the
   * lock.
   */
  tryWrite<Tables>(db: Kysely<Tables>): Promise<void>
  hasTables(db: Kysely<unknown>): Promise<boolean>
  /** To be called after rows with given ids were inserted, so that the next generated id is free. */
  resetSequences(db: Kysely<unknown>): Promise<void>
  /** Foreign keys, unique keys and columns of all tables. */
  relations(db: Kysely<unknown>): Promise<Relations>
  readonly copies: Copies
}

/** Makes copies of a whole database, and reads the facts that a check of them needs. */
export interface Copies {
  /** Maximum size of a copy in bytes. */
  sizeOf(db: Kysely<unknown>): Promise<number>
  /** Bytes of the log beside the database. */
  walBytes(url: string): number
  /**
   * Writes a snapshot into a new file while others read and write. Resolves once the file is
   * synced.
   */
  copyTo(db: Kysely<unknown>, path: string): Promise<void>
  /**
   * Every table of the program, without the engine's own; columns sorted by name, the key in its
   * order.
   */
  tables(db: Kysely<unknown>): Promise<{ name: string; columns: string[]; key: string[] }[]>
  /**
   * Copies the database before migrations change it. Returns the path of the copy; null for a
   * database in memory.
   */
  copyBeforeMigration(db: Kysely<unknown>, url: string, stamp: string): Promise<string | null>
}

/** Marks the end of a truncated text, so that a trigram search always checks its record. */
export const truncationMark = '\u0001'.repeat(3)

/**
 * Full text over `title` and `body` of a table with `id` and `entity_type`. Triggers keep it in
 * step with the table.
 */
export interface FullText {
  /** Creates the indexes and fills them from the table. */
  create(db: Kysely<unknown>, table: string): Promise<void>
  drop(db: Kysely<unknown>, table: string): Promise<void>
  /** Builds new indexes beside the present ones, in short transactions. */
  readonly rebuild: IndexRebuild
  /**
   * A subquery of the hits: best first, and among equals the newest first. Null when the question
   * has no word.
   */
  hits(table: string, question: FullTextQuestion): RawBuilder<FullTextHit> | null
  /**
   * A subquery of the `entity_id`s of a type whose texts may contain each of the case-folded parts,
   * also inside words. It can hold false hits but misses none. Null when every part is shorter than
   * three characters.
   */
  candidates(table: string, type: string, pieces: readonly string[]): RawBuilder<number> | null
  /**
   * Compares the indexes with the table. Returns the difference in words, or null when they agree.
   * To be called inside `readInThread`. Rejects when they cannot be compared at the moment.
   */
  findMismatch(db: Kysely<unknown>, table: string): Promise<string | null>
}

/**
 * Each step except `discard` runs in a transaction of its own. The present index answers queries
 * until `finish`. Triggers index the rows that are written in the meantime.
 */
export interface IndexRebuild {
  /** The indexes of a table, to be rebuilt one after another. */
  indexes(table: string): readonly string[]
  begin(db: Kysely<unknown>, table: string, index: string): Promise<void>
  /** Copies the next rows among those that existed at `begin`. Returns false after the last one. */
  copyRows(db: Kysely<unknown>, table: string, index: string, count: number): Promise<boolean>
  /**
   * A statement that merges a few segments. It changes at least two rows unless nothing is left to
   * merge.
   */
  merge(index: string): string
  /** Replaces the old index by the new one. To be called once `copyRows` has returned false. */
  finish(db: Kysely<unknown>, table: string, index: string): Promise<void>
  /** Whether a rebuild is running, or was killed and left its tables and triggers. */
  hasLeftovers(db: Kysely<unknown>, table: string): Promise<boolean>
  /**
   * Removes replaced indexes and the leftovers of a killed rebuild. It runs short transactions of
   * its own.
   */
  discard(db: Kysely<unknown>, table: string): Promise<void>
}

export interface FullTextQuestion {
  /** Each must be the beginning of a word of the row. Case and diacritics are ignored. */
  words: readonly string[]
  types: readonly string[]
  /** A subquery of the ids that can be hits; all can when it is left out. */
  among?: Expression<unknown>
  limit: number
}

export interface FullTextHit {
  id: number
  /** Higher is better; a match in the title weighs most. */
  score: number
}
