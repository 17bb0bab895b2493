// Puts the record of a merge in the place of a merged record in the custom attributes that name it,
// and takes this back. The event of the merge covers these changes, so they have none of their own.
import type { Context } from '../../kernel/context.ts'
import type { UnmergeConflict } from '../../kernel/history/moved-references.ts'
import type { MovedValue } from '../../kernel/resource/merging.ts'
import { attributeSet, type EntityType } from './attribute-set.ts'
import { lookupTypeOf } from './lookups.ts'
import { storeValue, valuesOf } from './record-values.ts'

/** Replaces the record `from` by the record `to` in all values. Returns the changed values. */
export async function moveValues(ctx: Context, entity: EntityType, from: number, to: number): Promise<MovedValue[]> {
  const moved: MovedValue[] = []
  for (const [carrier, attributes] of (await attributeSet(ctx)).own)
    for (const attribute of attributes.filter(({ lookup }) => lookup !== null && lookup === lookupTypeOf.get(entity)))
      for (const [id, before] of await valuesOf(ctx, attribute, [from])) {
        if (carrier === entity && id === from) continue
        const after = Array.isArray(before) ? [...new Set(before.map((each) => (each === from ? to : each)))] : to
        await storeValue(ctx, attribute, id, after)
        await ctx.services.resources.get(carrier)?.touch(ctx, id)
        moved.push({ entity: carrier, id, code: attribute.code, before, after })
      }
  return moved
}

/** Sets the values as they were before, except those that were changed since, and returns these. */
export async function moveValuesBack(ctx: Context, moved: readonly MovedValue[]): Promise<UnmergeConflict[]> {
  const conflicts: UnmergeConflict[] = []
  const { own } = await attributeSet(ctx)
  for (const { entity, id, code, before, after } of moved) {
    const attribute = own.get(entity as EntityType)?.find((each) => each.code === code)
    const present = attribute && (await valuesOf(ctx, attribute, [after].flat() as number[])).get(id)
    if (attribute === undefined || JSON.stringify(present) !== JSON.stringify(after)) {
      conflicts.push({ type: entity, id, field: `custom_attributes.${code}` })
      continue
    }
    await storeValue(ctx, attribute, id, before)
    await ctx.services.resources.get(entity)?.touch(ctx, id)
  }
  return conflicts
}

/** Moves those files of a record to another record of the type. Returns their ids. */
export async function moveFiles(
  { db }: Context,
  entity: EntityType,
  { from, to, ids }: { from: number; to: number; ids: readonly number[] },
): Promise<number[]> {
  if (ids.length === 0) return []
  const owned = db.selectFrom('files').select('id').where('owner_type', '=', entity).where('owner_id', '=', from)
  const files = (await owned.where('id', 'in', [...ids]).execute()).map((file) => file.id)
  if (files.length > 0) await db.updateTable('files').set({ owner_id: to }).where('id', 'in', files).execute()
  return files
}
