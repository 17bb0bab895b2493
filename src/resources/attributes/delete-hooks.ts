// Removes references to a deleted record from the custom attributes of all entities and from the
// attributes' defaults.
import type { RecordChange } from '../../jobs/removals.ts'
import type { Context } from '../../kernel/context.ts'
import type { DeleteHook } from '../../kernel/history/delete-hooks.ts'
import { attributeSet, type EntityType } from './attribute-set.ts'
import { type LookupType, lookupTypeOf } from './lookups.ts'
import { type DroppedReference, dropReferences, referenceChanges } from './record-values.ts'
import { attributes } from './resource.ts'
import { withoutIds } from './restore-values.ts'
import { valueTypeOf } from './types.ts'

/**
 * Queries for the child records that are deleted with their parent, by lookup type of the parent.
 * Contains only children that attributes can refer to.
 */
const childrenOf: Partial<Record<LookupType, (ctx: Context, id: number) => Promise<{ id: number }[]>>> = {
  lead_pipelines: ({ db }, id) =>
    db.selectFrom('lead_pipeline_stages').select('id').where('lead_pipeline_id', '=', id).execute(),
  warehouses: ({ db }, id) =>
    db.selectFrom('warehouse_locations').select('id').where('warehouse_id', '=', id).execute(),
}
const childLookup: Partial<Record<LookupType, LookupType>> = {
  lead_pipelines: 'lead_pipeline_stages',
  warehouses: 'locations',
}

const dropReferencesTo =
  (entity: string, lookup: LookupType): DeleteHook =>
  async (ctx, id) => {
    for (const { carrier, droppings, isItself } of await droppingsOf(ctx, { entity, lookup, id })) {
      for (const dropping of droppings) await dropDefault(ctx, dropping)
      await dropReferences(ctx, carrier, droppings, isItself)
    }
  }

/** Returns the attributes that may refer to a record, by the entity that has them. */
async function droppingsOf(
  ctx: Context,
  { entity, lookup, id }: { entity: string; lookup: LookupType; id: number },
): Promise<{ carrier: EntityType; droppings: DroppedReference[]; isItself: (other: number) => boolean }[]> {
  const { own } = await attributeSet(ctx)
  const gone = new Map<LookupType, readonly number[]>([[lookup, [id]]])
  const kind = childLookup[lookup]
  if (kind && [...own.values()].flat().some((attribute) => attribute.lookup === kind))
    gone.set(
      kind,
      ((await childrenOf[lookup]?.(ctx, id)) ?? []).map((child) => child.id),
    )
  return [...own].map(([carrier, attributes]) => ({
    carrier,
    droppings: attributes.flatMap((attribute): DroppedReference[] => {
      const ids = attribute.lookup === null ? undefined : gone.get(attribute.lookup)
      return ids === undefined || ids.length === 0 ? [] : [{ attribute, gone: ids }]
    }),
    isItself: (other) => carrier === entity && other === id,
  }))
}

/**
 * Returns the changes that remove the references of custom attributes to a record, of up to `limit`
 * records. A changed record is not found again.
 */
export async function referencesTo(ctx: Context, entity: string, id: number, limit: number): Promise<RecordChange[]> {
  const lookup = lookupTypeOf.get(entity)
  const found: RecordChange[] = []
  for (const { carrier, droppings, isItself } of lookup ? await droppingsOf(ctx, { entity, lookup, id }) : []) {
    if (found.length >= limit) break
    const rest = { isItself, limit: limit - found.length + 1 }
    found.push(...(await referenceChanges(ctx, carrier, droppings, rest)))
  }
  return found.slice(0, limit)
}

async function dropDefault(ctx: Context, { attribute, gone }: DroppedReference): Promise<void> {
  const { initial } = attribute
  if (![initial].flat().some((each) => gone.includes(each as number))) return
  const left = withoutIds(initial, new Set(gone))
  const show = valueTypeOf(attribute)?.show
  await attributes.update(ctx, attribute.id, { default_value: left === null || !show ? left : show(left) })
}

/**
 * Delete hooks by entity, for every lookup type. Files need no hook: a file in an attribute cannot
 * be deleted.
 */
export const deleteHooks: Record<string, DeleteHook> = Object.fromEntries(
  [...lookupTypeOf].map(([entity, lookup]) => [entity, dropReferencesTo(entity, lookup)]),
)
