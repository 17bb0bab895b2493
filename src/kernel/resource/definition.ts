// The parameter and the result of `defineResource`. A slice describes a table in a Definition and
// gets a Resource: functions for this slice and for other slices.
import type { Expression, RawBuilder, SqlBool, Updateable } from 'kysely'
import type { SearchDocumentSource } from '../../../db/search/documents.ts'
import type { Db } from '../../../db/store.ts'
import type { DB as Tables } from '../../../db/tables.gen.ts'
import type { FieldErrors } from '../../contract/output/problems.ts'
import type {
  Body,
  BodyField,
  Data,
  EventBase,
  FilterName,
  OperationFact,
  OperationId,
  Schema,
  SortName,
} from '../../contract/types.ts'
import type { Context } from '../context.ts'
import type { ValidationErrors } from '../errors.ts'
import type { Archived, Row as ArchivedColumns } from '../history/archive.ts'
import type { NamedRecord, StoredReference } from '../history/stored-references.ts'
import type { SqlCaller } from '../query/caller-query.ts'
import type { Records, Sight } from '../query/event-visibility.ts'
import type { FilterSource, QueryValues, SearchField } from '../query/filter.ts'
import type { Rows, SortColumn } from '../query/page.ts'
import type { Snapshot } from '../write/events.ts'
import type { Merges, Merging } from './merging.ts'

/**
 * The values that the rules of a write may use. `current` is the row before an update; null on
 * creation. `errors` collects the errors.
 */
export interface Writing<Row> {
  ctx: Context
  current: Row | null
  errors: ValidationErrors
}

/** The table of the external ids of a type of record, and its column with the id of the record. */
export interface ExternalIdTable {
  table: keyof Tables
  column: string
  /** The table of the ids of merged records without a place in `table`. */
  former?: keyof Tables
}

/** The column for each sort name of the list. */
export type Sorts<L extends OperationId> = Record<SortName<L>, SortColumn>

/** The column or condition for each field that the list filters by. */
export type Filters<L extends OperationId> = Record<FilterName<L>, FilterSource>

export type RecordKey = 'name' | 'email' | 'sku' | 'external_id'

/** A key column of the table, and the function that converts a sent text to its form. */
export interface KeyColumn {
  column: string
  keyOf: (text: string) => string
  /**
   * Whether a name also matches names that differ in accents or blanks. Names that differ only in
   * case come first.
   */
  isFolded?: true
}

/** Returns the ids of the records by the sent texts. Checks no visibility. */
export type FindIds = (ctx: Context, texts: readonly string[]) => Promise<ReadonlyMap<string, readonly number[]>>

export interface NamedBy {
  keys: Partial<Record<RecordKey, KeyColumn | FindIds>>
  /** Whether callers may name every record, even those that they may not list or see. */
  isShown?: true
}

/** What a write changes, planned before anything is written. */
export interface RowPlan<Columns = Record<string, unknown>> {
  /** The columns of the row. Columns that are undefined keep their value. */
  columns: Columns
  /** Saves the child rows of the record, in the transaction that has just saved the row. */
  save?: ((ctx: Context, id: number) => Promise<void>) | undefined
}

/**
 * Says how a definition handles a property without a column of its name: it stores links to other
 * records, child rows or columns of other names, or the property affects only this request.
 */
export type WithoutColumn<Field extends string> = Record<Field, 'links' | 'rows' | 'other columns' | 'this request'>

/**
 * The default of type parameters that the compiler infers last. With `unknown`, one error in a
 * definition would cause an error in each use of a row.
 */
// biome-ignore lint/suspicious/noExplicitAny: it replaces types only after another error
export type InferredLast = any

/** A related record. With `link`, rows of that table link it to the record with the id `column`. */
export interface RelatedRecord {
  entity: string
  column: string
  link?: { table: keyof Tables; owner: string; related: string }
}

