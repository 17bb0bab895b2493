// Adds custom attributes to replies. A reply has all attributes of the entity in their
// order, with null for unset ones. `custom_labels` has the labels of chosen options and records.
// The number of queries does not depend on the number of replies.
import type { Schema } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import { fileRefs } from '../files/attach.ts'
import { type Attribute, customAttributes, type EntityType } from './attribute-set.ts'
import { findLabels, type LookupType } from './lookups.ts'
import type { ValueType } from './types/value-type.ts'
import { holdsFile, withValueTypes } from './types.ts'
import type { StoredValues } from './validate-values.ts'

export interface CustomReply {
  custom_attributes: Record<string, unknown>
  custom_labels?: Record<string, unknown>
}

/**
 * Converts the stored values in the replies to their reply form. Adds the labels if `include`
 * contains `custom_labels`.
 */
export async function presentValues(
  ctx: Context,
  entity: EntityType,
  replies: readonly CustomReply[],
  include: readonly string[],
): Promise<void> {
  const typed = withValueTypes(await customAttributes(ctx, entity))
  const attributes = typed.map(({ attribute }) => attribute)
  const stored = replies.map((reply): StoredValues => reply.custom_attributes)
  const holding = attributes.filter(holdsFile)
  const files = holding.length > 0 ? await fileRefs(ctx, idsIn(holding, stored)) : noFiles
  const shown = (type: ValueType, attribute: Attribute, value: unknown): unknown => {
    if (value === undefined || value === null) return null
    if (holdsFile(attribute)) return files.get(value as number) ?? null
    return type.show ? type.show(value) : value
  }
  const wanted = include.includes('custom_labels') ? attributes.filter(isChoice) : []
  const nameOf = wanted.length > 0 ? await labelsOf(ctx, wanted, stored) : noLabels
  for (const [index, reply] of replies.entries()) {
    const values = stored[index] ?? {}
    // Attribute codes begin with a letter, so `__proto__` cannot occur as a key.
    const all: Record<string, unknown> = {}
    for (const { attribute, type } of typed) all[attribute.code] = shown(type, attribute, valueIn(values, attribute))
    reply.custom_attributes = all
    if (!include.includes('custom_labels')) continue
    reply.custom_labels = Object.fromEntries(
      wanted.map((attribute) => [attribute.code, labelled(attribute, valueIn(values, attribute), nameOf)]),
    )
  }
}

const noFiles: ReadonlyMap<number, Schema<'FileRef'>> = new Map()
const noLabels: LabelOf = () => undefined

/**
 * Returns the stored value of an attribute. Users choose the codes, so inherited keys such as
 * `toString` must not count as values.
 */
const valueIn = (values: StoredValues, { code }: Attribute): unknown =>
  Object.hasOwn(values, code) ? values[code] : undefined

const isChoice = ({ type }: Attribute): boolean => ['select', 'multiselect', 'checkbox', 'lookup'].includes(type)

const idsIn = (attributes: readonly Attribute[], stored: readonly StoredValues[]): number[] =>
  attributes.flatMap((attribute) =>
    stored.flatMap((values) =>
      ([valueIn(values, attribute) ?? []].flat() as unknown[]).filter((id) => typeof id === 'number'),
    ),
  )

type LabelOf = (attribute: Attribute, id: number) => string | undefined

/**
 * Returns a function that finds the label of an option or record. Loads the labels of all records
 * in the values, with one query per lookup type.
 */
async function labelsOf(
  ctx: Context,
  attributes: readonly Attribute[],
  stored: readonly StoredValues[],
): Promise<LabelOf> {
  const kinds = new Map<LookupType, Map<number, string>>()
  for (const kind of new Set(attributes.flatMap(({ lookup }) => lookup ?? []))) {
    const referring = attributes.filter(({ lookup }) => lookup === kind)
    kinds.set(kind, await findLabels(ctx, kind, idsIn(referring, stored)))
  }
  return ({ lookup, options }, id) =>
    lookup === null ? options.find((option) => option.id === id)?.name : kinds.get(lookup)?.get(id)
}

function labelled(attribute: Attribute, value: unknown, nameOf: LabelOf): string | string[] | null {
  if (value === undefined || value === null) return null
  if (Array.isArray(value)) return (value as number[]).flatMap((id) => nameOf(attribute, id) ?? [])
  return nameOf(attribute, value as number) ?? null
}
