// What is stored of the custom attributes in a body, and all that is wrong with them (DOMAIN 8.2, 8.3). Nothing is written
// here: the JSON of the column comes out, for the record's own insert or update.
import { isDeepStrictEqual } from 'node:util'
import type { Context } from '../../kernel/context.ts'
import type { ValidationErrors } from '../../kernel/errors.ts'
import { referFile } from '../files/attach.ts'
import { chosen, lookups } from './lookups.ts'
import { readValues } from './schemas.ts'
import { type Attribute, type EntityType, ownAttributes } from './set.ts'
import { idOf } from './types/files.ts'
import type { ValueType } from './types/type.ts'
import { holdsFile, valued } from './types.ts'
import { checkKeys } from './unique.ts'

export type Stored = Readonly<Record<string, unknown>>

interface Planning {
  ctx: Context
  found: ValidationErrors
  /** The record before the change; null for a new one. */
  current: { id: number; custom_attributes: string } | null
}

/** Codes are words of users: what every object inherits is no value. */
export const readStored = (text: string): Stored => Object.assign(Object.create(null), JSON.parse(text))

const isEmpty = (value: unknown): boolean => value === null || (Array.isArray(value) && value.length === 0)
const isSame = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other)

/** The JSON to store; undefined when nothing changes. */
export async function planValues(
  entity: EntityType,
  sent: unknown,
  { ctx, found, current }: Planning,
): Promise<string | undefined> {
  const attributes = await ownAttributes(ctx, entity)
  if (sent === undefined && (current !== null || attributes.length === 0)) return undefined
  const stored = current ? readStored(current.custom_attributes) : {}
  const { values, errors } = readValues(ctx, attributes, sent ?? {})
  // What stays as it was is never wrong, although the attribute may take it no more (DOMAIN 3.4).
  const same = new Set(
    valued(attributes)
      .filter(({ attribute: { code } }) => current !== null && Object.hasOwn(values, code))
      .filter(({ attribute, type }) => isShown(attribute, type, values[attribute.code], stored[attribute.code] ?? null))
      .map(({ attribute }) => `custom_attributes.${attribute.code}`),
  )
  const wrong = new Set<string>()
  for (const [field, sentences] of Object.entries(errors)) {
    const path = field.split('.').slice(0, 2).join('.')
    if (same.has(path)) continue
    wrong.add(path)
    for (const sentence of sentences) found.invalid(field, sentence)
  }
  const next: Record<string, unknown> = { ...stored }
  for (const { attribute, type } of valued(attributes)) {
    const { code } = attribute
    const path = `custom_attributes.${code}`
    const before = stored[code] ?? null
    const isSent = Object.hasOwn(values, code)
    if (same.has(path) || wrong.has(path) || (!isSent && current !== null)) continue
    const after = isSent ? kept(attribute, type, values[code], before, path, found) : initialOf(attribute)
    if (attribute.isRequired && isEmpty(after) && !ctx.excused?.has(attribute.id))
      found.invalid(path, 'The field is required.')
    if (isSame(after, before)) continue
    // A default was looked at when it was set.
    if (isSent) await checkReferences({ ctx, found }, attribute, path, after, before)
    if (attribute.isUnique && after !== null)
      await checkKeys({ ctx, found }, attribute, current?.id ?? null, path, type.keys?.(after) ?? [])
    if (after === null) delete next[code]
    else next[code] = after
  }
  return isSame(next, stored) ? undefined : JSON.stringify(next)
}

/** Whether what was sent is what is shown of the stored value; of a file, its id will do. */
function isShown(attribute: Attribute, type: ValueType, sent: unknown, stored: unknown): boolean {
  if (holdsFile(attribute)) return idOf(sent) === stored
  return isDeepStrictEqual(sent, stored === null || !type.show ? stored : type.show(stored))
}

/** What a new record gets that does not say. */
const initialOf = ({ type, initial }: Attribute): unknown => initial ?? (type === 'boolean' ? false : null)

/** What is stored of a value that fits its schema. */
export function kept(
  attribute: Pick<Attribute, 'isRequired' | 'validation'>,
  type: ValueType,
  value: unknown,
  before: unknown,
  path: string,
  found: ValidationErrors,
): unknown {
  if (value === null || value === undefined) return null
  const { isRequired, validation } = attribute
  const refuse = (at: string, sentence: string): void => found.invalid(at === '' ? path : `${path}.${at}`, sentence)
  return type.store ? type.store(value, { before, isRequired, validation, refuse }) : value
}

const megabyte = 1024 * 1024
const images = { types: ['image/bmp', 'image/jpeg', 'image/png', 'image/webp'], maxBytes: 10 * megabyte }

/** Records and files that were not named before must exist, be visible, and be what the attribute takes. */
export async function checkReferences(
  { ctx, found }: { ctx: Context; found: ValidationErrors },
  attribute: Attribute,
  path: string,
  after: unknown,
  before: unknown,
): Promise<void> {
  if (holdsFile(attribute)) {
    await referFile({ ctx, found }, path, after as number | null, attribute.type === 'image' ? images : {})
    return
  }
  if (attribute.lookup === null) return
  const old = new Set([before].flat())
  const ids = ([after].flat() as (number | null)[]).filter((id): id is number => id !== null && !old.has(id))
  const known = await chosen(ctx, attribute.lookup, ids)
  const { noun } = lookups[attribute.lookup]
  for (const id of ids) {
    if (known.has(id)) continue
    const at = Array.isArray(after) ? `${path}.${after.indexOf(id)}` : path
    found.invalid(at, `No ${noun} has id ${id}.`)
  }
}