/** The part of a definition that names neither the table nor the operations. */
export interface RecordRules<Row, Write, Reply, Sort, Filter, Field extends string, Columns> {
  /** The singular name of the record in messages, as in "No lead has id 7." */
  noun: string
  /** Returns a query with one row per visible record and the columns that replies need. */
  rows: (caller: SqlCaller, db: Db) => Rows<Row>
  /**
   * Returns subqueries of the ids of the records that a caller with a limited view may see, each
   * found through an index. A list finds the records of a caller who sees few of them by these ids,
   * because a test of each record would read the whole table.
   */
  idsInSight?: (caller: SqlCaller) => RawBuilder<unknown>[]
  /**
   * The column for each sort name of the contract. It is a function when some sort names are known
   * only at run time.
   */
  sort: Sort | ((ctx: Context, query: QueryValues) => Promise<Sort>)
  /** The filters of the list, each with the column that it tests. */
  filter: Filter
  /** The related records whose fields a `where` may test, by the name of the key. */
  related?: Record<string, RelatedRecord>
  /** The fields that the query parameter `q` searches. */
  search: readonly SearchField[]
  /**
   * The text by which `GET /search` finds a record. It must contain the text of every field in
   * `search`.
   */
  searchDocument?: SearchDocumentSource
  /**
   * Converts a body to columns of the row and to child rows; properties that were not sent yield
   * none. Also checks the rules that the schema cannot express.
   */
  toRow: (body: Write, writing: Writing<Row>) => Promise<RowPlan<Columns>>
  /**
   * The properties of bodies for which `toRow` returns no column of their name. A property that the
   * compiler misses here usually needs a column in `toRow`.
   */
  withoutColumn: WithoutColumn<Exclude<Field, keyof Columns>>
  /** How a body may name a record instead of sending its id; by default it may not. */
  namedBy?: NamedBy
  /**
   * Fields on which the meaning of other fields depends. If the schema refuses one of these fields,
   * the rules in `toRow` do not run.
   */
  governs?: readonly Field[]
  /** Returns whether the caller may change a visible record. By default all may be changed. */
  canChange?: (ctx: Context, row: Row) => boolean
  /** How records are compared and merged. Without it, they are not. */
  merging?: Merging<Row, Reply>
  /** Masks the secrets of a body before event listeners get it. */
  maskInput?: (body: Write) => Write
  /** Converts a row to the reply. Every property of the schema must be present. */
  toReply: (row: Row, ctx: Context) => Reply
  /**
   * Adds children and references to all replies of a page, with one query for each kind of child or
   * reference.
   */
  loadRelated?: (ctx: Context, replies: Reply[], include: Include) => Promise<void>
  /**
   * Returns the records that the JSON and texts of a stored row name. They cannot be deleted while
   * the row names them.
   */
  refersTo?: (ctx: Context, row: Row) => Promise<StoredReference[]>
  /**
   * Returns the body of an update that puts the record `by` in the place of `named` wherever the
   * row names it.
   */
  replacing?: (ctx: Context, row: Row, named: NamedRecord, by: number) => Promise<Write>
  /**
   * Returns the names of further events, such as `lead.won`. They follow the events of a creation,
   * whose `before` is undefined, or of an update. These events have no suffix.
   */
  followUpEvents?: (before: Snapshot | undefined, after: Snapshot) => EventBase[]
  /**
   * Runs in the transaction of a creation, update, deletion or restore that changed the record,
   * after its events. Must not change the row of the record.
   */
  onChange?: (ctx: Context, id: number, change: Changed<Reply>) => Promise<void>
  /**
   * Runs before the external ids of a known record change. Throws to refuse the change. References
   * by external id decide whose rights a body gives, so these ids are guarded like the record.
   */
  beforeExternalIds?: (ctx: Context, row: Row) => Promise<void>
  /**
   * Runs before a deletion. Throws to refuse the deletion, or deletes rows that belong to the
   * record.
   */
  beforeDelete?: (ctx: Context, row: Row) => Promise<void>
  /**
   * Saves links, after the events of the record. Each link that changes has events of its own.
   * Without such an event the record is not read again. Must not change the row of the record.
   */
  saveLinks?: (ctx: Context, id: number, body: Write, isNew: boolean) => Promise<void>
  /**
   * Returns the columns to set when a record is restored and some records that it referred to no
   * longer exist.
   */
  onRestore?: OnRestore
  /**
   * Returns an SQL condition under which the caller may see events of a deleted record, in addition
   * to the condition on its owner. The condition refers to the event by the alias `known`
   * (event-visibility.ts).
   */
  wasInSight?: (ctx: Context) => RawBuilder<SqlBool>
  /**
   * Returns a stored snapshot reduced to the fields that the caller may read (event-visibility.ts).
   */
  asRead?: (ctx: Context, snapshot: Snapshot) => Snapshot
  /**
   * The maximum number of characters of a text in the event log. Longer texts are omitted.
   */
  maxLoggedTextLength?: number
}

