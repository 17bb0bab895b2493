// Finds the records that have a value of an attribute, clears their values, and removes references
// from the values.

import { type RawBuilder, type SqlBool, sql } from 'kysely'
import type { RecordChange } from '../../jobs/removals.ts'
import { type Context, now } from '../../kernel/context.ts'
import { chunks } from '../../kernel/history/archive.ts'
import { withoutVisibility } from '../../kernel/query/visibility.ts'
import { yieldIfDue } from '../../kernel/runtime/cooperative.ts'
import type { Snapshot } from '../../kernel/write/events.ts'
import { readInSlices, updateInSlices } from '../../kernel/write/row-slices.ts'
import { write } from '../../kernel/write/write.ts'
import type { Attribute, EntityType } from './attribute-set.ts'
import { withoutIds } from './restore-values.ts'
import type { Place } from './types/value-type.ts'
import { valueTypeOf } from './types.ts'
import { saveUniqueKeys } from './unique-keys.ts'
import { parseStored } from './validate-values.ts'

type AttributeKey = Pick<Attribute, 'id' | 'entity' | 'code' | 'type'>

const resourceOf = ({ services }: Context, entity: EntityType) => services.resources.get(entity)

const placeOf = ({ services }: Context, { code }: AttributeKey): Place => ({
  dialect: services.store.dialect,
  column: 'custom_attributes',
  code,
})

/**
 * Returns the stored values of an attribute, by record id. With `ids`, returns only values that
 * contain at least one of the ids.
 */
export async function valuesOf(
  ctx: Context,
  attribute: AttributeKey,
  ids?: readonly number[],
  limit?: number,
): Promise<ReadonlyMap<number, unknown>> {
  const { dialect, column, code } = placeOf(ctx, attribute)
  const isKept = sql<SqlBool>`${dialect.jsonText(column, code)} is not null`
  const test = ids && valueTypeOf(attribute)?.matches?.({ dialect, column, code }, ids)
  const where = test ? sql<SqlBool>`${isKept} and ${test}` : isKept
  const isScan = !test || valueTypeOf(attribute)?.indexed === undefined
  const rows = { table: attribute.entity, where, isScan }
  const columns = sql`id, custom_attributes`
  const found = await readInSlices<{ id: number; custom_attributes: string }>(ctx, rows, columns, limit)
  const values = new Map<number, unknown>()
  for (const row of found) {
    values.set(row.id, parseStored(row.custom_attributes)[code] ?? null)
    await yieldIfDue()
  }
  return values
}

export async function hasValues(ctx: Context, attribute: AttributeKey): Promise<boolean> {
  const place = placeOf(ctx, attribute)
  const row = ctx.db
    .selectFrom(attribute.entity)
    .select('id')
    .where(place.dialect.jsonText(place.column, place.code), 'is not', null)
  return (await row.limit(1).executeTakeFirst()) !== undefined
}

/**
 * Removes the attribute's values from all records and raises the records' versions. Emits no record
 * events, because the event of the attribute covers the change.
 */
export async function clearValues(ctx: Context, attribute: AttributeKey): Promise<void> {
  const { dialect, column, code } = placeOf(ctx, attribute)
  const where = sql<SqlBool>`${dialect.jsonText(column, code)} is not null`
  await updateInSlices(
    ctx,
    { table: attribute.entity, where, isScan: true },
    touched(ctx, dialect.jsonWithout(column, code)),
  )
}

/** Assigns new custom attributes to a row and raises its version. */
const touched = (ctx: Context, values: RawBuilder<string>): RawBuilder<unknown> =>
  sql`custom_attributes = ${values}, version = version + 1, updated_at = ${now(ctx)}`

/**
 * Removes options from the values of all records. Emits no record events, for the same reason as
 * `clearValues`.
 */
