// What an attribute must be (DOMAIN 8.1), beyond the shape of the body. Built-in attributes stay as they are but for their
// name and place; what a type cannot have is refused.
import type { Schema } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import { inUse, isProtected, type ValidationErrors } from '../../kernel/errors.ts'
import { hasValues } from './carriers.ts'
import { entityFields } from './document.ts'
import { lookups } from './lookups.ts'
import { checkReferences, kept } from './plan.ts'
import { readValue } from './schemas.ts'
import { type Attribute, attributeSet, type EntityType } from './set.ts'
import { hasOptions, typeOf } from './types.ts'

type Body = Schema<'AttributeUpdate'>
const most = 100

/** Throws 409 for a change of a built-in attribute that is needed as it is. */
export function refuseProtected(body: Body, shown: Schema<'AttributeDefinition'>): void {
  if (shown.is_user_defined) return
  const writable = ['name', 'sort_order', 'quick_add', ...(shown.code === 'contact_numbers' ? ['is_unique'] : [])]
  for (const [key, value] of Object.entries(body) as [keyof Body, unknown][]) {
    const isSame = JSON.stringify(value ?? null) === JSON.stringify(shown[key] ?? null)
    if (!isSame && !writable.includes(key)) throw isProtected(`${shown.name} is built in; its ${key} cannot change.`)
  }
}

/** Finds a code that is taken by a field of the entity. Another attribute's is found by the unique index of both. */
export async function checkCode(
  ctx: Context,
  entity: EntityType,
  code: string,
  found: ValidationErrors,
): Promise<void> {
  const set = await attributeSet(ctx)
  const isBuiltIn = set.system.get(entity)?.some((attribute) => attribute.code === code) ?? false
  if (isBuiltIn || entityFields(ctx.services.contract, entity).has(code))
    found.invalid('code', `${entity} have a field ${code} of their own.`)
  // Whatever reads JSON may take these for something else.
  if (code in Object.prototype) found.invalid('code', `The word ${code} is reserved.`)
  const other = set.own.get(entity)?.find((attribute) => attribute.code === code)
  if (other) found.taken('code', 'attributes', other.id, 'Another attribute of this resource has this code.')
  if ((set.own.get(entity)?.length ?? 0) >= most)
    found.invalid('entity_type', `Must not have more than ${most} attributes of its own.`)
}

/** Finds what does not fit the type: of the attribute as it will be. */
export function checkFit(attribute: Attribute, optionCount: number, found: ValidationErrors): void {
  const { type, lookup, validation, isUnique, isRequired } = attribute
  const chooses = hasOptions(type)
  if (type === 'lookup' && lookup === null) found.invalid('lookup_type', 'The field is required.')
  if (lookup !== null && type !== 'lookup' && !chooses)
    found.invalid('lookup_type', `An attribute of type ${type} refers to nothing.`)
  if (validation !== null && type !== 'text') found.invalid('validation', 'Only a text can be validated.')
  if (isUnique && typeOf(attribute)?.keys === undefined)
    found.invalid('is_unique', `An attribute of type ${type} cannot be unique.`)
  if (isRequired && typeOf(attribute) === undefined)
    found.invalid('is_required', `An attribute of type ${type} has no value.`)
  if (optionCount > 0 && (!chooses || lookup !== null))
    found.invalid('options', chooses ? 'It refers to records instead.' : `An attribute of type ${type} has no options.`)
}

/** The default as it is stored, checked like a value; undefined when nothing was sent. */
export async function defaultOf(
  writing: { ctx: Context; found: ValidationErrors },
  attribute: Attribute,
  sent: unknown,
): Promise<string | null | undefined> {
  if (sent === undefined || sent === null) return sent
  const { ctx, found } = writing
  const type = typeOf(attribute)
  if (!type || ['image', 'file'].includes(attribute.type)) {
    found.invalid('default_value', `An attribute of type ${attribute.type} has no default.`)
    return undefined
  }
  const { value, errors } = readValue(ctx, attribute, 'default_value', sent)
  for (const [field, sentences] of Object.entries(errors))
    for (const sentence of sentences) found.invalid(field, sentence)
  if (value === null) return null
  if (Object.keys(errors).length > 0) return undefined
  const stored = kept(attribute, type, value, null, 'default_value', found)
  await checkReferences(writing, attribute, 'default_value', stored, attribute.initial)
  return stored === null ? null : JSON.stringify(stored)
}

/** Throws 409 for another kind of records while values name records of the old one. */
export async function refuseOtherLookup(ctx: Context, was: Attribute, lookup: Attribute['lookup']): Promise<void> {
  if (lookup === was.lookup || !(await hasValues(ctx, was))) return
  const kind = was.lookup === null ? 'its own options' : lookups[was.lookup].noun
  throw inUse(`${was.entity} have values that refer to ${kind}.`, [])
}
