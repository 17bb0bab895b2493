// What refers to a record that is deleted lets go of it: custom attributes of any entity, and defaults (DOMAIN 8.3, 23).
import type { Context } from '../../kernel/context.ts'
import type { DeleteHook } from '../../kernel/history/delete-hooks.ts'
import { type Dropping, dropReferences } from './carriers.ts'
import { type LookupType, lookupOf } from './lookups.ts'
import { attributes } from './resource.ts'
import { without } from './restore-values.ts'
import { attributeSet } from './set.ts'
import { typeOf } from './types.ts'

/** What goes with a record and can be referred to itself. */
const inside: Partial<Record<LookupType, (ctx: Context, id: number) => Promise<{ id: number }[]>>> = {
  lead_pipelines: ({ db }, id) =>
    db.selectFrom('lead_pipeline_stages').select('id').where('lead_pipeline_id', '=', id).execute(),
  warehouses: ({ db }, id) =>
    db.selectFrom('warehouse_locations').select('id').where('warehouse_id', '=', id).execute(),
}
const kindInside: Partial<Record<LookupType, LookupType>> = {
  lead_pipelines: 'lead_pipeline_stages',
  warehouses: 'locations',
}

const releaseFrom =
  (entity: string, lookup: LookupType): DeleteHook =>
  async (ctx, id) => {
    const { own } = await attributeSet(ctx)
    const gone = new Map<LookupType, readonly number[]>([[lookup, [id]]])
    const kind = kindInside[lookup]
    if (kind && [...own.values()].flat().some((attribute) => attribute.lookup === kind))
      gone.set(
        kind,
        ((await inside[lookup]?.(ctx, id)) ?? []).map((child) => child.id),
      )
    for (const [carrier, attributes] of own) {
      const droppings = attributes.flatMap((attribute): Dropping[] => {
        const ids = attribute.lookup === null ? undefined : gone.get(attribute.lookup)
        return ids === undefined || ids.length === 0 ? [] : [{ attribute, gone: ids }]
      })
      for (const dropping of droppings) await dropDefault(ctx, dropping)
      await dropReferences(ctx, carrier, droppings, (other) => carrier === entity && other === id)
    }
  }

async function dropDefault(ctx: Context, { attribute, gone }: Dropping): Promise<void> {
  const { initial } = attribute
  if (![initial].flat().some((each) => gone.includes(each as number))) return
  const left = without(initial, new Set(gone))
  const show = typeOf(attribute)?.show
  await attributes.update(ctx, attribute.id, { default_value: left === null || !show ? left : show(left) })
}

/** By entity: whatever can be looked up. A file that a record names cannot be deleted (DOMAIN 16). */
export const releases: Record<string, DeleteHook> = Object.fromEntries(
  [...lookupOf].map(([entity, lookup]) => [entity, releaseFrom(entity, lookup)]),
)
