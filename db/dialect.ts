// The interface of a database engine. Migrations and resources use it instead of SQL that only one
// engine understands. SQL that every engine understands, such as `on conflict`, is not part of it.

import type { AliasedRawBuilder, Expression, Kysely, RawBuilder, SelectQueryBuilder, SqlBool } from 'kysely'

export type ColumnKind = 'id' | 'integer' | 'money' | 'flag' | 'text' | 'date' | 'timestamp' | 'json'

export interface Relations {
  foreignKeys: ForeignKey[]
  /** The primary keys, and the unique indexes that cover all rows of a table. */
  uniqueKeys: { table: string; columns: string[]; isPrimary: boolean }[]
  columns: ReadonlyMap<string, ReadonlySet<string>>
}

export interface ForeignKey {
  table: string
  column: string
  /** The table whose `id` the column refers to. */
  parent: string
  onDelete: 'cascade' | 'set null' | 'restrict'
  isNullable: boolean
}

/**
 * A reason why the storage cannot be read or written at the moment.
 * - `busy`: another connection has the lock.
 * - `full`, `readonly`, `failing`: the disk is full, cannot be written, or fails.
 * - `damaged`: the database file is damaged or is not a database.
 * - `uncertain`: the disk or the server did not confirm a commit.
 * - `lost`: the database file was removed or replaced.
 * - `unreachable`: the database server does not answer.
 * - `standby`: the database server is a standby, which only reads.
 * - `filestorage`: the bucket of files is unreachable or returns an error.
 */
export type StorageFault =
  | 'busy'
  | 'full'
  | 'readonly'
  | 'failing'
  | 'damaged'
  | 'uncertain'
  | 'lost'
  | 'unreachable'
  | 'standby'
  | 'filestorage'

// biome-ignore lint/suspicious/noExplicitAny: any selection from any tables
type AnyRows = SelectQueryBuilder<any, any, any>

/**
 * The SQL and the operations that differ between engines. Rows look the same on every engine: flags
 * are 0/1, JSON is text, timestamps are ISO text, money is a number.
 */
export interface Dialect {
  readonly name: 'sqlite' | 'postgres'
  /** The maximum number of parameters in a statement. */
  readonly maxParameters: number
  /**
   * Whether an insert reports the new id without a `returning` clause, which makes the insert
   * slower.
   */
  readonly returnsInsertId: boolean

  /**
   * Returns the column type for `create table`. For `id`, returns the whole definition of the
   * generated primary key.
   */
  columnType(kind: ColumnKind): string
  /**
   * Returns the CHECK condition for the values of this kind, or null when the column type alone
   * rejects invalid values. `column` is the quoted name.
   */
  columnCheck(kind: ColumnKind, column: string): string | null
  flagLiteral(value: boolean): string
  /** Whether nulls sort below every value. */
  readonly nullsAreLow: boolean
  /** Whether a subquery in `from` may refer to the tables before it. */
  readonly hasLateralJoins: boolean
  /** The text that ends every `create table` statement. */
  readonly tableOptions: string
  /** Statements that run before the first migration, such as those that create SQL functions. */
  readonly setUpStatements: readonly string[]

  /**
   * Returns the SQL for the case-insensitive form of a text expression or column. The SQL gives the
   * same result as `caseFold` in TypeScript.
   */
  fold(text: Expression<string | null> | string): RawBuilder<string>
  /** Returns the SQL that gives the same result as `searchFold`. */
  searchFold(text: Expression<string | null> | string): RawBuilder<string>
  /** Returns the SQL that gives the same result as `textKey`. */
  textKey(text: Expression<string | null> | string): RawBuilder<string>
  /**
   * Returns the condition that an entry of a JSON list `[{value, label}]` matches the needle. The
   * list is the column, or the value at `path` in the column. `equals` compares case-folded values,
   * and `contains` compares what `searchFold` gives. `phone` compares digits. `first` is `contains`
   * for the first entry only.
   */
  jsonPointMatches(
    column: string,
    mode: 'equals' | 'contains' | 'first' | 'phone',
    needle: string,
    path?: string,
  ): RawBuilder<SqlBool>
  /**
   * Returns the value at a dotted path of a JSON column as text: `jsonText('table.column',
   * 'city')`.
   */
  jsonText(column: string, path: string): RawBuilder<string | null>
  /** Returns the integer at a dotted path of a JSON column. True is 1 and false is 0. */
  jsonNumber(column: string, path: string): RawBuilder<number | null>
  /** Returns the condition that the JSON list at the dotted path contains any of the numbers. */
  jsonHolds(column: string, path: string, numbers: readonly number[]): RawBuilder<SqlBool>
  /** Returns the value of a JSON column without one key of its object. */
  jsonWithout(column: string, key: string): RawBuilder<string>

