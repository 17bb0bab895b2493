// Submitted values that cannot be stored because another record has them. This module removes such
// values from the body and lists them in a note for the lead.
import type { Body } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import { contactFields } from '../persons/contacts.ts'
import type { PublicField, PublicForm } from './public-form.ts'

type Person = Body<'createPerson'>
type Points = readonly { value: string | null }[]

export interface RejectedValue {
  key: string
  value: unknown
}

interface Left<T> {
  body: T
  gone: RejectedValue[]
}

/**
 * Returns the body without the values at `paths`, and the removed values. A path is for example
 * `contact_numbers.0.value` or `custom_attributes.vat`.
 */
export function withoutPaths<T extends object>(body: T, paths: readonly string[]): Left<T> {
  const left = structuredClone(body) as Record<string, unknown>
  const gone: RejectedValue[] = []
  const entries = new Map<unknown[], Set<number>>()
  for (const path of new Set(paths)) {
    const parts = path.split('.')
    const isCustom = parts[0] === 'custom_attributes'
    const holder = (isCustom ? left.custom_attributes : left) as Record<string, unknown>
    const [key = '', place] = isCustom ? parts.slice(1) : parts
    const value = holder[key]
    if (place === undefined) {
      gone.push({ key, value })
      delete holder[key]
    } else if (Array.isArray(value)) {
      gone.push({ key, value: value[Number(place)] })
      entries.set(value, (entries.get(value) ?? new Set()).add(Number(place)))
    }
  }
  for (const [list, places] of entries) list.splice(0, list.length, ...list.filter((_, place) => !places.has(place)))
  return { body: left as T, gone }
}

/**
 * Finds the submitted e-mail addresses and phone numbers that the stored person lacks. Returns them
 * as rejected values, for the note of the lead. Returns the body unchanged.
 */
export async function findNewPoints({ db }: Context, id: number, body: Person): Promise<Left<Person>> {
  const row = await db
    .selectFrom('persons')
    .select(['emails', 'contact_numbers'])
    .where('id', '=', id)
    .executeTakeFirstOrThrow()
  const gone = (['emails', 'contact_numbers'] as const).flatMap((key) => {
    const has = new Set((JSON.parse(row[key]) as { value: string }[]).map(({ value }) => contactFields[key](value)))
    const sent: Points = body[key] ?? []
    return sent.flatMap((point) =>
      point.value && !has.has(contactFields[key](point.value)) ? { key, value: point } : [],
    )
  })
  return { body, gone }
}

/** Returns the rejected values as text with one line per value; null when there are none. */
export function rejectedValuesNote(
  { fields }: PublicForm,
  left: Readonly<Record<PublicField['entity'], readonly RejectedValue[]>>,
): string | null {
  const lines = (['persons', 'leads'] as const).flatMap((entity) =>
    left[entity].map(({ key, value }) => {
      const label = fields.find((field) => field.entity === entity && field.key === key)?.label ?? key
      return `${label}: ${textOf(value)}`
    }),
  )
  return lines.length === 0 ? null : ['Also sent with the form, but not stored:', ...lines].join('\n')
}

function textOf(value: unknown): string {
  if (Array.isArray(value)) return value.map(textOf).join(', ')
  if (typeof value === 'object' && value !== null) return textOf((value as { value?: unknown }).value)
  return String(value ?? '')
}
