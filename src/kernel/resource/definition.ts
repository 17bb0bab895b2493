// The two types around `defineResource`: the description of a table by its slice (Definition), and
// the functions that the slice and other slices get back (Resource).
import type { RawBuilder, SqlBool } from 'kysely'
import type { SearchDocumentSource } from '../../../db/search/documents.ts'
import type { Db } from '../../../db/store.ts'
import type { DB as Tables } from '../../../db/tables.gen.ts'
import type { FieldErrors } from '../../contract/output/problems.ts'
import type { Body, Data, EventBase, OperationFact, OperationId, Schema, SortName } from '../../contract/types.ts'
import type { Context } from '../context.ts'
import type { ValidationErrors } from '../errors.ts'
import type { Mend, Restored } from '../history/restore.ts'
import type { Records, Sight } from '../query/event-visibility.ts'
import type { Fields, Query, SearchField } from '../query/filter.ts'
import type { Rows, SortColumn } from '../query/page.ts'
import type { Snapshot } from '../write/events.ts'

/**
 * The values that the rules of a write may use. `current` is the row before an update, null on
 * creation.
 */
export interface Writing<Row> {
  ctx: Context
  current: Row | null
  found: ValidationErrors
}

export type Sorts<Name extends string> = Record<Name, SortColumn>

/** The part of a definition that does not name the table or the operations. */
export interface RecordRules<Row, Write, Reply, SortKey extends string, WriteField> {
  /** The singular name in messages, as in "No lead has id 7." */
  noun: string
  /**
   * Returns a query of the columns that replies need, one row per record. It applies visibility.
   */
  rows: (ctx: Context, db: Db) => Rows<Row>
  /**
   * A column for each sort name of the contract; a function when some are known only at run time.
   */
  sort: Sorts<SortKey> | ((ctx: Context, query: Query) => Promise<Sorts<SortKey>>)
  /** Returns the filters of the list, each with the column that it reads. */
  filter: (ctx: Context, query: Query) => Fields | Promise<Fields>
  /** The fields that `q` searches. */
  search: readonly SearchField[]
  /**
   * The text by which `GET /search` finds a record. It contains the text of every field in
   * `search`.
   */
  searchDocument?: SearchDocumentSource
  /**
   * Turns a body into columns of the row. Checks the rules beyond the schema and returns only the
   * columns that were sent.
   */
  toRow: (body: Write, writing: Writing<Row>) => Promise<Record<string, unknown>> | Record<string, unknown>
  /**
   * Fields that determine the meaning of other fields. While one of them is invalid, no rule of
   * `toRow` runs.
   */
  governs?: readonly WriteField[]
  /** Masks the secrets of a body before listeners see it. */
  maskInput?: (body: Write) => Write
  /** Turns a row into the reply, with every property written out. */
  toReply: (row: Row, ctx: Context) => Reply
  /**
   * Loads children and references for a whole page, with one query for each kind and never one per
   * row.
   */
  loadRelated?: (ctx: Context, replies: Reply[], include: Include) => Promise<void>
  /** Saves child rows in the same transaction. */
  afterSave?: (ctx: Context, id: number, body: Write) => Promise<void>
  /** Returns the names of the bare events that follow the events of an update. */
  followUpEvents?: (before: Snapshot, after: Snapshot) => EventBase[]
  /** Refuses a deletion by throwing, or deletes the rows that belong to the record (DOMAIN 23). */
  beforeDelete?: (ctx: Context, row: Row) => Promise<void>
  /**
   * Saves links that have events of their own, after the record's own events (DOMAIN 17.1 Nesting).
   * Returns whether anything changed; if not, the row is not read again. Must not change the row.
   */
  saveLinks?: (ctx: Context, id: number, body: Write, isNew: boolean) => Promise<boolean>
  /**
   * Returns the columns to set when a record is restored but records it referred to no longer exist
   * (DOMAIN 17.4).
   */
  onRestore?: Mend
  /**
   * Returns a further SQL condition, besides the visible owner, under which the caller may see a
   * deleted record. It reads the alias `known` (event-visibility.ts).
   */
  wasInSight?: (ctx: Context) => RawBuilder<SqlBool>
  /**
   * Returns a stored snapshot reduced to the fields that the caller may read (event-visibility.ts).
   */
  asRead?: (ctx: Context, snapshot: Snapshot) => Snapshot
  /** The maximum length of texts in the event log; longer ones are omitted (DOMAIN 17.3). */
  maxLoggedTextLength?: number
}

