// email and phone: lists of contact points (DOMAIN 3.2).
import { type SqlBool, sql } from 'kysely'
import type { Schema } from '../../../contract/types.ts'
import { fold, phoneKey } from '../../../kernel/values/format.ts'
import { component, type ValueType } from './type.ts'

export type Point = Schema<'ContactPoint'>
export type SentPoints = readonly { value: string | null; label?: string | null }[]

/** Entries without a value are dropped, a missing label is `work`; a value that occurs twice is refused. */
export function cleanPoints(
  sent: SentPoints,
  keyOf: (value: string) => string,
  refuse: (at: string, sentence: string) => void,
): Point[] {
  const seen = new Set<string>()
  const points: Point[] = []
  for (const [index, { value, label }] of sent.entries()) {
    if (value === null) continue
    const key = keyOf(value)
    if (seen.has(key)) refuse(`${index}.value`, 'This value occurs twice.')
    seen.add(key)
    points.push({ value, label: label ?? 'work' })
  }
  return points
}

const points = (input: string, keyOf: (value: string) => string, mode: 'equals' | 'phone'): ValueType => ({
  input: () => ({ type: 'array', maxItems: 20, items: component(input) }),
  output: () => ({ type: 'array', items: component('ContactPoint') }),
  example: () => [
    mode === 'phone' ? { value: '+1 202 555 0143', label: 'mobile' } : { value: 'ada@example.com', label: 'work' },
  ],
  store: (value, { refuse }) => cleanPoints(value as SentPoints, keyOf, refuse),
  keys: (stored) => (stored as Point[]).map(({ value }, index) => ({ key: keyOf(value), at: `${index}.value` })),
  read: keyOf,
  takes: mode === 'phone' ? 'telephone numbers' : 'e-mail addresses',
  matches: ({ dialect, column, code }, values) =>
    sql<SqlBool>`(${sql.join(
      values.map((value) => dialect.jsonPointMatches(column, mode, String(value), code)),
      sql` or `,
    )})`,
})

export const email = points('EmailPointInput', fold, 'equals')
export const phone = points('PhonePointInput', phoneKey, 'phone')
