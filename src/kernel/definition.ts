// What a slice says of its table (Definition), and what it and others get for it (Resource). The types of resource.ts.
import type { Db } from '../../db/open.ts'
import type { DB as Tables } from '../../db/tables.gen.ts'
import type { Body, Data, OperationFact, OperationId, SortName } from '../contract/types.ts'
import type { Context } from './context.ts'
import type { Findings } from './errors.ts'
import type { Fields, SearchField } from './filter.ts'
import type { Rows } from './page.ts'

/** What the rules of a write can look at. `current` is the row before an update, null on creation. */
export interface Writing<Row> {
  ctx: Context
  current: Row | null
  found: Findings
}

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
  /** Every name the contract lets a list be sorted by, and its column. */
  sort: Record<SortName<L>, string>
  /** Columns of the filters, and the fields that `q` looks into. */
  filter: (ctx: Context, query: Record<string, unknown>) => Fields | Promise<Fields>
  search: readonly SearchField[]
  /** Contract to row: rules beyond shape are found here, only what was sent is returned. */
  columns: (body: Body<U>, writing: Writing<Row>) => Promise<Record<string, unknown>> | Record<string, unknown>
  /** Row to contract, written out. */
  present: (row: Row, ctx: Context) => Data<G>
  /** Children and references for a whole page, one query each: never one per row. */
  gather?: (ctx: Context, replies: Data<G>[], include: readonly string[]) => Promise<void>
  /** Children, in the same transaction. */
  settle?: (ctx: Context, id: number, body: Body<U>) => Promise<void>
  /** What a deletion is refused for, and what goes with the record (DOMAIN 23). */
  release?: (ctx: Context, row: Row) => Promise<void>
  /** Links with events of their own, after the record's pair (DOMAIN 17.1 Nesting). True when something changed. */
  link?: (ctx: Context, id: number, body: Body<U>) => Promise<boolean>
}

export type Include = readonly string[]

/** The part of a resource that others use: by id, through the same visibility, events and rules as the API. */
export interface Resource<Reply, Write> {
  noun: string
  entity: string
  table: keyof Tables
  /** The operation that shows one record: who may see it, by permission and ability. */
  shows: OperationFact
  locate(ctx: Context, id: number): Promise<void>
  /** Which of the ids exist and are visible. */
  seen(ctx: Context, ids: readonly number[]): Promise<Set<number>>
  get(ctx: Context, id: number, include?: Include): Promise<Reply>
  many(ctx: Context, ids: readonly number[]): Promise<Map<number, Reply>>
  list(ctx: Context, query: any, narrow?: (rows: Rows<any>) => Rows<any>): Promise<any>
  create(ctx: Context, body: Write): Promise<Reply>
  update(ctx: Context, id: number, body: Write): Promise<Reply>
  remove(ctx: Context, id: number): Promise<void>
  touch(ctx: Context, id: number): Promise<void>
}