  /** Converts a JSON text to the type of a JSON column, for use in a larger SQL expression. */
  jsonValue(text: string): RawBuilder<string>

  /**
   * Returns the rows of a query as JSON text: a list of objects in the order of the query. The
   * query must name its columns. `timestamps` lists its timestamp columns.
   */
  jsonRows(rows: AnyRows, timestamps?: readonly string[]): RawBuilder<string>

  /**
   * Returns a table to join, with one row for each text of a JSON array. The array is the column
   * itself, or its property `key`. In each row, `key` is the array index from 0.
   */
  jsonTexts<A extends string>(
    column: string,
    alias: A,
    key?: string,
  ): AliasedRawBuilder<{ key: number; value: string }, A>

  /** Returns the month of a date column as `YYYY-MM`. */
  monthOf(column: string): RawBuilder<string | null>
  /**
   * Locks the selected rows until the end of the transaction, and skips rows that other
   * transactions have locked. SQLite returns the query unchanged, because only one transaction can
   * write.
   */
  skippingLocked<Query extends AnyRows>(query: Query): Query

  /**
   * Whether the transactions of a process run one after another, so each sees the changes of all
   * earlier ones.
   */
  readonly queuesWrites: boolean
  /**
   * Waits until no other transaction that called this function is open. Ids generated after the
   * call are then in the order of the commits.
   */
  enterCommitOrder<Tables>(db: Kysely<Tables>): Promise<void>

  isUniqueViolation(error: unknown): boolean
  isForeignKeyViolation(error: unknown): boolean
  /** Returns the storage fault that the error reports, or null for any other error. */
  storageFault(error: unknown): StorageFault | null

  readonly fullText: FullText

  /**
   * Checks the integrity of the database and returns one sentence for each problem. SQLite checks
   * the file and the foreign keys. PostgreSQL looks for invalid indexes and unvalidated
   * constraints. `accord doctor` prints the sentences.
   */
  integrityProblems(db: Kysely<unknown>): Promise<string[]>

  /**
   * Runs `work` on a snapshot of the database, off the event loop. Writes do not wait for `work`.
   * The statements of `work` run one after another. Temporary tables that `work` creates are
   * removed at the end.
   */
  readInThread<Tables, T>(db: Kysely<Tables>, work: (snapshot: Kysely<Tables>) => Promise<T>): Promise<T>

  /** Refreshes the statistics of the query planner. */
  updateStatistics<Tables>(db: Kysely<Tables>): Promise<void>
  hasTables(db: Kysely<unknown>): Promise<boolean>
  /**
   * Makes the next generated id of each table greater than all its ids, and greater than its entry
   * in `lastIds`. Must be called after rows are inserted with given ids.
   */
  resetSequences(db: Kysely<unknown>, lastIds?: Readonly<Record<string, number>>): Promise<void>
  /**
   * Returns the last generated id of each table, even if its row was deleted since. Omits tables
   * that have not generated an id.
   */
  lastIds(db: Kysely<unknown>): Promise<Record<string, number>>
  /** Returns the part of the text that the engine cannot store, such as `U+0000`, or null. */
  textProblem(text: string): string | null
  /** Returns the foreign keys, unique keys and columns of all tables. */
  relations(db: Kysely<unknown>): Promise<Relations>
  readonly copies: Copies
}

/** The functions for backups and transfers that differ between engines. */
export interface Copies {
  /** Returns an upper limit of the size of a copy, in bytes. */
  sizeOf(db: Kysely<unknown>): Promise<number>
  /** Returns the size of the log (WAL) beside the database file in bytes. */
  walBytes(url: string): number
  /**
   * Returns every table except the internal tables of the engine. `columns` is sorted by name.
   * `key` lists the columns of the primary key in key order, and `json` the columns that hold JSON.
   */
  tables(db: Kysely<unknown>): Promise<{ name: string; columns: string[]; key: string[]; json: string[] }[]>
  /**
   * Copies the database before migrations change it. Returns the path of the copy, or null for a
   * database that is not a file.
   */
  copyBeforeMigration(db: Kysely<unknown>, url: string, stamp: string): Promise<string | null>
}

