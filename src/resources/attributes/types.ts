// Maps the name of an attribute type to its implementation.
import type { Attribute, TypeName } from './attribute-set.ts'
import { address } from './types/address.ts'
import { checkbox, lookup, multiselect, select } from './types/choices.ts'
import { email, phone } from './types/contact-points.ts'
import { dateType, datetimeType } from './types/dates.ts'
import { file, image } from './types/files.ts'
import { boolean, number, price } from './types/numbers.ts'
import { textareaType, textType, url } from './types/texts.ts'
import type { ValueType } from './types/value-type.ts'

const byName: Record<Exclude<TypeName, 'subheading'>, ValueType> = {
  text: textType,
  textarea: textareaType,
  number,
  price,
  boolean,
  select,
  multiselect,
  checkbox,
  email,
  address,
  phone,
  url,
  lookup,
  datetime: datetimeType,
  date: dateType,
  image,
  file,
}

/**
 * Returns the implementation of an attribute's type. Returns undefined for a subheading, because it
 * has no values.
 */
export const valueTypeOf = ({ type }: Pick<Attribute, 'type'>): ValueType | undefined =>
  type === 'subheading' ? undefined : byName[type]

/** Returns the attributes that have values, each with the implementation of its type. */
export function withValueTypes(attributes: readonly Attribute[]): readonly TypedAttribute[] {
  const known = typedCache.get(attributes)
  if (known) return known
  const typed = attributes.flatMap((attribute) => {
    const type = valueTypeOf(attribute)
    return type ? [{ attribute, type }] : []
  })
  typedCache.set(attributes, typed)
  return typed
}

interface TypedAttribute {
  attribute: Attribute
  type: ValueType
}

/**
 * Cached results of `withValueTypes`. Every reply needs the result, and an array of attributes
 * never changes.
 */
const typedCache = new WeakMap<readonly Attribute[], readonly TypedAttribute[]>()

export const hasOptions = (type: TypeName): boolean => ['select', 'multiselect', 'checkbox'].includes(type)
export const holdsFile = ({ type }: Pick<Attribute, 'type'>): boolean => type === 'image' || type === 'file'