export interface Definition<
  Table extends keyof Tables,
  L extends OperationId,
  G extends OperationId,
  C extends OperationId,
  U extends OperationId,
  D extends OperationId,
  Row,
> extends RecordRules<Row, Body<U>, Data<G>, SortName<L>, keyof Body<C> | keyof Body<U>> {
  table: Table
  /** The operationIds; events, statuses and permissions are derived from the contract. */
  operations: { list: L; get: G; create: C; update: U; delete: D }
}

export type Include = readonly string[]

export type Examine = (
  ctx: Context,
  input: { params: Record<string, unknown>; body: unknown },
  refused: readonly string[],
) => Promise<FieldErrors>

/** The reply of a list. */
export interface RecordList<Reply> {
  data: Reply[]
  links: Schema<'PageLinks'>
  meta: Schema<'PageMeta'>
}

/**
 * The functions of a resource for other slices: records by id, with the same visibility, events and
 * rules as the API.
 */
export interface Resource<Reply, Write> {
  noun: string
  /** The last word of the list's path: `leads`, `persons` … */
  entity: string
  table: keyof Tables
  /** The operation that shows one record: its permission and ability decide who may see one. */
  getOperation: OperationFact
  /** The operation that lists records: its permission and ability decide who may find one. */
  listOperation: OperationFact
  searchDocument?: SearchDocumentSource | undefined
  /** The base names of its events. */
  events: { create: EventBase; update: EventBase; delete: EventBase }
  /**
   * Throws 404 for a record that the caller may not see, 412 when If-Match names another version.
   */
  assertVisible(ctx: Context, id: number): Promise<void>
  /** Returns the ids whose records exist and are visible. */
  visibleIds(ctx: Context, ids: readonly number[]): Promise<Set<number>>
  /**
   * Returns a query of the records whose files the caller may see. Set where files contain more
   * than the record shows.
   */
  withFiles?(ctx: Context): Rows<{ id: number }>
  /** Returns whether the record exists, visible or not. */
  exists(ctx: Context, id: number): Promise<boolean>
  /** The visibility rule for the record's events. */
  sight: Sight & { records: Records }
  get(ctx: Context, id: number, include?: Include): Promise<Reply>
  getMany(ctx: Context, ids: readonly number[]): Promise<Map<number, Reply>>
  list(ctx: Context, query: Query, narrow?: (rows: Rows<unknown>) => Rows<unknown>): Promise<RecordList<Reply>>
  /**
   * Returns a query of every row that the list parameters in `query` select, in their order and
   * without pages.
   */
  query(ctx: Context, query: Query): Promise<Rows<object>>
  create(ctx: Context, body: Write): Promise<Reply>
  /** Creates a record for a caller that needs only its id. */
  add(ctx: Context, body: Write): Promise<number>
  update(ctx: Context, id: number, body: Write): Promise<Reply>
  /**
   * By operation: checks the rules for the valid fields of a body after the fields `refused` were
   * removed.
   */
  examiners: Partial<Record<OperationId, Examine>>
  remove(ctx: Context, id: number): Promise<void>
  /** Restores a deleted record. */
  restore(ctx: Context, id: number): Promise<Restored<Reply>>
  /** Raises the version and sets `updated_at`. */
  touch(ctx: Context, id: number): Promise<void>
}
