// Converts a body to the columns of an attribute and reports all errors of the body. If uniqueness
// changes, also stores or deletes the unique keys of all records.
import { type SqlBool, sql } from 'kysely'
import type { Schema } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import { inUse, type ValidationErrors } from '../../kernel/errors.ts'
import { refuseNamed } from '../../kernel/history/stored-references.ts'
import type { Writing } from '../../kernel/resource/define-resource.ts'
import { yieldIfDue } from '../../kernel/runtime/cooperative.ts'
import { textKey } from '../../kernel/values/names.ts'
import { readInSlices } from '../../kernel/write/row-slices.ts'
import {
  type Attribute,
  type AttributeOption,
  type AttributeRow,
  type EntityType,
  toAttribute,
} from './attribute-set.ts'
import { planOptions } from './options.ts'
import { valuesOf } from './record-values.ts'
import { type FullAttributeRow, loadOptions, presentAttribute, presentOption } from './rows.ts'
import { checkAttributeSettings, checkCode, checkDefault, refuseOtherLookup, refuseProtected } from './rules.ts'
import { valueTypeOf } from './types.ts'
import { findDuplicateIds, replaceAllUniqueKeys, visibleAmong } from './unique-keys.ts'

type Body = Schema<'AttributeUpdate'>

const toBit = (sent: boolean | undefined): number | undefined => (sent === undefined ? undefined : sent ? 1 : 0)

function attributeAfter(body: Body, current: FullAttributeRow | null, options: readonly AttributeOption[]): Attribute {
  const lookup = body.lookup_type === undefined ? (current?.lookup_type ?? null) : body.lookup_type
  const row: AttributeRow = {
    id: current?.id ?? 0,
    code: current?.code ?? body.code ?? '',
    name: body.name ?? current?.name ?? '',
    type: current?.type ?? body.type ?? '',
    entity_type: current?.entity_type ?? body.entity_type ?? '',
    lookup_type: lookup,
    validation: body.validation === undefined ? (current?.validation ?? null) : body.validation,
    is_required: toBit(body.is_required) ?? current?.is_required ?? 0,
    is_unique: toBit(body.is_unique) ?? current?.is_unique ?? 0,
    // A default contains ids of the old lookup type, so a new lookup type clears the default.
    default_value: lookup === current?.lookup_type ? current.default_value : null,
    is_user_defined: current?.is_user_defined ?? 1,
  }
  return toAttribute(row, options)
}

/**
 * Returns the columns to write and the plan of the options. Without `force`, options that records
 * use cannot be deleted. With `force`, saving removes deleted options from the records.
 */
export async function toAttributeRow(body: Body, { ctx, current, errors }: Writing<FullAttributeRow>, force: boolean) {
  const present = current ? await loadOptions(ctx, [current.id]) : []
  if (current) {
    refuseProtected(body, { ...presentAttribute(current), options: present.map(presentOption) })
    for (const field of ['code', 'type', 'entity_type'] as const)
      if (body[field] !== undefined && body[field] !== current[field]) errors.invalid(field, 'It cannot change.')
  } else await checkCode(ctx, body.entity_type as EntityType, body.code ?? '', errors)
  const plan = planOptions(present, body.options, errors)
  const kept = plan.options.flatMap(({ id, ...rest }) => (id === null ? [] : [{ id, ...rest }]))
  const attribute = attributeAfter(body, current, kept)
  if (attribute.isOwn) checkAttributeSettings(attribute, plan.options.length, errors)
  const gone = new Set(plan.removed.map(({ id }) => id))
  const namesGone = [attribute.initial].flat().some((id) => gone.has(id as number))
  const was = current && toAttribute(current, present)
  const initial = await checkDefault({ ctx, errors }, attribute, nextDefault(body, was, attribute))
  const turns = was !== null && was.isUnique !== attribute.isUnique
  const keys = turns && attribute.isUnique ? await keysOfAllRecords(ctx, attribute) : new Map<number, string[]>()
  await findDuplicates(ctx, attribute, keys, errors)
  errors.throwIfAny()
  if (was?.isOwn) await refuseOtherLookup(ctx, was, attribute.lookup)
  for (const { id, name } of plan.removed)
    await refuseNamed(ctx, { entity: 'options', ids: [id], called: `The option ${name}` })
  if (was && gone.size > 0 && !force)
    await refuseUsedOptions(ctx, was, plan.removed, namesGone && initial === undefined)
  if (turns) await replaceAllUniqueKeys(ctx, attribute, keys)
  const columns = {
    code: current ? undefined : body.code,
    name: body.name,
    name_key: body.name === undefined ? undefined : textKey(body.name),
    type: current ? undefined : body.type,
    entity_type: current ? undefined : body.entity_type,
    lookup_type: body.lookup_type,
    validation: body.validation,
    sort_order: body.sort_order ?? (current ? undefined : await nextSortOrder(ctx, attribute.entity)),
    is_required: toBit(body.is_required),
    is_unique: toBit(body.is_unique),
    quick_add: toBit(body.quick_add),
    default_value: initial === undefined && namesGone ? null : initial,
  }
  return { columns, present, plan }
}

