// What a slice says of its table (Definition), and what it and others get for it (Resource). The types of resource.ts.
import type { RawBuilder, SqlBool } from 'kysely'
import type { Db } from '../../../db/store.ts'
import type { DB as Tables } from '../../../db/tables.gen.ts'
import type { FieldErrors } from '../../contract/output/problems.ts'
import type { Body, Data, EventBase, OperationFact, OperationId, SortName } from '../../contract/types.ts'
import type { Context } from '../context.ts'
import type { ValidationErrors } from '../errors.ts'
import type { Mend, Restored } from '../history/restore.ts'
import type { Records, Sight } from '../query/event-visibility.ts'
import type { Fields, SearchField } from '../query/filter.ts'
import type { Rows, SortColumn } from '../query/page.ts'
import type { Snapshot } from '../write/events.ts'

/** What the rules of a write can look at. `current` is the row before an update, null on creation. */
export interface Writing<Row> {
  ctx: Context
  current: Row | null
  found: ValidationErrors
}

export type Sorts<Name extends string> = Record<Name, SortColumn>

export interface Definition<
  Table extends keyof Tables,
  L extends OperationId,
  G extends OperationId,
  C extends OperationId,
  U extends OperationId,
  D extends OperationId,
  Row,
> {
  /** "No lead has id 7." */
  noun: string
  table: Table
  /** operationIds; events, statuses and permissions follow from the contract. */
  operations: { list: L; get: G; create: C; update: U; delete: D }
  /** What a reply needs, one row a record. Visibility is applied here. */
  rows: (ctx: Context, db: Db) => Rows<Row>
  /** Every name the contract lets a list be sorted by, and its column; a function when some are known only at run time. */
  sort: Sorts<SortName<L>> | ((ctx: Context, query: Record<string, unknown>) => Promise<Sorts<SortName<L>>>)
  /** Columns of the filters, and the fields that `q` looks into. */
  filter: (ctx: Context, query: Record<string, unknown>) => Fields | Promise<Fields>
  search: readonly SearchField[]
  /** Contract to row: rules beyond shape are found here, only what was sent is returned. */
  toRow: (body: Body<U>, writing: Writing<Row>) => Promise<Record<string, unknown>> | Record<string, unknown>
  /** Fields that say what others mean: while one of them is refused, nothing more is said of the others. */
  governs?: readonly (keyof Body<C> | keyof Body<U>)[]
  /** Masks the secrets of a body before listeners see it. */
  told?: (body: Body<U>) => Body<U>
  /** Row to contract, written out. */
  toReply: (row: Row, ctx: Context) => Data<G>
  /** Children and references for a whole page, one query each: never one per row. */
  loadRelated?: (ctx: Context, replies: Data<G>[], include: readonly string[]) => Promise<void>
  /** Children, in the same transaction. */
  afterSave?: (ctx: Context, id: number, body: Body<U>) => Promise<void>
  /** Bare events that follow the pair of an update. */
  follows?: (before: Snapshot, after: Snapshot) => EventBase[]
  /** What a deletion is refused for, and what goes with the record (DOMAIN 23). */
  beforeDelete?: (ctx: Context, row: Row) => Promise<void>
  /**
   * Links with events of their own, after the record's pair (DOMAIN 17.1 Nesting). True when something changed: else the row is not
   * read again.
   */
  saveLinks?: (ctx: Context, id: number, body: Body<U>, isNew: boolean) => Promise<boolean>
  /** What takes the place of references that are gone when a deleted record comes back (DOMAIN 17.4): columns. */
  onRestore?: Mend
  /** What the caller must meet, besides seeing its owner, to know of a deleted record: a condition on `known` (event-visibility.ts). */
  wasInSight?: (ctx: Context) => RawBuilder<SqlBool>
  /** A stored snapshot as the caller may read it (event-visibility.ts). */
  asRead?: (ctx: Context, snapshot: Snapshot) => Snapshot
}

export type Include = readonly string[]

export type Examine = (
  ctx: Context,
  input: { params: Record<string, unknown>; body: unknown },
  refused: readonly string[],
) => Promise<FieldErrors>

/** The part of a resource that others use: by id, through the same visibility, events and rules as the API. */
export interface Resource<Reply, Write> {
  noun: string
  entity: string
  table: keyof Tables
  /** The operation that shows one record: who may see it, by permission and ability. */
  getOperation: OperationFact
  /** The operation that lists them: who may come upon one without knowing its id. */
  listOperation: OperationFact
  /** Names of its own events. */
  events: { create: EventBase; update: EventBase; delete: EventBase }
  assertVisible(ctx: Context, id: number): Promise<void>
  /** Which of the ids exist and are visible. */
  visibleIds(ctx: Context, ids: readonly number[]): Promise<Set<number>>
  /** Those whose files the caller sees, as a query of their ids, where files hold more than the record shows. */
  withFiles?(ctx: Context): Rows<{ id: number }>
  /** Whether there is such a record, seen or not. */
  exists(ctx: Context, id: number): Promise<boolean>
  /** The rule that says who may see their events. */
  sight: Sight & { records: Records }
  get(ctx: Context, id: number, include?: Include): Promise<Reply>
  getMany(ctx: Context, ids: readonly number[]): Promise<Map<number, Reply>>
  list(ctx: Context, query: any, narrow?: (rows: Rows<any>) => Rows<any>): Promise<any>
  /** All rows that a list shows to the same query, in its order; for what is not a page of them. */
  query(ctx: Context, query: any): Promise<Rows<any>>
  create(ctx: Context, body: Write): Promise<Reply>
  /** The same for a caller that needs only the id. */
  add(ctx: Context, body: Write): Promise<number>
  update(ctx: Context, id: number, body: Write): Promise<Reply>
  /** By operation, what its rules have against what is left of a body whose fields `refused` were taken out. */
  examiners: Partial<Record<OperationId, Examine>>
  remove(ctx: Context, id: number): Promise<void>
  /** Brings a deleted record back. */
  restore(ctx: Context, id: number): Promise<Restored<Reply>>
  touch(ctx: Context, id: number): Promise<void>
}