export async function removeOptions(ctx: Context, attribute: Attribute, optionIds: readonly number[]): Promise<void> {
  const { dialect, column, code } = placeOf(ctx, attribute)
  const where = valueTypeOf(attribute)?.matches?.({ dialect, column, code }, optionIds)
  if (!where) return
  const table = attribute.entity
  if (attribute.type === 'select') {
    await updateInSlices(ctx, { table, where, isScan: true }, touched(ctx, dialect.jsonWithout(column, code)))
    return
  }
  const gone = new Set(optionIds)
  const columns = sql`id, custom_attributes`
  const rows = await readInSlices<{ id: number; custom_attributes: string }>(
    ctx,
    { table, where, isScan: true },
    columns,
  )
  for (const part of chunks(rows, 100)) {
    const texts = part.map(({ id, custom_attributes }) => {
      const stored = parseStored(custom_attributes)
      const text = JSON.stringify({ ...stored, [code]: withoutIds(stored[code], gone) })
      return sql`when ${id} then ${dialect.jsonValue(text)}`
    })
    const isPart = sql<SqlBool>`id in (${sql.join(part.map(({ id }) => id))})`
    await updateInSlices(ctx, { table, where: isPart }, touched(ctx, sql`case id ${sql.join(texts, sql` `)} end`))
  }
}

/**
 * An attribute, and the ids of deleted records that its values and default must no longer contain.
 */
export interface DroppedReference {
  attribute: Attribute
  gone: readonly number[]
}

/**
 * Removes references to deleted records from the values of one entity. Each affected record gets
 * one update with its events, even if several of its attributes change. `isItself`
 * identifies the deleted record, which is skipped.
 */
export async function dropReferences(
  ctx: Context,
  entity: EntityType,
  droppings: readonly DroppedReference[],
  isItself: (id: number) => boolean,
): Promise<void> {
  for (const change of await referenceChanges(ctx, entity, droppings, { isItself })) await change(ctx)
}

/** Returns the changes that remove references, of up to `limit` records. */
export async function referenceChanges(
  ctx: Context,
  entity: EntityType,
  droppings: readonly DroppedReference[],
  { isItself, limit }: { isItself: (id: number) => boolean; limit?: number },
): Promise<RecordChange[]> {
  const resource = resourceOf(ctx, entity)
  if (!resource) return []
  const changes = new Map<number, { attribute: Attribute; next: unknown }[]>()
  for (const { attribute, gone } of droppings)
    for (const [id, value] of await valuesOf(ctx, attribute, gone, limit))
      changes.set(id, [...(changes.get(id) ?? []), { attribute, next: withoutIds(value, new Set(gone)) }])
  return [...changes]
    .filter(([id]) => !isItself(id))
    .slice(0, limit)
    .map(
      ([id, values]) =>
        (ctx) =>
          storeWithout(ctx, resource, { entity, id, values }),
    )
}

async function storeWithout(
  ctx: Context,
  resource: NonNullable<ReturnType<typeof resourceOf>>,
  { entity, id, values }: { entity: EntityType; id: number; values: { attribute: Attribute; next: unknown }[] },
): Promise<void> {
  const all = withoutVisibility(ctx)
  const before = (await resource.get(all, id)) as Snapshot
  const custom_attributes = Object.fromEntries(values.map(({ attribute, next }) => [attribute.code, next]))
  await write(all, resource.events.update, { entity, input: { custom_attributes }, id, before }, async (ctx) => {
    for (const { attribute, next } of values) await storeValue(ctx, attribute, id, next)
    await resource.touch(ctx, id)
    return { id, entity: (await resource.get(ctx, id)) as Snapshot }
  })
}

/** Stores a value without events and without a new version. */
export async function storeValue(ctx: Context, attribute: Attribute, id: number, value: unknown): Promise<void> {
  const row = ctx.db.selectFrom(attribute.entity).select('custom_attributes').where('id', '=', id)
  const stored = { ...parseStored((await row.executeTakeFirstOrThrow()).custom_attributes) }
  if (value === null) delete stored[attribute.code]
  else stored[attribute.code] = value
  await ctx.db
    .updateTable(attribute.entity)
    .set({ custom_attributes: JSON.stringify(stored) })
    .where('id', '=', id)
    .execute()
  if (attribute.isUnique) {
    const keys = value === null ? [] : (valueTypeOf(attribute)?.keys?.(value) ?? [])
    await saveUniqueKeys(ctx, attribute, id, keys)
  }
}
