// Checks and stores unique attribute values. The table unique_values has one row per
// key, which is written together with the record.

import { type SqlBool, sql } from 'kysely'
import { type Bound, cachedQuery } from '../../../db/cached-query.ts'
import type { Db } from '../../../db/store.ts'
import type { Context } from '../../kernel/context.ts'
import type { ValidationErrors } from '../../kernel/errors.ts'
import { chunks } from '../../kernel/history/archive.ts'
import { yieldIfDue } from '../../kernel/runtime/cooperative.ts'
import { deleteByKeyInSlices } from '../../kernel/write/row-slices.ts'
import type { Attribute, EntityType } from './attribute-set.ts'
import type { UniqueKey } from './types/value-type.ts'

type Unique = Pick<Attribute, 'id' | 'entity'>

export const nouns: Record<EntityType, string> = {
  leads: 'lead',
  persons: 'person',
  organizations: 'organization',
  products: 'product',
  quotes: 'quote',
  warehouses: 'warehouse',
}

/** Returns the subset of `ids` whose records the caller may see. */
export const visibleAmong = async (
  ctx: Context,
  entity: EntityType,
  ids: readonly number[],
): Promise<ReadonlySet<number>> => (await ctx.services.resources.get(entity)?.visibleIds(ctx, ids)) ?? new Set()

/**
 * Reports keys that another record already has. The error contains the id of that record only if
 * the caller may see the record.
 */
export async function checkUniqueKeys(
  { ctx, errors }: { ctx: Context; errors: ValidationErrors },
  { id, entity }: Unique,
  self: number | null,
  path: string,
  keys: readonly UniqueKey[],
): Promise<void> {
  if (keys.length === 0) return
  const taken = await ctx.db
    .selectFrom('unique_values')
    .select(['value', 'entity_id'])
    .where('entity_type', '=', entity)
    .where('attribute_id', '=', id)
    .where('value', 'in', [...new Set(keys.map(({ key }) => key))])
    .execute()
  const others = new Map(taken.filter(({ entity_id }) => entity_id !== self).map((row) => [row.value, row.entity_id]))
  const seen = await visibleAmong(ctx, entity, [...others.values()])
  for (const { key, at } of keys) {
    const other = others.get(key)
    if (other === undefined) continue
    const field = at === '' ? path : `${path}.${at}`
    errors.taken(field, entity, seen.has(other) ? other : null, `Another ${nouns[entity]} has this value.`)
  }
}

/**
 * Finds the stored keys of an attribute of a record. The sign hides the attribute from the planner
 * of SQLite, which would otherwise read the keys of all records of the type.
 */
const storedKeys = cachedQuery((db: Db, entity: Bound<EntityType>, recordId: Bound<number>, id: Bound<number>) =>
  db
    .selectFrom('unique_values')
    .select('value')
    .where('entity_type', '=', entity)
    .where('entity_id', '=', recordId)
    .where(sql<number>`+attribute_id`, '=', id),
)

/** Adds and removes stored keys of one record so that they equal `keys`. */
export async function saveUniqueKeys(
  { db }: Context,
  { id, entity }: Unique,
  recordId: number,
  keys: readonly UniqueKey[],
): Promise<void> {
  const present = new Set((await storedKeys(db, entity, recordId, id)).map(({ value }) => value))
  const wanted = new Set(keys.map(({ key }) => key))
  const gone = [...present].filter((key) => !wanted.has(key))
  if (gone.length > 0) {
    await db
      .deleteFrom('unique_values')
      .where('entity_type', '=', entity)
      .where('attribute_id', '=', id)
      .where('value', 'in', gone)
      .execute()
  }
  const added = [...wanted].filter((key) => !present.has(key))
  if (added.length === 0) return
  await db
    .insertInto('unique_values')
    .values(added.map((value) => ({ entity_type: entity, attribute_id: id, value, entity_id: recordId })))
    .execute()
}

/** Returns up to `most` ids of records that share a key with another record. */
export async function findDuplicateIds(
  keysById: ReadonlyMap<number, readonly string[]>,
  most: number,
): Promise<number[]> {
  const first = new Map<string, number>()
  const found = new Set<number>()
  for (const [id, keys] of keysById) {
    for (const key of keys) {
      const other = first.get(key)
      if (other === undefined) first.set(key, id)
      else if (other !== id) found.add(other).add(id)
    }
    await yieldIfDue()
  }
  return [...found].sort((a, b) => a - b).slice(0, most)
}

export async function replaceAllUniqueKeys(
  ctx: Context,
  { id, entity }: Unique,
  keysById: ReadonlyMap<number, readonly string[]>,
): Promise<void> {
  const where = sql<SqlBool>`entity_type = ${entity} and attribute_id = ${id}`
  await deleteByKeyInSlices(ctx, { table: 'unique_values', where, key: ['entity_type', 'attribute_id', 'value'] })
  for (const part of chunks([...keysById], 100)) {
    const rows = part.flatMap(([recordId, keys]) =>
      [...new Set(keys)].map((value) => ({ entity_type: entity, attribute_id: id, value, entity_id: recordId })),
    )
    if (rows.length > 0) await ctx.db.insertInto('unique_values').values(rows).execute()
  }
}
