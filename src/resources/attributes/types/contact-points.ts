// The types `email` and `phone`: lists of contact points.
import { type SqlBool, sql } from 'kysely'
import { numbersIn } from '../../../../db/schema/phone-numbers.ts'
import { digitsOf } from '../../../../db/schema/search-folding.ts'
import type { Schema } from '../../../contract/types.ts'
import { fold } from '../../../kernel/values/format.ts'
import { refTo, type ValueType } from './value-type.ts'

export type ContactPoint = Schema<'ContactPoint'>
export type SentPoints = readonly { value: string | null; label?: string | null }[]

/** A number such as `4.91512E+11`, which a spreadsheet wrote for a telephone number. */
const lostDigits = /^\s*\d(?:[.,]\d+)?e\+\d{1,2}\s*$/i

/**
 * Converts sent entries to contact points. Drops entries without a value, sets a missing label to
 * `work` and refuses duplicate values.
 */
export function toPoints(
  sent: SentPoints,
  keyOf: (value: string) => string,
  refuse: (at: string, sentence: string) => void,
): ContactPoint[] {
  const seen = new Set<string>()
  const points: ContactPoint[] = []
  for (const [index, { value, label }] of sent.entries()) {
    if (value === null) continue
    if (lostDigits.test(value)) refuse(`${index}.value`, 'A spreadsheet has lost digits of this number.')
    // An e-mail address may have a slash between digits.
    const several = keyOf === digitsOf ? numbersIn(value) : null
    if (several) refuse(`${index}.value`, `These are ${several.length} numbers. Send each as an entry of its own.`)
    const key = keyOf(value)
    if (seen.has(key)) refuse(`${index}.value`, 'This value occurs twice.')
    seen.add(key)
    points.push({ value, label: label ?? 'work' })
  }
  return points
}

const points = (input: string, keyOf: (value: string) => string, mode: 'equals' | 'phone'): ValueType => ({
  input: () => ({ type: 'array', maxItems: 20, items: refTo(input) }),
  output: () => ({ type: 'array', items: refTo('ContactPoint') }),
  example: () => [
    mode === 'phone' ? { value: '+1 202 555 0143', label: 'mobile' } : { value: 'ada@example.com', label: 'work' },
  ],
  store: (value, { refuse }) => toPoints(value as SentPoints, keyOf, refuse),
  keys: (stored) => (stored as ContactPoint[]).map(({ value }, index) => ({ key: keyOf(value), at: `${index}.value` })),
  read: keyOf,
  takes: mode === 'phone' ? 'telephone numbers' : 'e-mail addresses',
  matches: ({ dialect, column, code }, values) =>
    sql<SqlBool>`(${sql.join(
      values.map((value) => dialect.jsonPointMatches(column, mode, String(value), code)),
      sql` or `,
    )})`,
})

export const email = points('EmailPointInput', fold, 'equals')
export const phone = points('PhonePointInput', digitsOf, 'phone')
