// The records that carry custom attributes, seen from an attribute: which of them have a value, and how it is taken from them.
import { sql } from 'kysely'
import { type Context, now } from '../../kernel/context.ts'
import { chunks } from '../../kernel/history/archive.ts'
import { withoutVisibility } from '../../kernel/query/visibility.ts'
import type { Snapshot } from '../../kernel/write/events.ts'
import { write } from '../../kernel/write/write.ts'
import { readStored } from './plan.ts'
import { without } from './restore-values.ts'
import type { Attribute, EntityType } from './set.ts'
import type { Place } from './types/type.ts'
import { typeOf } from './types.ts'
import { keepKeys } from './unique.ts'

type Where = Pick<Attribute, 'id' | 'entity' | 'code' | 'type'>

/** The resource of an entity, among those the program is made of. */
const resourceOf = ({ services }: Context, entity: EntityType) => services.resources.get(entity)

const placeOf = ({ services }: Context, { code }: Where): Place => ({
  dialect: services.store.dialect,
  column: 'custom_attributes',
  code,
})

/** The values of an attribute by record, as they are stored; with `ids`, of those that name one of them. */
export async function valuesOf(
  ctx: Context,
  attribute: Where,
  ids?: readonly number[],
): Promise<ReadonlyMap<number, unknown>> {
  const place = placeOf(ctx, attribute)
  let rows = ctx.db
    .selectFrom(attribute.entity)
    .select(['id', 'custom_attributes'])
    .where(place.dialect.jsonText(place.column, place.code), 'is not', null)
  const test = ids && typeOf(attribute)?.matches?.(place, ids)
  if (test) rows = rows.where(test)
  const found = await rows.orderBy('id').execute()
  return new Map(found.map((row) => [row.id, readStored(row.custom_attributes)[attribute.code] ?? null]))
}

export async function hasValues(ctx: Context, attribute: Where): Promise<boolean> {
  const place = placeOf(ctx, attribute)
  const row = ctx.db
    .selectFrom(attribute.entity)
    .select('id')
    .where(place.dialect.jsonText(place.column, place.code), 'is not', null)
  return (await row.limit(1).executeTakeFirst()) !== undefined
}

/** Takes the attribute from all records. They have changed, so their versions say so; the attribute's own event tells of it. */
export async function clearAll(ctx: Context, attribute: Where): Promise<void> {
  const { dialect, column, code } = placeOf(ctx, attribute)
  await ctx.db
    .updateTable(attribute.entity)
    .set({
      custom_attributes: dialect.jsonWithout(column, code),
      version: sql<number>`version + 1`,
      updated_at: now(ctx),
    })
    .where(dialect.jsonText(column, code), 'is not', null)
    .execute()
}

/** Takes options away from the records that have them, in the same way. */
export async function takeOptions(ctx: Context, attribute: Attribute, optionIds: readonly number[]): Promise<void> {
  const { dialect, column, code } = placeOf(ctx, attribute)
  const touched = { version: sql<number>`version + 1`, updated_at: now(ctx) }
  const test = typeOf(attribute)?.matches?.({ dialect, column, code }, optionIds)
  if (!test) return
  if (attribute.type === 'select') {
    const taken = { ...touched, custom_attributes: dialect.jsonWithout(column, code) }
    await ctx.db.updateTable(attribute.entity).set(taken).where(test).execute()
    return
  }
  const gone = new Set(optionIds)
  const rows = await ctx.db.selectFrom(attribute.entity).select(['id', 'custom_attributes']).where(test).execute()
  for (const part of chunks(rows)) {
    const texts = part.map(({ id, custom_attributes }) => {
      const stored = readStored(custom_attributes)
      return sql`when ${id} then ${JSON.stringify({ ...stored, [code]: without(stored[code], gone) })}`
    })
    await ctx.db
      .updateTable(attribute.entity)
      .set({ ...touched, custom_attributes: sql<string>`case id ${sql.join(texts, sql` `)} end` })
      .where(
        'id',
        'in',
        part.map(({ id }) => id),
      )
      .execute()
  }
}

/** An attribute, and the records that it shall name no more. */
export interface Dropping {
  attribute: Attribute
  gone: readonly number[]
}

/**
 * Takes records that are about to go from those of one entity that refer to them: one change of each, with its events, however
 * many of its attributes do (DOMAIN 8.3).
 */
export async function dropReferences(
  ctx: Context,
  entity: EntityType,
  droppings: readonly Dropping[],
  isItself: (id: number) => boolean,
): Promise<void> {
  const resource = resourceOf(ctx, entity)
  if (!resource) return
  const all = withoutVisibility(ctx)
  const changes = new Map<number, { attribute: Attribute; next: unknown }[]>()
  for (const { attribute, gone } of droppings)
    for (const [id, value] of await valuesOf(ctx, attribute, gone))
      changes.set(id, [...(changes.get(id) ?? []), { attribute, next: without(value, new Set(gone)) }])
  for (const [id, values] of changes) {
    if (isItself(id)) continue
    const before = (await resource.get(all, id)) as Snapshot
    const custom_attributes = Object.fromEntries(values.map(({ attribute, next }) => [attribute.code, next]))
    await write(all, resource.events.update, { entity, input: { custom_attributes }, id, before }, async (ctx) => {
      for (const { attribute, next } of values) await store(ctx, attribute, id, next)
      await resource.touch(ctx, id)
      return { id, entity: (await resource.get(ctx, id)) as Snapshot }
    })
  }
}

async function store(ctx: Context, attribute: Attribute, id: number, value: unknown): Promise<void> {
  const row = ctx.db.selectFrom(attribute.entity).select('custom_attributes').where('id', '=', id)
  const stored = { ...readStored((await row.executeTakeFirstOrThrow()).custom_attributes) }
  if (value === null) delete stored[attribute.code]
  else stored[attribute.code] = value
  await ctx.db
    .updateTable(attribute.entity)
    .set({ custom_attributes: JSON.stringify(stored) })
    .where('id', '=', id)
    .execute()
  if (attribute.isUnique) {
    const keys = value === null ? [] : (typeOf(attribute)?.keys?.(value) ?? [])
    await keepKeys(ctx, attribute, id, keys)
  }
}
