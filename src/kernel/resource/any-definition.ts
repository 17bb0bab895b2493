// The types of a definition whose table is not known at compile time. `defineResource` drops the
// table's types with one cast; the functions that implement a resource accept any row, body and
// reply.
import type { DB as Tables } from '../../../db/tables.gen.ts'
import type { OperationId } from '../../contract/types.ts'
import type { Context } from '../context.ts'
import type { FilterSource, QueryValues } from '../query/filter.ts'
import type { Paged, Rows, SortColumn } from '../query/page.ts'
import type { Snapshot } from '../write/events.ts'
import type { ExternalIdTable, RecordRules, Resource } from './definition.ts'
import type { TableRows } from './table-rows.ts'

/** A row of any table. `version` is optional because some tables have no such column. */
export interface AnyRow extends Record<string, unknown> {
  id: number
  version?: number
}

export type AnyBody = Record<string, unknown>

export type AnyResource = Resource<Snapshot, AnyBody>

export interface AnyDefinition
  extends RecordRules<
    AnyRow,
    AnyBody,
    Snapshot,
    Record<string, SortColumn>,
    Record<string, FilterSource>,
    string,
    AnyBody
  > {
  table: keyof Tables
  externalIds?: ExternalIdTable
  operations: Record<'list' | 'get' | 'create' | 'update' | 'delete', OperationId>
}

export type Narrow = (rows: Rows<unknown>) => Rows<unknown>

export interface VisibleRows {
  /** Returns the visible rows with these ids, in no particular order. */
  byIds(ctx: Context, ids: readonly number[]): Promise<AnyRow[]>
  visibleIds(ctx: Context, ids: readonly number[]): Promise<Set<number>>
  countBy: AnyResource['countBy']
  page(ctx: Context, query: QueryValues, narrow?: Narrow): Promise<Paged<AnyRow>>
  query(ctx: Context, query: QueryValues): Promise<Rows<object>>
  found: AnyResource['found']
  idsOnPages: AnyResource['idsOnPages']
  idsPerGroup: AnyResource['idsPerGroup']
  allInSight: AnyResource['allInSight']
}

/** The last words of the paths of duplicates and merges. */
export type Mergings = 'duplicates' | 'listDuplicates' | 'merge' | 'unmerge'

/** The values that the functions of one resource share. */
export interface ResourceParts {
  d: AnyDefinition
  /** The properties of the resource that are derived from the contract. */
  facts: Pick<AnyResource, 'entity' | 'events' | 'getOperation' | 'listOperation'>
  /**
   * The operationIds of `GET /…/{id}/history`, `POST /…/{id}/restore`, `POST /…/query`, `PUT
   * /…/external/{source}/{external_id}`, and of duplicates and merges; undefined where the contract
   * lacks the operation.
   */
  below: Record<'history' | 'restore' | 'query' | 'upsert' | Mergings, OperationId | undefined>
  /** Reads the rows that the caller may see. */
  rows: VisibleRows
  /** Reads and writes rows of the table without a visibility check. */
  stored: TableRows
}
