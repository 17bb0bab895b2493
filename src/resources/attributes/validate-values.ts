// Validates the custom attributes of a body and computes the JSON to store. This
// file writes nothing; the insert or update of the record stores the JSON.
import { isDeepStrictEqual } from 'node:util'
import { nearest } from '../../contract/input/did-you-mean.ts'
import type { Context } from '../../kernel/context.ts'
import type { ValidationErrors } from '../../kernel/errors.ts'
import { namedLike } from '../../kernel/values/names.ts'
import { checkFileReference } from '../files/attach.ts'
import { type Attribute, customAttributes, type EntityType } from './attribute-set.ts'
import { findChoosable, lookups } from './lookups.ts'
import { idsOfNames } from './named-values.ts'
import { parseValues } from './schemas.ts'
import { idOf } from './types/files.ts'
import type { ValueType } from './types/value-type.ts'
import { holdsFile, withValueTypes } from './types.ts'
import { checkUniqueKeys } from './unique-keys.ts'

export type StoredValues = Readonly<Record<string, unknown>>

interface Planning {
  ctx: Context
  errors: ValidationErrors
  /** The record before the change; null for a new record. */
  current: { id: number; custom_attributes: string } | null
}

/**
 * Parses stored values to an object without a prototype. Users choose the codes, so inherited keys
 * must not count as values.
 */
export const parseStored = (text: string): StoredValues => Object.assign(Object.create(null), JSON.parse(text))

const isEmpty = (value: unknown): boolean => value === null || (Array.isArray(value) && value.length === 0)
const isSame = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other)

/** Returns the JSON to store, or undefined when nothing changes. */
export async function planValues(
  entity: EntityType,
  sent: unknown,
  { ctx, errors, current }: Planning,
): Promise<string | undefined> {
  const attributes = await customAttributes(ctx, entity)
  if (sent === undefined && (current !== null || attributes.length === 0)) return undefined
  const stored = current ? parseStored(current.custom_attributes) : {}
  const named = await idsOfNames(ctx, attributes, sent ?? {})
  const { values, errors: found } = parseValues(ctx, attributes, named.values)
  // An unchanged value is always valid, even if the attribute no longer accepts it. A
  // client can therefore send back a fetched record.
  const same = new Set(
    withValueTypes(attributes)
      .filter(({ attribute: { code } }) => current !== null && Object.hasOwn(values, code))
      .filter(({ attribute, type }) => isShown(attribute, type, values[attribute.code], stored[attribute.code] ?? null))
      .map(({ attribute }) => `custom_attributes.${attribute.code}`),
  )
  const wrong = new Set<string>()
  const refused = { ...found, ...Object.fromEntries([...named.refused].map(([path, why]) => [path, [why]])) }
  for (const [field, sentences] of Object.entries(refused)) {
    const path = field.split('.').slice(0, 2).join('.')
    if (same.has(path)) continue
    wrong.add(path)
    const code = path.slice('custom_attributes.'.length)
    const attribute = attributes.find((each) => each.code === code)
    const hint = attribute && Object.hasOwn(values, code) ? optionHint(attribute, values[code]) : null
    for (const sentence of hint === null ? sentences : [hint]) errors.invalid(field, sentence)
  }
  const next: Record<string, unknown> = { ...stored }
  for (const { attribute, type } of withValueTypes(attributes)) {
    const { code } = attribute
    const path = `custom_attributes.${code}`
    const before = stored[code] ?? null
    const isSent = Object.hasOwn(values, code)
    if (same.has(path) || wrong.has(path) || (!isSent && current !== null)) continue
    const after = isSent ? toStored(attribute, type, values[code], before, path, errors) : defaultValueOf(attribute)
    if (attribute.isRequired && isEmpty(after) && !ctx.excused?.has(attribute.id))
      errors.invalid(path, 'The field is required.')
    if (isSame(after, before)) continue
    // The records in a default value were checked when the attribute was saved, so they are not
    // checked again.
    if (isSent) await checkNamedRecords({ ctx, errors }, attribute, path, after, before)
    if (attribute.isUnique && after !== null)
      await checkUniqueKeys({ ctx, errors }, attribute, current?.id ?? null, path, type.keys?.(after) ?? [])
    if (after === null) delete next[code]
    else next[code] = after
  }
  return isSame(next, stored) ? undefined : JSON.stringify(next)
}

/** Returns the sentence for the name of an option where its id is needed, or null. */
function optionHint({ options, lookup }: Attribute, sent: unknown): string | null {
  const name = [sent].flat().find((each) => typeof each === 'string' && !/^\d*$/.test(each))
  if (typeof name !== 'string' || lookup !== null || options.length === 0) return null
  const named = namedLike(options, name)[0]
  const like = nearest(
    name,
    options.map((option) => option.name),
  )
  const meant = named ?? options.find((option) => option.name === like)
  return `Must be the id of an option.${meant ? ` Did you mean ${meant.id} (${meant.name})?` : ''}`
}

/**
 * Returns whether the sent value equals the reply form of the stored value. Files are compared by
 * id.
 */
function isShown(attribute: Attribute, type: ValueType, sent: unknown, stored: unknown): boolean {
  if (holdsFile(attribute)) return idOf(sent) === stored
  return isDeepStrictEqual(sent, stored === null || !type.show ? stored : type.show(stored))
}

/** Returns the value of a new record for an attribute that is missing from the body. */
const defaultValueOf = ({ type, initial }: Attribute): unknown => initial ?? (type === 'boolean' ? false : null)

/**
 * Converts a value that its schema has accepted to the stored form. Reports errors that a schema
 * cannot express.
 */
export function toStored(
  attribute: Pick<Attribute, 'isRequired' | 'validation'>,
  type: ValueType,
  value: unknown,
  before: unknown,
  path: string,
  errors: ValidationErrors,
): unknown {
  if (value === null || value === undefined) return null
  const { isRequired, validation } = attribute
  const refuse = (at: string, sentence: string): void => errors.invalid(at === '' ? path : `${path}.${at}`, sentence)
  return type.store ? type.store(value, { before, isRequired, validation, refuse }) : value
}

const megabyte = 1024 * 1024
const images = { types: ['image/bmp', 'image/jpeg', 'image/png', 'image/webp'], maxBytes: 10 * megabyte }

/**
 * Reports each record or file in the new value that does not exist, is not visible or does not fit
 * the attribute. Records that are already in the old value are not checked.
 */
export async function checkNamedRecords(
  { ctx, errors }: { ctx: Context; errors: ValidationErrors },
  attribute: Attribute,
  path: string,
  after: unknown,
  before: unknown,
): Promise<void> {
  if (holdsFile(attribute)) {
    await checkFileReference({ ctx, errors }, path, after as number | null, attribute.type === 'image' ? images : {})
    return
  }
  if (attribute.lookup === null) return
  const old = new Set([before].flat())
  const ids = ([after].flat() as (number | null)[]).filter((id): id is number => id !== null && !old.has(id))
  const known = await findChoosable(ctx, attribute.lookup, ids)
  const { noun } = lookups[attribute.lookup]
  for (const id of ids) {
    if (known.has(id)) continue
    const at = Array.isArray(after) ? `${path}.${after.indexOf(id)}` : path
    errors.invalid(at, `No ${noun} has id ${id}.`)
  }
}