/**
 * The mark at the end of a truncated text. Every trigram search returns such a text as a candidate,
 * because the missing part may match.
 */
export const truncationMark = '\u0001'.repeat(3)

/**
 * Full-text search over the columns `title` and `body` of a table. The table also needs the columns
 * `id` and `entity_type`. Triggers update the indexes when the table changes.
 */
export interface FullText {
  /** Creates the full-text indexes and adds all rows of the table. */
  create(db: Kysely<unknown>, table: string): Promise<void>
  drop(db: Kysely<unknown>, table: string): Promise<void>
  /** The steps that build new indexes beside the current indexes, in short transactions. */
  readonly rebuild: IndexRebuild
  /**
   * Returns a subquery of the hits: highest score first, then highest id first. Returns null when
   * the question has no word.
   */
  hits(table: string, question: FullTextQuestion): RawBuilder<FullTextHit> | null
  /**
   * Returns a subquery of the `entity_id`s of records whose texts may contain every piece. Pieces
   * are folded by `searchFold` and may occur inside words. The subquery finds every match and may
   * also return records that do not match. Returns null when every piece is shorter than three
   * characters. An engine with `test` also tests the beginnings of words.
   */
  candidates(
    table: string,
    type: string,
    pieces: readonly string[],
    phrases: readonly string[],
  ): RawBuilder<number> | null
  /**
   * Returns a subquery of the ids of the records whose texts have a word that begins with each
   * phrase. Returns null without phrases.
   */
  beginnings(table: string, type: string, phrases: readonly string[]): RawBuilder<number> | null
  /**
   * Returns a condition that tests by the index whether a record is one of the candidates for the
   * pieces and has the beginnings. `document` is the id of its document (document-ids.ts). Null for
   * an engine that tests the texts of the record in less time.
   */
  readonly test:
    | ((
        table: string,
        document: Expression<unknown>,
        asked: { pieces: readonly string[]; phrases: readonly string[] },
      ) => RawBuilder<SqlBool>)
    | null
  /**
   * Compares the indexes with the table. Returns the difference as a part of a sentence, or null.
   * Must be called inside `readInThread`. Rejects when the comparison is impossible at the moment.
   */
  findMismatch(db: Kysely<unknown>, table: string): Promise<string | null>
}

/**
 * The steps that rebuild the full-text indexes of a table. The caller runs each step except
 * `discard` in a transaction of its own. Queries use the old index until `finish`. Triggers add
 * rows that are written during the rebuild to the new index.
 */
export interface IndexRebuild {
  /**
   * Returns the names of the full-text indexes of a table. The caller rebuilds one index after
   * another.
   */
  indexes(table: string): readonly string[]
  begin(db: Kysely<unknown>, table: string, index: string): Promise<void>
  /**
   * Copies the next `count` of the rows that existed at `begin`. Returns false after the last row.
   */
  copyRows(db: Kysely<unknown>, table: string, index: string, count: number): Promise<boolean>
  /**
   * Returns a statement that merges a few segments of the new index. The caller repeats it until a
   * run changes at most one row, which means that there was nothing to merge.
   */
  merge(index: string): string
  /**
   * Replaces the old index with the new index. Must be called after `copyRows` has returned false.
   */
  finish(db: Kysely<unknown>, table: string, index: string): Promise<void>
  /**
   * Returns whether tables or triggers of a rebuild exist, either of a running or of a killed
   * rebuild.
   */
  hasLeftovers(db: Kysely<unknown>, table: string): Promise<boolean>
  /**
   * Removes replaced indexes and the leftovers of a killed rebuild. Runs its own short
   * transactions.
   */
  discard(db: Kysely<unknown>, table: string): Promise<void>
}

export interface FullTextQuestion {
  /**
   * Alternatives. A hit has all phrases of one of them. A phrase is a list of words from
   * `searchPhrase`, which a text has in a row, and its last word may be the beginning of a word.
   */
  phrases: readonly (readonly string[])[]
  /** The types of which every document can be a hit. */
  types: readonly string[]
  /** A subquery of the ids of other documents that can be hits. */
  among?: Expression<unknown>
  limit: number
}

export interface FullTextHit {
  id: number
  /** The relevance. A match in the title weighs most. */
  score: number
}
