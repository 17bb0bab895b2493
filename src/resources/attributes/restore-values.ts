// Custom attributes of a record that comes back (DOMAIN 17.4): what an attribute, an option, a record or a file was deleted
// for meanwhile is left out, and told; so is what the attribute does not take by now, or what was another's of the same code.
// What must be unique by now is refused when another record has it.
import type { Context } from '../../kernel/context.ts'
import { ValidationErrors } from '../../kernel/errors.ts'
import type { Mend, Mending } from '../../kernel/history/restore.ts'
import { fileRefs } from '../files/attach.ts'
import { type LookupType, labels, lookupOf } from './lookups.ts'
import { kept, readStored } from './plan.ts'
import { readValues } from './schemas.ts'
import { type Attribute, type EntityType, ownAttributes } from './set.ts'
import type { ValueType } from './types/type.ts'
import { holdsFile, valued } from './types.ts'
import { checkKeys, keepKeys } from './unique.ts'

export async function mendValues(
  ctx: Context,
  entity: EntityType,
  { row, drop }: Mending,
): Promise<Awaited<ReturnType<Mend>>> {
  const stored = readStored(String(row.custom_attributes ?? '{}'))
  const id = Number(row.id)
  const own = await ownAttributes(ctx, entity)
  const named = valued(own).filter(({ attribute }) => (stored[attribute.code] ?? null) !== null)
  const others = await madeSince(
    ctx,
    { entity, id },
    named.map(({ attribute }) => attribute.id),
  )
  const dropAll = (attribute: Attribute): void =>
    drop({ entity_type: 'attributes', id: attribute.id, ...at(attribute) })
  const left: Left[] = []
  for (const { attribute, type } of named) {
    if (others.has(attribute.id)) {
      dropAll(attribute)
      continue
    }
    const gone = await vanished(ctx, attribute, stored[attribute.code])
    for (const each of gone.ids) drop({ entity_type: gone.entity, id: each, ...at(attribute) })
    const value = without(stored[attribute.code], new Set(gone.ids))
    if (value !== null) left.push({ attribute, type, value })
  }
  const unfit = misfits(ctx, own, left)
  for (const { attribute } of left) if (unfit.has(attribute.id)) dropAll(attribute)
  const back = left.filter(({ attribute }) => !unfit.has(attribute.id))
  await takeKeys(ctx, id, back)
  return {
    custom_attributes: JSON.stringify(Object.fromEntries(back.map((each) => [each.attribute.code, each.value]))),
  }
}

interface Left {
  attribute: Attribute
  type: ValueType
  value: unknown
}

const at = ({ code }: Attribute): { field: string } => ({ field: `custom_attributes.${code}` })

/** The attributes among them that are others than when the record was deleted: made since, or of other records. */
async function madeSince(
  { db }: Context,
  { entity, id }: { entity: EntityType; id: number },
  attributeIds: readonly number[],
): Promise<ReadonlySet<number>> {
  if (attributeIds.length === 0) return new Set()
  const changes = await db
    .selectFrom('events')
    .select(['entity_id', 'name', 'changed'])
    .where('entity_type', '=', 'attributes')
    .where('entity_id', 'in', attributeIds)
    .where('id', '>', (eb) =>
      eb
        .selectFrom('archives')
        .select((eb) => eb.fn.max('event_id').as('event'))
        .where('entity_type', '=', entity)
        .where('archives.entity_id', '=', id),
    )
    .execute()
  const isOther = ({ name, changed }: { name: string; changed: string }): boolean =>
    name.endsWith('.create.after') || (JSON.parse(changed) as string[]).includes('lookup_type')
  return new Set(changes.filter(isOther).map((change) => Number(change.entity_id)))
}

/** The attributes that do not take their values by now; that one is required is no matter of what it has. */
function misfits(ctx: Context, own: readonly Attribute[], left: readonly Left[]): ReadonlySet<number> {
  const shown = left.map(
    ({ attribute, type, value }) => [attribute.code, type.show ? type.show(value) : value] as const,
  )
  const { values, errors } = readValues(ctx, own, Object.fromEntries(shown))
  const wrong = new Set(Object.keys(errors).map((field) => field.split('.')[1]))
  const fits = ({ attribute, type }: Left): boolean => {
    const found = new ValidationErrors()
    if (wrong.has(attribute.code)) return false
    kept({ ...attribute, isRequired: false }, type, values[attribute.code], null, '', found)
    return !found.any
  }
  return new Set(left.filter((each) => !fits(each)).map(({ attribute }) => attribute.id))
}

/** Throws 409 with every value that must be unique by now and that another record has. */
async function takeKeys(ctx: Context, id: number, back: readonly Left[]): Promise<void> {
  const found = new ValidationErrors()
  const unique = back
    .filter(({ attribute }) => attribute.isUnique)
    .map(({ attribute, type, value }) => ({ attribute, keys: type.keys?.(value) ?? [] }))
  for (const { attribute, keys } of unique) await checkKeys({ ctx, found }, attribute, id, at(attribute).field, keys)
  found.throwIfAny()
  for (const { attribute, keys } of unique) await keepKeys(ctx, attribute, id, keys)
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