/**
 * Returns the default to validate and store. Undefined leaves the stored default unchanged. If the
 * lookup type changes, the default becomes null. If `validation` changes, the stored default is
 * validated again.
 */
function nextDefault(body: Body, was: Attribute | null, attribute: Attribute): unknown {
  if (body.default_value !== undefined || !was || was.initial === null) return body.default_value
  if (was.lookup !== attribute.lookup) return null
  return was.validation === attribute.validation ? undefined : was.initial
}

async function nextSortOrder({ db }: Context, entity: EntityType): Promise<number> {
  const { last } = await db
    .selectFrom('attributes')
    .select((eb) => eb.fn.max('sort_order').as('last'))
    .where('entity_type', '=', entity)
    .executeTakeFirstOrThrow()
  return (last ?? 0) + 1
}

async function keysOfAllRecords(ctx: Context, attribute: Attribute): Promise<Map<number, string[]>> {
  const values = attribute.isOwn ? await valuesOf(ctx, attribute) : await builtInValues(ctx, attribute)
  const keys = valueTypeOf(attribute)?.keys
  const found = new Map<number, string[]>()
  for (const [id, value] of values) {
    found.set(id, value === null ? [] : (keys?.(value) ?? []).map(({ key }) => key))
    await yieldIfDue()
  }
  return found
}

/**
 * Returns the values of a built-in attribute, by record id. Only the built-in attribute
 * `contact_numbers` can become unique.
 */
async function builtInValues(ctx: Context, { entity }: Attribute): Promise<Map<number, unknown>> {
  const rows = { table: entity, where: sql<SqlBool>`true`, isScan: true }
  const found = await readInSlices<{ id: number; points: string }>(ctx, rows, sql`id, contact_numbers as points`)
  const values = new Map<number, unknown>()
  for (const { id, points } of found) {
    values.set(id, JSON.parse(points))
    await yieldIfDue()
  }
  return values
}

async function findDuplicates(
  ctx: Context,
  attribute: Attribute,
  keys: ReadonlyMap<number, readonly string[]>,
  errors: ValidationErrors,
): Promise<void> {
  const ids = await findDuplicateIds(keys, 20)
  const seen = await visibleAmong(ctx, attribute.entity, ids)
  for (const id of ids)
    errors.taken('is_unique', attribute.entity, seen.has(id) ? id : null, 'Several records have the same value.')
}

/** Throws 409 when a record or the attribute's default uses one of the removed options. */
async function refuseUsedOptions(
  ctx: Context,
  attribute: Attribute,
  removed: readonly AttributeOption[],
  isDefault: boolean,
): Promise<void> {
  const users = await valuesOf(
    ctx,
    attribute,
    removed.map(({ id }) => id),
  )
  if (users.size === 0 && !isDefault) return
  const ids = [...users.keys()].slice(0, 20)
  const seen = await visibleAmong(ctx, attribute.entity, ids)
  const field = `custom_attributes.${attribute.code}`
  const used = new Set([...users.values(), attribute.initial].flat())
  throw inUse(
    `${removed
      .filter(({ id }) => used.has(id))
      .map(({ name }) => name)
      .join(', ')}: in use; send force=true to take it from the records that have it.`,
    ids.map((id) => ({ entity_type: attribute.entity, id: seen.has(id) ? id : null, field })),
  )
}
