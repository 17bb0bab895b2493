// What a body makes of an attribute: the columns to write, and everything that is wrong with it or stands against it. When it
// turns unique, or no longer is, the keys of all records are kept or let go of once nothing is wrong.
import type { Schema } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import { inUse, type ValidationErrors } from '../../kernel/errors.ts'
import type { Writing } from '../../kernel/resource/define-resource.ts'
import { fold } from '../../kernel/values/format.ts'
import { valuesOf } from './carriers.ts'
import { planOptions } from './options.ts'
import { optionsOf, presentOption, presentRow, type Row } from './rows.ts'
import { checkCode, checkFit, defaultOf, refuseOtherLookup, refuseProtected } from './rules.ts'
import { type Attribute, type AttributeRow, attributeOf, type EntityType, type Option } from './set.ts'
import { typeOf } from './types.ts'
import { duplicates, keepAllKeys, seenOf } from './unique.ts'

type Body = Schema<'AttributeUpdate'>

const bit = (sent: boolean | undefined): number | undefined => (sent === undefined ? undefined : sent ? 1 : 0)

/** The attribute as it will be, with the options it will have. */
function asWritten(body: Body, current: Row | null, options: readonly Option[]): Attribute {
  const lookup = body.lookup_type === undefined ? (current?.lookup_type ?? null) : body.lookup_type
  const row: AttributeRow = {
    id: current?.id ?? 0,
    code: current?.code ?? body.code ?? '',
    name: body.name ?? current?.name ?? '',
    type: current?.type ?? body.type ?? '',
    entity_type: current?.entity_type ?? body.entity_type ?? '',
    lookup_type: lookup,
    validation: body.validation === undefined ? (current?.validation ?? null) : body.validation,
    is_required: bit(body.is_required) ?? current?.is_required ?? 0,
    is_unique: bit(body.is_unique) ?? current?.is_unique ?? 0,
    // The default was one of other records.
    default_value: lookup === current?.lookup_type ? current.default_value : null,
    is_user_defined: current?.is_user_defined ?? 1,
  }
  return attributeOf(row, options)
}

/** `force`: options are removed from the records that have them. */
export async function columnsOf(body: Body, { ctx, current, found }: Writing<Row>, force: boolean) {
  const present = current ? await optionsOf(ctx, [current.id]) : []
  if (current) {
    refuseProtected(body, { ...presentRow(current), options: present.map(presentOption) })
    for (const field of ['code', 'type', 'entity_type'] as const)
      if (body[field] !== undefined && body[field] !== current[field]) found.invalid(field, 'It cannot change.')
  } else await checkCode(ctx, body.entity_type as EntityType, body.code ?? '', found)
  const plan = planOptions(present, body.options, found)
  const kept = plan.options.flatMap(({ id, ...rest }) => (id === null ? [] : [{ id, ...rest }]))
  const attribute = asWritten(body, current, kept)
  if (attribute.isOwn) checkFit(attribute, plan.options.length, found)
  const gone = new Set(plan.removed.map(({ id }) => id))
  const namesGone = [attribute.initial].flat().some((id) => gone.has(id as number))
  const was = current && attributeOf(current, present)
  const initial = await defaultOf({ ctx, found }, attribute, nextDefault(body, was, attribute))
  const turns = was !== null && was.isUnique !== attribute.isUnique
  const keys = turns && attribute.isUnique ? await keysOfAll(ctx, attribute) : new Map<number, string[]>()
  await findDuplicates(ctx, attribute, keys, found)
  found.throwIfAny()
  if (was?.isOwn) await refuseOtherLookup(ctx, was, attribute.lookup)
  if (was && gone.size > 0 && !force) await refuseUsed(ctx, was, plan.removed, namesGone && initial === undefined)
  if (turns) await keepAllKeys(ctx, attribute, keys)
  return {
    code: current ? undefined : body.code,
    name: body.name,
    name_key: body.name === undefined ? undefined : fold(body.name),
    type: current ? undefined : body.type,
    entity_type: current ? undefined : body.entity_type,
    lookup_type: body.lookup_type,
    validation: body.validation,
    sort_order: body.sort_order ?? (current ? undefined : await nextPlace(ctx, attribute.entity)),
    is_required: bit(body.is_required),
    is_unique: bit(body.is_unique),
    quick_add: bit(body.quick_add),
    default_value: initial === undefined && namesGone ? null : initial,
  }
}

/** A default that is not sent goes when it named other records, and is looked at once more when it must look otherwise. */
function nextDefault(body: Body, was: Attribute | null, attribute: Attribute): unknown {
  if (body.default_value !== undefined || !was || was.initial === null) return body.default_value
  if (was.lookup !== attribute.lookup) return null
  return was.validation === attribute.validation ? undefined : was.initial
}

async function nextPlace({ db }: Context, entity: EntityType): Promise<number> {
  const { last } = await db
    .selectFrom('attributes')
    .select((eb) => eb.fn.max('sort_order').as('last'))
    .where('entity_type', '=', entity)
    .executeTakeFirstOrThrow()
  return (last ?? 0) + 1
}

/** The keys of every record, by the attribute or by the built-in field it stands for. */
async function keysOfAll(ctx: Context, attribute: Attribute): Promise<Map<number, string[]>> {
  const values = attribute.isOwn ? await valuesOf(ctx, attribute) : await builtIn(ctx, attribute)
  const keys = typeOf(attribute)?.keys
  return new Map(
    [...values].map(([id, value]) => [id, value === null ? [] : (keys?.(value) ?? []).map(({ key }) => key)]),
  )
}

/** Of the built-in attributes, `contact_numbers` alone may change. */
async function builtIn({ db }: Context, { entity }: Attribute): Promise<Map<number, unknown>> {
  const rows = await db
    .selectFrom(entity as 'persons' | 'warehouses')
    .select(['id', 'contact_numbers as points'])
    .execute()
  return new Map(rows.map(({ id, points }) => [id, JSON.parse(points)]))
}

async function findDuplicates(
  ctx: Context,
  attribute: Attribute,
  keys: ReadonlyMap<number, readonly string[]>,
  found: ValidationErrors,
): Promise<void> {
  const ids = duplicates(keys, 20)
  const seen = await seenOf(ctx, attribute.entity, ids)
  for (const id of ids)
    found.taken('is_unique', attribute.entity, seen.has(id) ? id : null, 'Several records have the same value.')
}

/** Throws 409 while records have one of the options, or the attribute itself has it as its default. */
async function refuseUsed(
  ctx: Context,
  attribute: Attribute,
  removed: readonly Option[],
  isDefault: boolean,
): Promise<void> {
  const users = await valuesOf(
    ctx,
    attribute,
    removed.map(({ id }) => id),
  )
  if (users.size === 0 && !isDefault) return
  const ids = [...users.keys()].slice(0, 20)
  const seen = await seenOf(ctx, attribute.entity, ids)
  const field = `custom_attributes.${attribute.code}`
  throw inUse(
    `${removed.map(({ name }) => name).join(', ')}: in use; send force=true to take it from the records that have it.`,
    ids.map((id) => ({ entity_type: attribute.entity, id: seen.has(id) ? id : null, field })),
  )
}
