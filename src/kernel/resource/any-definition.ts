// A definition without its types. `defineResource` gives up the types of one table in a single
// cast, and the machinery behind it works on any row, body and reply.
import type { DB as Tables } from '../../../db/tables.gen.ts'
import type { OperationId } from '../../contract/types.ts'
import type { Snapshot } from '../write/events.ts'
import type { RecordRules, Resource } from './definition.ts'
import type { VisibleRows } from './rows.ts'
import type { TableRows } from './table-rows.ts'

/** A row of any table: some tables have no version. */
export interface AnyRow extends Record<string, unknown> {
  id: number
  version?: number
}

export type AnyBody = Record<string, unknown>

export type AnyResource = Resource<Snapshot, AnyBody>

export interface AnyDefinition extends RecordRules<AnyRow, AnyBody, Snapshot, string, string> {
  table: keyof Tables
  operations: Record<'list' | 'get' | 'create' | 'update' | 'delete', OperationId>
}

/** The parts of one resource that its functions share. */
export interface Parts {
  d: AnyDefinition
  /** The facts about the resource that the contract states. */
  facts: Pick<AnyResource, 'entity' | 'events' | 'getOperation' | 'listOperation'>
  /** The ids of `GET /…/{id}/history` and `POST /…/{id}/restore`, where the contract has them. */
  below: { history: OperationId | undefined; restore: OperationId | undefined }
  /** Rows as the caller sees them. */
  rows: VisibleRows
  /** Rows as they are stored. */
  stored: TableRows
}