/**
 * A reference that was dropped because the record it refers to no longer exists. `entity_type` and
 * `id` name the missing record; `field` is the field that referred to it.
 */
export interface Dropped {
  entity_type: string
  id: number
  field: string
}

export interface Restored<Reply> {
  data: Reply
  dropped: Dropped[]
}

/**
 * A change of a record. `before` is undefined on creation and restore, `after` after a deletion.
 */
export interface Changed<Reply> {
  before?: Reply
  after?: Reply
  isRestored?: true
}

/** The argument of a definition's `onRestore`. */
export interface RestoredRow {
  row: Readonly<ArchivedColumns>
  /** The API representation of the record before the deletion. */
  snapshot: Archived['snapshot']
  /** The columns of `row` that refer to records that no longer exist. */
  vanished: ReadonlySet<string>
  /** Reports a dropped value that is not in a column of the row, such as a custom attribute. */
  drop: (what: Dropped) => void
}

export type OnRestore = (ctx: Context, restored: RestoredRow) => Promise<ArchivedColumns>

/** The columns that a row may set. A value that the checks of the table refuse does not fit. */
export type ColumnsOf<Table extends keyof Tables> = Updateable<Tables[Table]>

export interface Definition<
  Table extends keyof Tables,
  L extends OperationId,
  G extends OperationId,
  C extends OperationId,
  U extends OperationId,
  D extends OperationId,
  Row,
  Columns extends ColumnsOf<Table>,
> extends RecordRules<Row, Body<U>, Data<G>, Sorts<L>, Filters<L>, BodyField<C, U>, Columns> {
  table: Table
  /** The table of the records' external ids; without it, they have none. */
  externalIds?: ExternalIdTable
  /**
   * The operationIds of the standard operations. Events, statuses and permissions are derived from
   * these operations in the contract.
   */
  operations: { list: L; get: G; create: C; update: U; delete: D }
}

export type Include = readonly string[]

export type Examine = (
  ctx: Context,
  input: { params: Record<string, unknown>; body: unknown },
  refused: readonly string[],
) => Promise<FieldErrors>

export interface RecordList<Reply> {
  data: Reply[]
  links: Schema<'PageLinks'>
  meta: Schema<'PageMeta'>
}

export interface PagePart {
  part: Expression<SqlBool>
  limit: number
  offset: number
}

/**
 * The functions of a resource that other slices may call. They apply the same visibility, events
 * and rules as the API.
 */
