// What one row does: the call of the API that it stands for, with the permissions of the import's user, through the
// resource's own rules and events. It runs in a transaction of others, who roll back what a refused row has begun.
import { bodyReader } from '../../contract/input/body-reader.ts'
import { assertCanCall, type Context } from '../../kernel/context.ts'
import type { Resource } from '../../kernel/resource/define-resource.ts'
import { yieldIfDue } from '../../kernel/runtime/cooperative.ts'
import { fold } from '../../kernel/values/format.ts'
import { findOrCreateTag } from '../tags/resource.ts'
import type { Action, Type } from './columns.ts'
import { withPresentPoints } from './lists.ts'
import { addressKey, type Lookups } from './lookups.ts'
import { keysMade, keysOf, recordOf } from './match.ts'
import { bodyOf, type Draft, operationOf, RowRefused, refused, validBodyOf } from './rows.ts'

export interface Plan {
  type: Type
  action: Action
  /** Of a person that is found: else what the row has is added. */
  replacesLists: boolean
}

export interface Done {
  did: 'created' | 'updated' | 'deleted'
  id: number
}

function resourceOf({ services }: Context, type: Type): Resource<{ id: number }, unknown> {
  const resource = services.resources.get(type)
  if (!resource) throw new Error(`There is no resource ${type}.`)
  return resource as unknown as Resource<{ id: number }, unknown>
}

/** A row as it is read before anything is looked up for it. */
export interface Reading {
  /** The fields that the row holds of its record. */
  keys: readonly string[]
  /** Those by which later rows mean the record that this one makes. */
  made: readonly string[]
  /** The body of the call that makes a record, if the row can make nothing else. */
  body: object | null
}

/** Looks at the shape of a row. Throws `RowRefused`. */
export function readRow(ctx: Context, { type, action }: Plan, draft: Draft): Reading {
  // It can make a lead and nothing else, and what makes one also changes one. A row that is wrong is read as a change first, below.
  if (type === 'leads' && action === 'append' && (draft.id === undefined || draft.id === null)) {
    const body = validBodyOf(ctx, draft, operationOf(type, 'create'))
    if (body) return { keys: [], made: [], body }
  }
  const body = bodyOf(ctx, draft, operationOf(type, 'update'))
  const keys = keysOf(type, action, draft, body)
  return { keys, made: keysMade(type, keys, body), body: null }
}

/** Throws `RowRefused` or a `Problem` for a row that cannot be imported. */
export async function applyRow(
  ctx: Context,
  plan: Plan,
  draft: Draft,
  { keys, body: read }: Reading,
  known: Lookups,
): Promise<Done> {
  const { type, action } = plan
  const resource = resourceOf(ctx, type)
  const id = await recordOf(ctx, plan, draft, keys)
  if (action === 'delete' && id !== null) {
    assertCanCall(ctx, operationOf(type, 'remove'))
    await resource.remove(ctx, id)
    return { did: 'deleted', id }
  }
  const operation = operationOf(type, id === null ? 'create' : 'update')
  assertCanCall(ctx, operation)
  // First without what is looked up: nothing is made for a row that is wrong in itself.
  const own = read ?? bodyOf(ctx, draft, operation)
  const found = await lookedUp(ctx, draft, known)
  const isAlone = Object.keys(found).length === 0
  const body = isAlone ? own : { ...own, ...validated(ctx, plan, draft, found, known) }
  await yieldIfDue()
  if (id === null) return { did: 'created', id: await resource.add(ctx, body) }
  await resource.update(
    ctx,
    id,
    type === 'persons' && !plan.replacesLists ? await withPresentPoints(ctx, draft, id, body) : body,
  )
  return { did: 'updated', id }
}

interface Found {
  person_id?: number | null
  tag_ids?: number[]
}

/** Looked-up fields are validated as an update, which requires no other field. Of ids that are there nothing but their number can be wrong. */
function validated(ctx: Context, { type }: Plan, draft: Draft, found: Found, { valid }: Lookups): object {
  const shape = `${found.person_id === null} ${found.tag_ids?.length}`
  if (valid.has(shape)) return found
  const body = bodyOf(ctx, { ...draft, body: { ...found } }, operationOf(type, 'update'))
  valid.add(shape)
  return body
}

/** What the row names: tags, which are made where there are none, and the person of a lead. */
async function lookedUp(ctx: Context, draft: Draft, known: Lookups): Promise<Found> {
  const found: Found = {}
  if (draft.personEmail !== undefined) found.person_id = personOf(draft, draft.personEmail, known)
  if (draft.tags !== undefined) {
    const ids: number[] = []
    for (const name of draft.tags) ids.push(known.tags.get(fold(name)) ?? (await tagOf(ctx, draft, name)))
    found.tag_ids = [...new Set(ids)]
  }
  return found
}

function personOf(draft: Draft, email: string | null, known: Lookups): number | null {
  const id = email === null ? null : (known.persons.get(addressKey(email)) ?? null)
  if (email !== null && id === null) throw refused(draft, 'person_email', 'No person has this e-mail address.')
  const { person_id: other } = draft.body
  if (other !== undefined && other !== id) throw refused(draft, 'person_email', 'person_id names another person.')
  return id
}

async function tagOf(ctx: Context, draft: Draft, name: string): Promise<number> {
  const { contract, config } = ctx.services
  const reading = { zone: config.timezone, strict: config.strict }
  const { value, errors } = bodyReader(contract, 'createTag')({ name }, reading)
  const messages = Object.values(errors).flat()
  if (messages.length > 0)
    throw new RowRefused(
      messages.map((message) => ({ row: draft.row, column: 'tags', code: 'validation_failed', message })),
    )
  return findOrCreateTag(ctx, (value as { name: string }).name)
}
