// Checks the ids and unique values in a body, and applies `include` and `fields` to replies. The
// functions work on any resource, hence the type `any`.
import { sql } from 'kysely'
import type { DB as Tables } from '../../../db/tables.gen.ts'
import { didYouMean } from '../../contract/input/validation-errors.ts'
import { type Context, canCall } from '../context.ts'
import { invalid } from '../errors.ts'
import { visible } from '../query/visibility.ts'
import { textKey } from '../values/names.ts'
import type { Include, Resource, Writing } from './define-resource.ts'

type Referable = Pick<Resource<any, any>, 'visibleIds' | 'noun' | 'merges'>

/** Returns why a record cannot be named. The text has the record into which it was merged. */
export async function whyMissing(ctx: Context, { visibleIds, noun, merges }: Referable, id: number): Promise<string> {
  const into = (await merges?.into(ctx, id)) ?? null
  const isSeen = into !== null && (await visibleIds(ctx, [into])).has(into)
  return isSeen ? `The ${noun} ${id} was merged into ${into}; send ${into}.` : `No ${noun} has id ${id}.`
}

/**
 * Adds an error on `field` unless the record `id` exists and is visible to the caller. Accepts null
 * and undefined.
 */
export async function checkReference(
  { ctx, errors }: Pick<Writing<unknown>, 'ctx' | 'errors'>,
  field: string,
  id: number | null | undefined,
  resource: Referable,
): Promise<void> {
  if (id === null || id === undefined) return
  if (!(await resource.visibleIds(ctx, [id])).has(id)) errors.invalid(field, await whyMissing(ctx, resource, id))
}

/**
 * Checks each id of a list like `checkReference`. The field of an error ends with the position of
 * the id in the list, as in `tag_ids.2`.
 */
export async function checkReferences(
  { ctx, errors }: Pick<Writing<unknown>, 'ctx' | 'errors'>,
  field: string,
  ids: readonly number[] | undefined,
  resource: Referable,
): Promise<void> {
  if (!ids || ids.length === 0) return
  const seen = await resource.visibleIds(ctx, ids)
  for (const [index, id] of ids.entries())
    if (!seen.has(id)) errors.invalid(`${field}.${index}`, await whyMissing(ctx, resource, id))
}

/**
 * Adds an error when another row has the value `key` in `column`. `owner` is the table's owner
 * column. The error omits the id of the other row when the caller may not see the row.
 */
export async function unique<T extends keyof Tables>(
  { ctx, errors }: Pick<Writing<unknown>, 'ctx' | 'errors'>,
  about: {
    field: string
    table: T
    column: string
    key: string | undefined
    entity: string
    except: number | null
    noun: string
    owner?: string
  },
): Promise<void> {
  if (about.key === undefined) return
  const { table, owner } = about
  const other = await (ctx.db as any)
    .selectFrom(table)
    .select(['id', (owner === undefined ? sql`1` : sql`${visible(ctx, `${table}.${owner}`)}`).as('is_seen')])
    .where(about.column, '=', about.key)
    .executeTakeFirst()
  if (!other || other.id === about.except) return
  errors.taken(
    about.field,
    about.entity,
    other.is_seen ? other.id : null,
    `Another ${about.noun} has this ${about.field}.`,
  )
}

/**
 * Returns the columns of a name and adds an error when another row has the same name, ignoring
 * case. Returns no columns when no name was sent.
 */
export async function uniqueName(
  writing: Pick<Writing<{ id: number }>, 'ctx' | 'errors' | 'current'>,
  about: { table: keyof Tables; entity: string; noun: string },
  name: string | undefined,
): Promise<{ name?: string; name_key?: string }> {
  if (name === undefined) return {}
  const key = textKey(name)
  await unique(writing, { ...about, field: 'name', column: 'name_key', key, except: writing.current?.id ?? null })
  return { name, name_key: key }
}

/**
 * Replaces references in replies by full records, with one query per name in `include`. Keeps a
 * reference whose record the caller may not read.
 */
export async function expandReferences(
  ctx: Context,
  replies: readonly any[],
  include: Include,
  of: Record<string, () => Pick<Resource<any, any>, 'getMany' | 'getOperation'>>,
): Promise<void> {
  for (const name of include) {
    const resource = of[name]?.()
    if (!resource || !canCall(ctx, resource.getOperation)) continue
    const refs = replies.flatMap((reply) => reply[name] ?? [])
    const full = await resource.getMany(
      ctx,
      refs.map((ref) => ref.id as number),
    )
    const swap = (ref: any) => full.get(ref.id) ?? ref
    for (const reply of replies) {
      if (Array.isArray(reply[name])) reply[name] = reply[name].map(swap)
      else if (reply[name]) reply[name] = swap(reply[name])
    }
  }
}

/**
 * Implements the query parameter `fields`: reduces each record of a reply to the named keys. Throws
 * 422 on `query.fields` for a key that is not in `known`.
 */
export function selectFields(reply: any, names: readonly string[], known: readonly string[]): any {
  for (const name of names) {
    if (!known.includes(name)) throw invalid({ 'query.fields': [`Unknown field ${name}.${didYouMean(name, known)}`] })
  }
  const pickOne = (record: any) =>
    Object.fromEntries(names.filter((name) => Object.hasOwn(record, name)).map((name) => [name, record[name]]))
  return { ...reply, data: Array.isArray(reply.data) ? reply.data.map(pickOne) : pickOne(reply.data) }
}