export interface Resource<Reply, Write> {
  noun: string
  /** The plural name: the last segment of the list's path, such as `leads` or `persons`. */
  entity: string
  table: keyof Tables
  /**
   * The operation that returns one record. A caller needs its permission and ability to see a
   * record.
   */
  getOperation: OperationFact
  /**
   * The operation that lists records. A caller needs its permission and ability to find a record.
   */
  listOperation: OperationFact
  searchDocument?: SearchDocumentSource | undefined
  namedBy?: NamedBy | undefined
  /** The names of the resource's events, without a suffix. */
  events: { create: EventBase; update: EventBase; delete: EventBase }
  /**
   * Throws 404 when the caller may not see the record, and 412 when If-Match names another version.
   */
  assertVisible(ctx: Context, id: number): Promise<void>
  /**
   * Reads a list of parts of the record, after a check like that of `assertVisible`. The ETag of
   * the list has the version of the record.
   */
  withVersionOf<R extends object>(ctx: Context, id: number, read: () => Promise<R>): Promise<R>
  /** Returns those of `ids` whose records exist and are visible to the caller. */
  visibleIds(ctx: Context, ids: readonly number[]): Promise<Set<number>>
  /**
   * Returns the number of visible records for each value of a reference column. The map lacks
   * values without records.
   */
  countBy(ctx: Context, column: string, ids: readonly number[]): Promise<Map<number, number>>
  /**
   * Returns a query of the records whose files the caller may see. Set only where a caller may see
   * a record but not its files, as for imports.
   */
  withFiles?(ctx: Context): Rows<{ id: number }>
  /** Returns whether the record exists, even if the caller may not see it. */
  exists(ctx: Context, id: number): Promise<boolean>
  /** The visibility rule for the record's events. */
  sight: Sight & { records: Records }
  get(ctx: Context, id: number, include?: Include): Promise<Reply>
  /** Returns those records that exist and are visible to the caller, in the order of `ids`. */
  getMany(ctx: Context, ids: readonly number[], include?: Include): Promise<Map<number, Reply>>
  list(ctx: Context, query: QueryValues, narrow?: (rows: Rows<unknown>) => Rows<unknown>): Promise<RecordList<Reply>>
  /**
   * Returns a query of all rows that the list parameters in `query` select, in the requested order.
   * Ignores the parameters for pages.
   */
  query(ctx: Context, query: QueryValues): Promise<Rows<object>>
  /**
   * Returns a query of the rows that the filters select, in no order. Use it when few
   * rows match. The search index finds the rows of `q`.
   */
  found(ctx: Context, query: QueryValues): Promise<Rows<unknown>>
  /**
   * Returns the ids on several pages, each of the rows that also meet a condition. The ids of one
   * page are in the order of its `sort`. `isIndexScan` says whether to read the rows in the order
   * of an index, instead of finding and sorting them.
   */
  idsOnPages(
    ctx: Context,
    query: QueryValues,
    pages: readonly (PagePart & { sort?: string[] | undefined; isIndexScan: boolean })[],
  ): Promise<number[]>
  /**
   * Returns the ids on the same page of each group of rows that meet the condition `part`. Rows of
   * a group have the same value of `group`. Reads all rows.
   */
  idsPerGroup(ctx: Context, query: QueryValues, page: PagePart & { group: Expression<unknown> }): Promise<number[]>
  /**
   * Returns a query of the ids of all records that the caller may see; null for a caller who sees
   * all of them.
   */
  allInSight(ctx: Context): Rows<{ id: number }> | null
  create(ctx: Context, body: Write): Promise<Reply>
  /** Creates a record for a caller that needs only its id. */
  add(ctx: Context, body: Write): Promise<number>
  update(ctx: Context, id: number, body: Write): Promise<Reply>
  /**
   * Functions that check the rules for a body, by operationId. `refused` lists the fields that the
   * schema refused; the body no longer contains them.
   */
  examiners: Partial<Record<OperationId, Examine>>
  /**
   * Deletes a record. `replacement` is the id of the record that takes its place in stored rules;
   * without it, a rule that names the record refuses the deletion.
   */
  remove(ctx: Context, id: number, replacement?: number): Promise<void>
  /** The merges of the records; undefined for a type whose records cannot be merged. */
  merges?: Merges | undefined
  /** Puts the record `by` in the place of another one in a stored rule; only with `refersTo`. */
  replaceNamed?(ctx: Context, id: number, named: NamedRecord, by: number): Promise<void>
  restore(ctx: Context, id: number): Promise<Restored<Reply>>
  /** Raises the version of the record and sets `updated_at`. */
  touch(ctx: Context, id: number): Promise<void>
}
