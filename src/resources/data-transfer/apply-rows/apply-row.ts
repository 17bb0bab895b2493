// Applies one row of an import. The row creates, updates or deletes a record under the same rules
// and with the same events as an API call by the import's user. The caller rolls back a refused
// row.
import { bodyReader } from '../../../contract/input/body-reader.ts'
import type { Schema } from '../../../contract/types.ts'
import { assertCanCall, type Context } from '../../../kernel/context.ts'
import type { Resource } from '../../../kernel/resource/define-resource.ts'
import { yieldIfDue } from '../../../kernel/runtime/cooperative.ts'
import { textKey } from '../../../kernel/values/names.ts'
import { contactFields } from '../../persons/contacts.ts'
import { findOrCreateTag } from '../../tags/resource.ts'
import { bodyOf, operationOf, type RowDraft, rowError, rowRefused } from '../draft-rows/row-drafts.ts'
import { refusedRow } from '../errors.ts'
import type { Lookups } from '../find-records/lookups.ts'
import { findRecord } from '../find-records/match-records.ts'
import { findReferences, type RelatedIds, rememberPerson, withoutOpenClosing } from '../find-records/references.ts'
import type { ImportPlan, ImportType } from '../settings.ts'
import type { RowReading } from './read-row.ts'

export interface RowResult {
  did: 'created' | 'updated' | 'deleted'
  id: number
}

export function importedResource({ services }: Context, type: ImportType): Resource<{ id: number }, unknown> {
  const resource = services.resources.get(type)
  if (!resource) throw new Error(`There is no resource ${type}.`)
  return resource as unknown as Resource<{ id: number }, unknown>
}

/**
 * Imports the row and returns the result. Throws `ImportStop` or a `Problem` for a row that cannot
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

/** Returns the name of a new tag. Throws `ImportStop` for an invalid name. */
export function validTagName(ctx: Context, draft: RowDraft, name: string): string {
  const { contract, config } = ctx.services
  const reading = { zone: config.timezone, strict: config.strict }
  const { value, errors } = bodyReader(contract, 'createTag')({ name }, reading)
  const messages = Object.values(errors).flat()
  if (messages.length > 0) throw refusedRow(messages.map((message) => rowError(draft, 'tags', message)))
  return (value as { name: string }).name
}

type Point = Schema<'ContactPoint'>

const maxContactPoints = 20

/**
 * Returns the body with the new entries of the row after the person's existing entries. A list that
 * the row clears stays empty.
 */
async function mergeContactPoints(ctx: Context, draft: RowDraft, id: number, body: object): Promise<object> {
  const sent = body as Partial<Record<'emails' | 'contact_numbers', Point[]>>
  if (!sent.emails?.length && !sent.contact_numbers?.length) return body
  const row = await ctx.db
    .selectFrom('persons')
    .select(['emails', 'contact_numbers'])
    .where('id', '=', id)
    .executeTakeFirstOrThrow()
  const lists: typeof sent = {}
  for (const field of ['emails', 'contact_numbers'] as const) {
    if (!sent[field]?.length) continue
    const present = JSON.parse(row[field]) as Point[]
    const known = new Set(present.map(({ value }) => contactFields[field](value)))
    const added = sent[field].filter(({ value }) => !value || !known.has(contactFields[field](value)))
    if (added.length > 0 && present.length + added.length > maxContactPoints)
      throw rowRefused(draft, field, `The person would have more than ${maxContactPoints} entries.`)
    lists[field] = [...present, ...added]
  }
  return { ...body, ...lists }
}
