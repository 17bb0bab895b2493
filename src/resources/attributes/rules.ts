// Validates attribute definitions beyond the schema of the body. A built-in attribute
// can change only its name, sort order and `quick_add`.
import type { Schema } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import { inUse, isProtected, type ValidationErrors } from '../../kernel/errors.ts'
import { refuseNamed } from '../../kernel/history/stored-references.ts'
import { type Attribute, attributeSet, type EntityType } from './attribute-set.ts'
import { lookups } from './lookups.ts'
import { hasValues } from './record-values.ts'
import { parseValue } from './schemas.ts'
import { entityFields } from './served-contract.ts'
import { hasOptions, valueTypeOf } from './types.ts'
import { checkNamedRecords, toStored } from './validate-values.ts'

type Body = Schema<'AttributeUpdate'>
const maxAttributes = 300

/** Throws 409 when the body changes a protected setting of a built-in attribute. */
export function refuseProtected(body: Body, shown: Schema<'AttributeDefinition'>): void {
  if (shown.is_user_defined) return
  const writable = ['name', 'sort_order', 'quick_add', ...(shown.code === 'contact_numbers' ? ['is_unique'] : [])]
  for (const [key, value] of Object.entries(body) as [keyof Body, unknown][]) {
    const isSame = JSON.stringify(value ?? null) === JSON.stringify(shown[key] ?? null)
    if (!isSame && !writable.includes(key)) throw isProtected(`${shown.name} is built in; its ${key} cannot change.`)
  }
}

/**
 * Reports a code that is already used by a field or another attribute of the entity. The unique
 * database index catches the same code in concurrent requests.
 */
export async function checkCode(
  ctx: Context,
  entity: EntityType,
  code: string,
  errors: ValidationErrors,
): Promise<void> {
  const set = await attributeSet(ctx)
  const isBuiltIn = set.system.get(entity)?.some((attribute) => attribute.code === code) ?? false
  if (isBuiltIn || entityFields(ctx.services.contract, entity).has(code))
    errors.invalid('code', `${entity} have a field ${code} of their own.`)
  // The names of inherited properties, such as `constructor`, confuse programs that read the JSON.
  if (code in Object.prototype) errors.invalid('code', `The word ${code} is reserved.`)
  const other = set.own.get(entity)?.find((attribute) => attribute.code === code)
  if (other) errors.taken('code', 'attributes', other.id, 'Another attribute of this resource has this code.')
  if ((set.own.get(entity)?.length ?? 0) >= maxAttributes)
    errors.invalid('entity_type', `Must not have more than ${maxAttributes} attributes of its own.`)
}

const refersToRecords = (type: Attribute['type']): boolean => type === 'lookup' || hasOptions(type)

/**
 * Reports settings that do not fit the attribute's type. `attribute` has the settings after the
 * change.
 */
export function checkAttributeSettings(attribute: Attribute, optionCount: number, errors: ValidationErrors): void {
  const { type, lookup, validation, isUnique, isRequired } = attribute
  const chooses = hasOptions(type)
  if (type === 'lookup' && lookup === null) errors.invalid('lookup_type', 'The field is required.')
  if (lookup !== null && !refersToRecords(type))
    errors.invalid('lookup_type', `An attribute of type ${type} refers to nothing.`)
  if (validation !== null && type !== 'text') errors.invalid('validation', 'Only a text can be validated.')
  if (isUnique && valueTypeOf(attribute)?.keys === undefined)
    errors.invalid('is_unique', `An attribute of type ${type} cannot be unique.`)
  if (isRequired && valueTypeOf(attribute) === undefined)
    errors.invalid('is_required', `An attribute of type ${type} has no value.`)
  if (optionCount > 0 && (!chooses || lookup !== null))
    errors.invalid(
      'options',
      chooses ? 'It refers to records instead.' : `An attribute of type ${type} has no options.`,
    )
}

/**
 * Validates the default like a value and returns it as JSON text to store. Returns undefined when
 * the body has no default or an invalid one.
 */
export async function checkDefault(
  writing: { ctx: Context; errors: ValidationErrors },
  attribute: Attribute,
  sent: unknown,
): Promise<string | null | undefined> {
  if (sent === undefined || sent === null) return sent
  const { ctx, errors } = writing
  const type = valueTypeOf(attribute)
  if (!type || ['image', 'file'].includes(attribute.type)) {
    errors.invalid('default_value', `An attribute of type ${attribute.type} has no default.`)
    return undefined
  }
  // `checkAttributeSettings` has reported the lookup type. The values of this type are not ids, so
  // the default cannot be checked.
  if (attribute.lookup !== null && !refersToRecords(attribute.type)) return undefined
  const { value, errors: refused } = parseValue(ctx, attribute, 'default_value', sent)
  for (const [field, sentences] of Object.entries(refused))
    for (const sentence of sentences) errors.invalid(field, sentence)
  if (value === null) return null
  if (Object.keys(refused).length > 0) return undefined
  const stored = toStored(attribute, type, value, null, 'default_value', errors)
  await checkNamedRecords(writing, attribute, 'default_value', stored, attribute.initial)
  return stored === null ? null : JSON.stringify(stored)
}

/**
 * Throws 409 when the lookup type changes while records still have values of the old lookup type,
 * or while stored rules name the attribute: their ids would name records of the new type.
 */
export async function refuseOtherLookup(ctx: Context, was: Attribute, lookup: Attribute['lookup']): Promise<void> {
  if (lookup === was.lookup) return
  await refuseNamed(ctx, { entity: 'attributes', ids: [was.id], called: `The attribute ${was.name}` })
  if (!(await hasValues(ctx, was))) return
  const kind = was.lookup === null ? 'its own options' : lookups[was.lookup].noun
  throw inUse(`${was.entity} have values that refer to ${kind}.`, [])
}
