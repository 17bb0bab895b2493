// The types of attributes by name (DOMAIN 8.2).
import type { Attribute, TypeName } from './set.ts'
import { address } from './types/address.ts'
import { checkbox, lookup, multiselect, select } from './types/choices.ts'
import { file, image } from './types/files.ts'
import { date, datetime } from './types/moments.ts'
import { boolean, price } from './types/numbers.ts'
import { email, phone } from './types/points.ts'
import { text, textarea } from './types/texts.ts'
import type { ValueType } from './types/type.ts'

const byName: Record<Exclude<TypeName, 'subheading'>, ValueType> = {
  text,
  textarea,
  price,
  boolean,
  select,
  multiselect,
  checkbox,
  email,
  address,
  phone,
  lookup,
  datetime,
  date,
  image,
  file,
}

/** Undefined for a subheading, which has no values. */
export const typeOf = ({ type }: Pick<Attribute, 'type'>): ValueType | undefined =>
  type === 'subheading' ? undefined : byName[type]

/** The attributes among them that have values, each with its type. */
export function valued(attributes: readonly Attribute[]): readonly Valued[] {
  const known = withTypes.get(attributes)
  if (known) return known
  const typed = attributes.flatMap((attribute) => {
    const type = typeOf(attribute)
    return type ? [{ attribute, type }] : []
  })
  withTypes.set(attributes, typed)
  return typed
}

interface Valued {
  attribute: Attribute
  type: ValueType
}

/** A list of them is asked for every reply, and never changed. */
const withTypes = new WeakMap<readonly Attribute[], readonly Valued[]>()

export const hasOptions = (type: TypeName): boolean => ['select', 'multiselect', 'checkbox'].includes(type)
export const holdsFile = ({ type }: Pick<Attribute, 'type'>): boolean => type === 'image' || type === 'file'
