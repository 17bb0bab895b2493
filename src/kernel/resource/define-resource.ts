// Turns the definition of a table into a resource, which consists of plain functions. A
// slice with special needs wraps or replaces these functions, or implements its own with `write`
// and `page`.
import type { DB as Tables } from '../../../db/tables.gen.ts'
import { operations } from '../../contract/operations.gen.ts'
import type { Body, Data, EventBase, OperationBelow, OperationFact, OperationId } from '../../contract/types.ts'
import type { Context } from '../context.ts'
import type { HandlersFor } from '../handler.ts'
import { restore } from '../history/restore.ts'
import type { AnyDefinition, AnyResource, ResourceParts } from './any-definition.ts'
import { crudHandlers } from './crud-handlers.ts'
import type { ColumnsOf, Definition, InferredLast, Resource } from './definition.ts'
import { duplicateHandlers } from './duplicates.ts'
import { withExternalIds } from './external-ids.ts'
import { createMerges, handlersOfMerges } from './merge.ts'
import { createReader } from './read-records.ts'
import { sightOfRecords } from './record-sight.ts'
import { visibleRows } from './rows.ts'
import { tableRows } from './table-rows.ts'
import { createWriter } from './write-records.ts'

/** The path of an upsert below that of the list. */
const externalPath = 'external/{source}/{external_id}'

export type { Definition, ExternalIdTable, Include, Resource, RowPlan, Writing } from './definition.ts'

export function defineResource<
  Table extends keyof Tables,
  L extends OperationId,
  G extends OperationId,
  C extends OperationId,
  U extends OperationId,
  D extends OperationId,
  Row = InferredLast,
  Columns extends ColumnsOf<Table> = InferredLast,
>(
  definition: Definition<Table, L, G, C, U, D, Row, Columns>,
): Resource<Data<G>, Body<U>> & {
  handlers: HandlersFor<
    | L
    | G
    | C
    | U
    | D
    | OperationBelow<G, 'history' | 'restore' | 'duplicates' | 'merge' | 'unmerge'>
    | OperationBelow<L, 'query' | 'duplicates' | typeof externalPath>
  >
} {
  // The cast drops the types of the table, because the implementation works on any table.
  return resourceOf(definition as unknown as AnyDefinition) as unknown as ReturnType<
    typeof defineResource<Table, L, G, C, U, D, Row, Columns>
  >
}

function resourceOf(definition: AnyDefinition) {
  const facts = factsOf(definition)
  const d = withExternalIds(definition, facts.entity)
  const parts: ResourceParts = {
    d,
    facts,
    below: {
      history: operationBelow(facts.getOperation, 'history'),
      restore: operationBelow(facts.getOperation, 'restore'),
      query: operationBelow(facts.listOperation, 'query'),
      upsert: operationBelow(facts.listOperation, externalPath),
      duplicates: operationBelow(facts.getOperation, 'duplicates'),
      listDuplicates: operationBelow(facts.listOperation, 'duplicates'),
      merge: operationBelow(facts.getOperation, 'merge'),
      unmerge: operationBelow(facts.getOperation, 'unmerge'),
    },
    rows: visibleRows(d, facts.entity),
    stored: tableRows(d.table),
  }
  const reader = createReader(parts)
  const writer = createWriter(parts, reader)
  const resource = {
    noun: d.noun,
    table: d.table,
    searchDocument: d.searchDocument,
    namedBy: d.namedBy,
    ...facts,
    sight: sightOfRecords(parts),
    ...parts.rows,
    ...reader,
    exists: parts.stored.exists,
    touch: parts.stored.touch,
    ...writer,
    merges: createMerges(parts, reader),
    restore: (ctx: Context, id: number): ReturnType<AnyResource['restore']> =>
      restore(ctx, {
        resource,
        id,
        onRestore: d.onRestore,
        onChange: d.onChange,
        written: async (ctx) => reader.toReply(ctx, await reader.findWritten(ctx, id)),
      }),
  }
  const merging = handlersOfMerges({ ...parts, reader, resource })
  return {
    ...resource,
    handlers: { ...crudHandlers(parts, resource), ...duplicateHandlers(parts, reader), ...merging },
  }
}

/** Returns the properties of a resource that are derived from the contract. */
function factsOf({
  noun,
  operations: { list, get, create, update, delete: remove },
}: AnyDefinition): ResourceParts['facts'] {
  const factOf = (id: OperationId): OperationFact => operations[id]
  const eventOf = (id: OperationId): EventBase => factOf(id).events[0] as EventBase
  return {
    entity: factOf(list).path.split('/').at(-1) ?? noun,
    events: { create: eventOf(create), update: eventOf(update), delete: eventOf(remove) },
    getOperation: factOf(get),
    listOperation: factOf(list),
  }
}

const operationBelow = ({ path }: OperationFact, word: string): OperationId | undefined =>
  (Object.keys(operations) as OperationId[]).find((id) => operations[id].path === `${path}/${word}`)
