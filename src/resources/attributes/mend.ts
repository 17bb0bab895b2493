// Custom attributes of a record that comes back (DOMAIN 17.4): what an attribute, an option, a record or a file was deleted
// for meanwhile is left out, and told. What must be unique by now is refused when another record has it.

import type { Context } from '../../kernel/context.ts'
import { Findings } from '../../kernel/errors.ts'
import type { Mend, Mending } from '../../kernel/restore.ts'
import { fileRefs } from '../files/attach.ts'
import { type LookupType, labels, lookupOf } from './lookups.ts'
import { readStored } from './plan.ts'
import { type Attribute, type EntityType, ownAttributes } from './set.ts'
import { holdsFile, valued } from './types.ts'
import { checkKeys, keepKeys } from './unique.ts'

export async function mendValues(
  ctx: Context,
  entity: EntityType,
  { row, drop }: Mending,
): Promise<Awaited<ReturnType<Mend>>> {
  const stored = readStored(String(row.custom_attributes ?? '{}'))
  const mended: Record<string, unknown> = {}
  const found = new Findings()
  const id = Number(row.id)
  for (const { attribute, type } of valued(await ownAttributes(ctx, entity))) {
    const value = stored[attribute.code] ?? null
    if (value === null) continue
    const gone = await vanished(ctx, attribute, value)
    for (const each of gone.ids)
      drop({ entity_type: gone.entity, id: each, field: `custom_attributes.${attribute.code}` })
    const left = without(value, new Set(gone.ids))
    if (left === null) continue
    mended[attribute.code] = left
    if (!attribute.isUnique) continue
    const keys = type.keys?.(left) ?? []
    await checkKeys({ ctx, found }, attribute, id, `custom_attributes.${attribute.code}`, keys)
    found.settle()
    await keepKeys(
      ctx,
      attribute,
      id,
      keys.map(({ key }) => key),
    )
  }
  return { custom_attributes: JSON.stringify(mended) }
}

/** A value without some ids; null when nothing is left of it. */
export function without(value: unknown, ids: ReadonlySet<number>): unknown {
  if (Array.isArray(value)) return ids.size === 0 ? value : value.filter((each) => !ids.has(each as number))
  return typeof value === 'number' && ids.has(value) ? null : value
}

const entityOf = (lookup: LookupType): string =>
  [...lookupOf].find(([entity, type]) => type === lookup && entity !== lookup)?.[0] ?? lookup

/** What the value names and is gone. */
async function vanished(
  ctx: Context,
  attribute: Attribute,
  value: unknown,
): Promise<{ entity: string; ids: number[] }> {
  const ids = ([value].flat() as unknown[]).filter((each): each is number => typeof each === 'number')
  const missing = (known: { has(id: number): boolean }): number[] => ids.filter((each) => !known.has(each))
  if (holdsFile(attribute)) return { entity: 'files', ids: missing(await fileRefs(ctx, ids)) }
  if (attribute.lookup !== null)
    return { entity: entityOf(attribute.lookup), ids: missing(await labels(ctx, attribute.lookup, ids)) }
  if (!['select', 'multiselect', 'checkbox'].includes(attribute.type)) return { entity: '', ids: [] }
  return { entity: 'options', ids: missing(new Set(attribute.options.map((option) => option.id))) }
}
