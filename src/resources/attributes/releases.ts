// What refers to a record that is deleted lets go of it: custom attributes of any entity, and defaults (DOMAIN 8.3, 23).
import type { Context } from '../../kernel/context.ts'
import type { Release } from '../../kernel/releases.ts'
import { dropReferences } from './carriers.ts'
import { type LookupType, lookupOf } from './lookups.ts'
import { without } from './mend.ts'
import { attributes } from './resource.ts'
import { type Attribute, attributeSet } from './set.ts'
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
  (entity: string, lookup: LookupType): Release =>
  async (ctx, id) => {
    const kind = kindInside[lookup]
    if (kind && (await refers(ctx, kind)))
      for (const child of (await inside[lookup]?.(ctx, id)) ?? []) await releaseFrom(kind, kind)(ctx, child.id)
    for (const own of (await attributeSet(ctx)).own.values()) {
      for (const attribute of own.filter((each) => each.lookup === lookup)) {
        await dropDefault(ctx, attribute, id)
        await dropReferences(ctx, attribute, id, (other) => attribute.entity === entity && other === id)
      }
    }
  }

const refers = async (ctx: Context, lookup: LookupType): Promise<boolean> =>
  [...(await attributeSet(ctx)).own.values()].flat().some((attribute) => attribute.lookup === lookup)

async function dropDefault(ctx: Context, attribute: Attribute, id: number): Promise<void> {
  const { initial } = attribute
  if (![initial].flat().includes(id)) return
  const left = without(initial, new Set([id]))
  const show = typeOf(attribute)?.show
  await attributes.update(ctx, attribute.id, { default_value: left === null || !show ? left : show(left) })
}

/** By entity: whatever can be looked up. A file that a record names cannot be deleted (DOMAIN 16). */
export const releases: Record<string, Release> = Object.fromEntries(
  [...lookupOf].map(([entity, lookup]) => [entity, releaseFrom(entity, lookup)]),
)
