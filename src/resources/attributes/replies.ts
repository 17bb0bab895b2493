// Custom attributes in replies: every one of the entity in its order, null when unset; and what chosen options and records
// are called (DOMAIN 8.3). A fixed number of queries for a whole page.
import type { Schema } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import { fileRefs } from '../files/attach.ts'
import { type LookupType, labels } from './lookups.ts'
import type { Stored } from './plan.ts'
import { type Attribute, type EntityType, ownAttributes } from './set.ts'
import type { ValueType } from './types/type.ts'
import { holdsFile, valued } from './types.ts'

export interface Carrier {
  custom_attributes: Record<string, unknown>
  custom_labels?: Record<string, unknown>
}

/** Turns the stored values that `present` has put into the replies, as they were read, into what is shown. */
export async function gatherValues(
  ctx: Context,
  entity: EntityType,
  replies: readonly Carrier[],
  include: readonly string[],
): Promise<void> {
  const typed = valued(await ownAttributes(ctx, entity))
  const attributes = typed.map(({ attribute }) => attribute)
  const stored = replies.map((reply): Stored => reply.custom_attributes)
  const holding = attributes.filter(holdsFile)
  const files = holding.length > 0 ? await fileRefs(ctx, idsIn(holding, stored)) : none
  const shown = (type: ValueType, attribute: Attribute, value: unknown): unknown => {
    if (value === undefined || value === null) return null
    if (holdsFile(attribute)) return files.get(value as number) ?? null
    return type.show ? type.show(value) : value
  }
  const wanted = include.includes('custom_labels') ? attributes.filter(isChoice) : []
  const nameOf = wanted.length > 0 ? await names(ctx, wanted, stored) : nobody
  for (const [index, reply] of replies.entries()) {
    const values = stored[index] ?? {}
    // No code has the name of a prototype: they begin with a letter.
    const all: Record<string, unknown> = {}
    for (const { attribute, type } of typed) all[attribute.code] = shown(type, attribute, valueIn(values, attribute))
    reply.custom_attributes = all
    if (!include.includes('custom_labels')) continue
    reply.custom_labels = Object.fromEntries(
      wanted.map((attribute) => [attribute.code, labelled(attribute, valueIn(values, attribute), nameOf)]),
    )
  }
}

const none: ReadonlyMap<number, Schema<'FileRef'>> = new Map()
const nobody: NameOf = () => undefined

/** Codes are words of users: what every object inherits is no value. */
const valueIn = (values: Stored, { code }: Attribute): unknown =>
  Object.hasOwn(values, code) ? values[code] : undefined

const isChoice = ({ type }: Attribute): boolean => ['select', 'multiselect', 'checkbox', 'lookup'].includes(type)

const idsIn = (attributes: readonly Attribute[], stored: readonly Stored[]): number[] =>
  attributes.flatMap((attribute) =>
    stored.flatMap((values) =>
      ([valueIn(values, attribute) ?? []].flat() as unknown[]).filter((id) => typeof id === 'number'),
    ),
  )

type NameOf = (attribute: Attribute, id: number) => string | undefined

/** One query for each kind of records. */
async function names(ctx: Context, attributes: readonly Attribute[], stored: readonly Stored[]): Promise<NameOf> {
  const kinds = new Map<LookupType, Map<number, string>>()
  for (const kind of new Set(attributes.flatMap(({ lookup }) => lookup ?? []))) {
    const referring = attributes.filter(({ lookup }) => lookup === kind)
    kinds.set(kind, await labels(ctx, kind, idsIn(referring, stored)))
  }
  return ({ lookup, options }, id) =>
    lookup === null ? options.find((option) => option.id === id)?.name : kinds.get(lookup)?.get(id)
}

function labelled(attribute: Attribute, value: unknown, nameOf: NameOf): string | string[] | null {
  if (value === undefined || value === null) return null
  if (Array.isArray(value)) return (value as number[]).flatMap((id) => nameOf(attribute, id) ?? [])
  return nameOf(attribute, value as number) ?? null
}
