// Takes back what an import did to one record, under the same rules and with the same events as an
// API call.
import { type SqlBool, sql } from 'kysely'
import type { OperationId } from '../../../contract/types.ts'
import { assertCanCall, type Context } from '../../../kernel/context.ts'
import { Problem } from '../../../kernel/errors.ts'
import type { Resource } from '../../../kernel/resource/define-resource.ts'
import { type InTransaction, savepoint } from '../../../kernel/write/write.ts'
import { operationOf } from '../draft-rows/row-drafts.ts'
import { requestOf } from '../run/import-run.ts'
import type { importedTypes } from '../run/imported-records.ts'
import { findUses } from './find-uses.ts'
import { formerValues, type LoggedChange, type Remainder } from './former-values.ts'

type ImportedType = (typeof importedTypes)[number]

export interface ImportedRecord {
  entity_type: string
  record_id: number
  did: string
}

export interface Undone {
  did: 'deleted' | 'reverted' | 'restored' | null
  remainders: Remainder[]
}

/** The request id of all events of an undo. */
export const undoRequestOf = (id: number): string => `undo-${id}`

/** Takes back one record in a savepoint, so that a refusal rolls back alone. */
export async function undoRecord(ctx: InTransaction, importId: number, record: ImportedRecord): Promise<Undone> {
  try {
    return await savepoint(ctx, () => ways[record.did as keyof typeof ways](ctx, importId, record))
  } catch (error) {
    if (!(error instanceof Problem) || error.status >= 500) throw error
    const [[field, sentences] = [null, []]] = Object.entries(error.more.errors ?? {})
    const reason = error.code === 'forbidden' ? 'forbidden' : error.code === 'not_found' ? 'gone' : 'refused'
    return left({ field: null, reason, message: field === null ? error.message : `${field}: ${sentences[0]}` })
  }
}

const left = (...remainders: Remainder[]): Undone => ({ did: null, remainders })
const gone: Remainder = { field: null, reason: 'gone', message: 'The record was deleted, or you do not see it.' }
const unknown: Remainder = {
  field: null,
  reason: 'unknown',
  message: "The event log no longer has the import's change.",
}

type Way = (ctx: Context, importId: number, record: ImportedRecord) => Promise<Undone>

const remove: Way = async (ctx, importId, record) => {
  const { record_id: id, entity_type: type } = record
  const resource = resourceOf(ctx, record)
  if (!(await resource.visibleIds(ctx, [id])).has(id)) return left(gone)
  assertCanCall(ctx, writesOf(type).remove)
  if ((await changesOf(ctx, importId, record)).length === 0) return left(unknown)
  if (await isEdited(ctx, importId, record))
    return left({ field: null, reason: 'edited', message: 'The record was changed since the import.' })
  const uses = await findUses(ctx, resource.table, id)
  if (uses.length > 0)
    return left({ field: null, reason: 'in_use', message: `Other records refer to it: ${uses.join(', ')}.` })
  await resource.remove(ctx, id)
  return { did: 'deleted', remainders: [] }
}

const revert: Way = async (ctx, importId, record) => {
  const { record_id: id, entity_type: type } = record
  const resource = resourceOf(ctx, record)
  if (!(await resource.visibleIds(ctx, [id])).has(id)) return left(gone)
  const { update } = writesOf(type)
  assertCanCall(ctx, update)
  const changes = await changesOf(ctx, importId, record)
  if (changes.length === 0) return left(unknown)
  const { body, remainders } = formerValues(ctx, update, changes, (await resource.get(ctx, id)) as object)
  if (Object.keys(body).length === 0) return left(...remainders)
  await resource.update(ctx, id, body)
  return { did: 'reverted', remainders }
}

const restore: Way = async (ctx, _importId, record) => {
  const resource = resourceOf(ctx, record)
  assertCanCall(ctx, writesOf(record.entity_type).remove)
  if (await resource.exists(ctx, record.record_id)) return left()
  await resource.restore(ctx, record.record_id)
  return { did: 'restored', remainders: [] }
}

const ways = { created: remove, updated: revert, deleted: restore } as const

function resourceOf({ services }: Context, { entity_type: type }: ImportedRecord): Resource<{ id: number }, unknown> {
  const resource = services.resources.get(type)
  if (!resource) throw new Error(`There is no resource ${type}.`)
  return resource as unknown as Resource<{ id: number }, unknown>
}

export function writesOf(type: string): { update: OperationId; remove: OperationId } {
  const imported = type as ImportedType
  if (imported === 'tags') return { update: 'updateTag', remove: 'deleteTag' }
  return { update: operationOf(imported, 'update'), remove: operationOf(imported, 'remove') }
}

/** Returns the import's changes of a record, oldest first. */
const changesOf = (
  { db }: Context,
  importId: number,
  { entity_type: type, record_id: id }: ImportedRecord,
): Promise<LoggedChange[]> =>
  db
    .selectFrom('events')
    .select(['name', 'before', 'after', 'changed', 'related_id'])
    .where('entity_type', '=', type)
    .where('entity_id', '=', id)
    .where('request_id', '=', requestOf(importId))
    .where('origin', '=', 'import')
    .orderBy('id')
    .execute()

/**
 * Returns whether the record was changed by others. Workflows that the import's events started, and
 * the undo itself, do not count.
 */
async function isEdited(
  { db }: Context,
  importId: number,
  { entity_type: type, record_id: id }: ImportedRecord,
): Promise<boolean> {
  const isOwn = (alias: string, requests: readonly string[]) =>
    sql<SqlBool>`(${sql.ref(`${alias}.origin`)} = 'import' and ${sql.ref(`${alias}.request_id`)} in (${sql.join(requests)}))`
  const found = await db
    .selectFrom('events')
    .select('events.id')
    .where('events.entity_type', '=', type)
    .where('events.entity_id', '=', id)
    .where(
      sql<SqlBool>`not (${isOwn('events', [requestOf(importId), undoRequestOf(importId)])} and events.request_id is not null)`,
    )
    .where(
      sql<SqlBool>`not exists (select 1 from workflow_runs join events as cause on cause.id = workflow_runs.event_id
        where workflow_runs.id = events.workflow_run_id and ${isOwn('cause', [requestOf(importId)])})`,
    )
    .limit(1)
    .executeTakeFirst()
  return found !== undefined
}
