// Applies one row of an import. The row creates, updates or deletes a record under the same rules
// and with the same events as an API call by the import's user. The caller rolls back a refused
// row.
import { bodyReader } from '../../contract/input/body-reader.ts'
import type { Schema } from '../../contract/types.ts'
import { assertCanCall, type Context } from '../../kernel/context.ts'
import type { Resource } from '../../kernel/resource/define-resource.ts'
import { yieldIfDue } from '../../kernel/runtime/cooperative.ts'
import { textKey } from '../../kernel/values/names.ts'
import { findOrCreateTag } from '../tags/resource.ts'
import type { Constants, ImportAction, ImportType, Mapping } from './columns.ts'
import type { Lookups } from './lookups.ts'
import { findRecord, laterMatchKeys, matchKeysOf } from './match-records.ts'
import { mergeContactPoints } from './merge-contact-points.ts'
import { findReferences, type RelatedIds, rememberPerson, withoutOpenClosing } from './references.ts'
import { bodyOf, operationOf, type RowDraft, RowRefused, rowRefused, validBodyOf } from './row-drafts.ts'

export interface ImportPlan {
  type: ImportType
  action: ImportAction
  mapping: Mapping | null
  constants: Constants | null
  /** The treatment of a name that no record has. */
  unknown: Schema<'ImportUnknownReferences'>
  /** Whether a new person without a name gets one from another column. */
  fillsNames: boolean
  /** Whether a row with invalid optional cells is imported without these cells. */
  omitsCells: boolean
  /**
   * Whether the row's e-mail addresses and telephone numbers replace those of a matched person. If
   * false, they are added.
   */
  replacesLists: boolean
}

export interface RowResult {
  did: 'created' | 'updated' | 'deleted'
  id: number
}

export function importedResource({ services }: Context, type: ImportType): Resource<{ id: number }, unknown> {
  const resource = services.resources.get(type)
  if (!resource) throw new Error(`There is no resource ${type}.`)
  return resource as unknown as Resource<{ id: number }, unknown>
}

/** A validated row, before any database query. */
export interface RowReading {
  /** The match keys of the row, which find the record to change. */
  keys: readonly string[]
  /** The keys by which later rows can match the record of this row. */
  made: readonly string[]
  /** The body of the create operation if the row can only create a record; null otherwise. */
  body: object | null
}

/** Validates a row against the schema of its operation. Throws `RowRefused`. */
export function readRow(ctx: Context, { type, action }: ImportPlan, draft: RowDraft): RowReading {
  // A lead without an id is always created. If the create body is invalid, the code below validates
  // the row as an update, which reports the errors.
  if (type === 'leads' && action === 'append' && (draft.id === undefined || draft.id === null)) {
    const body = validBodyOf(ctx, draft, operationOf(type, 'create'))
    if (body) return { keys: [], made: [], body }
  }
  const body = bodyOf(ctx, draft, operationOf(type, 'update'))
  const keys = matchKeysOf(ctx, { type, action }, draft, body)
  return { keys, made: laterMatchKeys(ctx, type, keys, body), body: null }
}

/**
 * Imports the row and returns the result. Throws `RowRefused` or a `Problem` for a row that cannot
 * be imported.
 */
export async function applyRow(
  ctx: Context,
  plan: ImportPlan,
  draft: RowDraft,
  { keys, body: read }: RowReading,
  known: Lookups,
): Promise<RowResult> {
  const { type, action } = plan
  const resource = importedResource(ctx, type)
  const id = await findRecord(ctx, plan, draft, keys)
  if (action === 'delete' && id !== null) {
    assertCanCall(ctx, operationOf(type, 'remove'))
    await resource.remove(ctx, id)
    return { did: 'deleted', id }
  }
  const operation = operationOf(type, id === null ? 'create' : 'update')
  assertCanCall(ctx, operation)
  // The row is validated first, because `findRelated` may create tags and an invalid row must
  // create nothing.
  const own = read ?? bodyOf(ctx, draft, operation)
  const found = await findRelated(ctx, plan, draft, known)
  const isAlone = Object.keys(found).length === 0
  const all = isAlone ? own : { ...own, ...validateRelated(ctx, plan, draft, found, known) }
  const body = type === 'leads' ? withoutOpenClosing(all, draft, known) : all
  await yieldIfDue()
  if (id === null) {
    const made = await resource.add(ctx, body)
    if (found.person) await rememberPerson(ctx, made, found.person, known)
    return { did: 'created', id: made }
  }
  await resource.update(
    ctx,
    id,
    type === 'persons' && !plan.replacesLists ? await mergeContactPoints(ctx, draft, id, body) : body,
  )
  return { did: 'updated', id }
}

interface Related extends RelatedIds {
  tag_ids?: number[]
}

/**
 * Validates the ids of related records against the update operation, which requires no other
 * fields. The ids exist, so only their number can be invalid. `valid` caches the accepted numbers.
 */
function validateRelated(
  ctx: Context,
  { type }: ImportPlan,
  draft: RowDraft,
  found: Related,
  { valid }: Lookups,
): object {
  const shape = `${found.person_id === null} ${found.tag_ids?.length}`
  if (!found.person && valid.has(shape)) return found
  const body = bodyOf(ctx, { ...draft, body: { ...found } }, operationOf(type, 'update'))
  if (!found.person) valid.add(shape)
  return body
}

/** Returns the records that the row names. Creates missing tags. */
async function findRelated(ctx: Context, plan: ImportPlan, draft: RowDraft, known: Lookups): Promise<Related> {
  const found: Related = findReferences(plan, draft, known)
  if (draft.tags !== undefined) {
    const ids: number[] = []
    for (const name of draft.tags) ids.push(known.tags.get(textKey(name)) ?? (await tagOf(ctx, draft, name)))
    found.tag_ids = [...new Set(ids)]
  }
  return found
}

const tagOf = async (ctx: Context, draft: RowDraft, name: string): Promise<number> =>
  findOrCreateTag(ctx, validTagName(ctx, draft, name))

/** Returns the name of a new tag. Throws `RowRefused` for an invalid name. */
export function validTagName(ctx: Context, draft: RowDraft, name: string): string {
  const { contract, config } = ctx.services
  const reading = { zone: config.timezone, strict: config.strict }
  const { value, errors } = bodyReader(contract, 'createTag')({ name }, reading)
  const messages = Object.values(errors).flat()
  if (messages.length > 0)
    throw new RowRefused(messages.flatMap((message) => rowRefused(draft, 'tags', message).errors))
  return (value as { name: string }).name
}
