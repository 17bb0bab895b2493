// The references of a stored rule through an attribute: to the attribute itself, and to the records
// or options that its value names.
import type { StoredReference } from '../../kernel/history/stored-references.ts'
import type { Attribute } from './attribute-set.ts'
import { entityOfLookup } from './lookups.ts'
import { hasOptions } from './types.ts'

/** Returns a reference to a custom attribute. Built-in attributes cannot be deleted. */
export const referencesToAttribute = (
  field: string,
  { id, isOwn }: Pick<Attribute, 'id' | 'isOwn'>,
): StoredReference[] => (isOwn ? [{ field, entity: 'attributes', id }] : [])

/** Puts `by` in the place of `id` in an id, a list of ids, or a text with ids. */
export function withId(value: unknown, id: number, by: number): unknown {
  if (Array.isArray(value)) return [...new Set(value.map((each) => withId(each, id, by)))]
  if (typeof value === 'string')
    return [...new Set(value.split(',').map((each) => (each.trim() === String(id) ? String(by) : each)))].join(',')
  return value === id ? by : value
}

/**
 * Returns references to the records or options in a value of an attribute. `value` is an id or a
 * list of ids in stored form; other values refer to nothing.
 */
export function referencesInValue(field: string, attribute: Attribute, value: unknown): StoredReference[] {
  const { lookup, type } = attribute
  if (lookup === null && !hasOptions(type)) return []
  const entity = lookup === null ? 'options' : entityOfLookup(lookup)
  return ([value].flat() as unknown[])
    .filter((id): id is number => typeof id === 'number')
    .map((id) => ({ field, entity, id }))
}
