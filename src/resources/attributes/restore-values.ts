// Restores the custom attributes of a deleted record. Drops and reports values that
// are no longer valid, or whose attribute, option, record or file was deleted. Refuses a unique
// value that another record now has.
import type { Context } from '../../kernel/context.ts'
import { ValidationErrors } from '../../kernel/errors.ts'
import type { OnRestore, RestoredRow } from '../../kernel/resource/definition.ts'
import { fileRefs } from '../files/attach.ts'
import { type Attribute, customAttributes, type EntityType } from './attribute-set.ts'
import { entityOfLookup, findLabels } from './lookups.ts'
import { parseValues } from './schemas.ts'
import type { ValueType } from './types/value-type.ts'
import { holdsFile, withValueTypes } from './types.ts'
import { checkUniqueKeys, saveUniqueKeys } from './unique-keys.ts'
import { parseStored, toStored } from './validate-values.ts'

export async function restoreValues(
  ctx: Context,
  entity: EntityType,
  { row, drop }: RestoredRow,
): Promise<Awaited<ReturnType<OnRestore>>> {
  const stored = parseStored(String(row.custom_attributes ?? '{}'))
  const id = Number(row.id)
  const own = await customAttributes(ctx, entity)
  const named = withValueTypes(own).filter(({ attribute }) => (stored[attribute.code] ?? null) !== null)
  const others = await changedSince(
    ctx,
    { entity, id },
    named.map(({ attribute }) => attribute.id),
  )
  const dropAll = (attribute: Attribute): void =>
    drop({ entity_type: 'attributes', id: attribute.id, ...fieldOf(attribute) })
  const left: RestoredValue[] = []
  for (const { attribute, type } of named) {
    if (others.has(attribute.id)) {
      dropAll(attribute)
      continue
    }
    const gone = await missingIds(ctx, attribute, stored[attribute.code])
    for (const each of gone.ids) drop({ entity_type: gone.entity, id: each, ...fieldOf(attribute) })
    const value = withoutIds(stored[attribute.code], new Set(gone.ids))
    if (value !== null) left.push({ attribute, type, value })
  }
  const unfit = misfits(ctx, own, left)
  for (const { attribute } of left) if (unfit.has(attribute.id)) dropAll(attribute)
  const back = left.filter(({ attribute }) => !unfit.has(attribute.id))
  await claimKeys(ctx, id, back)
  return {
    custom_attributes: JSON.stringify(Object.fromEntries(back.map((each) => [each.attribute.code, each.value]))),
  }
}

interface RestoredValue {
  attribute: Attribute
  type: ValueType
  value: unknown
}

const fieldOf = ({ code }: Attribute): { field: string } => ({ field: `custom_attributes.${code}` })

/**
 * Returns the ids of attributes that were recreated or got another lookup type after the record was
 * deleted. Their stored values have lost their meaning. Where the event log no longer reaches back
 * to the deletion, any change of a lookup counts as another lookup type.
 */
async function changedSince(
  { db }: Context,
  { entity, id }: { entity: EntityType; id: number },
  attributeIds: readonly number[],
): Promise<ReadonlySet<number>> {
  if (attributeIds.length === 0) return new Set()
  const deletion = await db
    .selectFrom('archives')
    .select(['event_id', 'created_at'])
    .where('entity_type', '=', entity)
    .where('entity_id', '=', id)
    .orderBy('id', 'desc')
    .executeTakeFirstOrThrow()
  const oldest = await db.selectFrom('events').select('id').orderBy('id').limit(1).executeTakeFirst()
  if (oldest === undefined || oldest.id > deletion.event_id) {
    const rows = await db
      .selectFrom('attributes')
      .select('id')
      .where('id', 'in', attributeIds)
      .where((eb) =>
        eb.or([
          eb('created_at', '>', deletion.created_at),
          eb.and([eb('lookup_type', 'is not', null), eb('updated_at', '>', deletion.created_at)]),
        ]),
      )
      .execute()
    return new Set(rows.map((row) => row.id))
  }
  const changes = await db
    .selectFrom('events')
    .select(['entity_id', 'name', 'changed'])
    .where('entity_type', '=', 'attributes')
    .where('entity_id', 'in', attributeIds)
    .where('id', '>', deletion.event_id)
    .execute()
  const isOther = ({ name, changed }: { name: string; changed: string }): boolean =>
    name.endsWith('.create.after') || (JSON.parse(changed) as string[]).includes('lookup_type')
  return new Set(changes.filter(isOther).map((change) => Number(change.entity_id)))
}

/**
 * Returns the ids of attributes that no longer accept their stored value. Ignores whether an
 * attribute is required.
 */
function misfits(ctx: Context, own: readonly Attribute[], left: readonly RestoredValue[]): ReadonlySet<number> {
  const shown = left.map(
    ({ attribute, type, value }) => [attribute.code, type.show ? type.show(value) : value] as const,
  )
  const { values, errors } = parseValues(ctx, own, Object.fromEntries(shown))
  const wrong = new Set(Object.keys(errors).map((field) => field.split('.')[1]))
  const fits = ({ attribute, type }: RestoredValue): boolean => {
    const errors = new ValidationErrors()
    if (wrong.has(attribute.code)) return false
    toStored({ ...attribute, isRequired: false }, type, values[attribute.code], null, '', errors)
    return !errors.any
  }
  return new Set(left.filter((each) => !fits(each)).map(({ attribute }) => attribute.id))
}

/**
 * Stores the unique keys of the restored values. Throws 409 with all values that another record now
 * has.
 */
async function claimKeys(ctx: Context, id: number, back: readonly RestoredValue[]): Promise<void> {
  const errors = new ValidationErrors()
  const unique = back
    .filter(({ attribute }) => attribute.isUnique)
    .map(({ attribute, type, value }) => ({ attribute, keys: type.keys?.(value) ?? [] }))
  for (const { attribute, keys } of unique)
    await checkUniqueKeys({ ctx, errors }, attribute, id, fieldOf(attribute).field, keys)
  errors.throwIfAny()
  for (const { attribute, keys } of unique) await saveUniqueKeys(ctx, attribute, id, keys)
}

/** Removes the ids from a list. Replaces a single id with null if it is among the ids. */
export function withoutIds(value: unknown, ids: ReadonlySet<number>): unknown {
  if (Array.isArray(value)) return ids.size === 0 ? value : value.filter((each) => !ids.has(each as number))
  return typeof value === 'number' && ids.has(value) ? null : value
}

/** Returns the ids in the value that no longer exist, and the entity that the ids refer to. */
async function missingIds(
  ctx: Context,
  attribute: Attribute,
  value: unknown,
): Promise<{ entity: string; ids: number[] }> {
  const ids = ([value].flat() as unknown[]).filter((each): each is number => typeof each === 'number')
  const missing = (known: { has(id: number): boolean }): number[] => ids.filter((each) => !known.has(each))
  if (holdsFile(attribute)) return { entity: 'files', ids: missing(await fileRefs(ctx, ids)) }
  if (attribute.lookup !== null)
    return { entity: entityOfLookup(attribute.lookup), ids: missing(await findLabels(ctx, attribute.lookup, ids)) }
  if (!['select', 'multiselect', 'checkbox'].includes(attribute.type)) return { entity: '', ids: [] }
  return { entity: 'options', ids: missing(new Set(attribute.options.map((option) => option.id))) }
}
