// Unites the rows of merged records column by column, and takes this back. Rows are compared as
// they are stored, so that a new column needs no code.
import type { Row } from '../history/archive.ts'
import type { AnyDefinition } from './any-definition.ts'

/** The columns that a merge has changed, as stored. */
export type RowChanges = Record<string, { before: Row[string]; after: Row[string] }>

type Rules = Pick<NonNullable<AnyDefinition['merging']>, 'lists' | 'follows'>
type Values = Record<string, unknown>
type Entry = { value: string }

const bookkeeping: ReadonlySet<string> = new Set(['id', 'version', 'created_at', 'updated_at'])
const own = 'custom_attributes'

const isEmpty = (value: unknown): boolean => value === null || value === undefined || value === ''
/** Returns whether two stored or shown values are equal. A missing value equals null. */
export const isSameValue = (one: unknown, other: unknown): boolean =>
  JSON.stringify(one ?? null) === JSON.stringify(other ?? null)
const parsed = <T>(text: Row[string] | undefined, empty: string): T => JSON.parse(String(text ?? empty)) as T

/** Returns the column that another one goes with, such as `name` for `name_key`. */
const leaderOf = ({ follows }: Rules, row: Row, column: string): string | undefined =>
  follows[column] ?? (column.endsWith('_key') && column.slice(0, -4) in row ? column.slice(0, -4) : undefined)

/** Returns the columns of `to` that `from` fills or extends. */
export function unite(rules: Rules, to: Row, from: Row, sent: ReadonlySet<string>): Row {
  const columns: Row = {}
  for (const [column, value] of Object.entries(to)) {
    const key = rules.lists[column]
    const leader = leaderOf(rules, to, column)
    if (bookkeeping.has(column) || sent.has(leader ?? column)) continue
    if (key !== undefined) {
      const list = parsed<Entry[]>(value, '[]')
      const known = new Set(list.map(key))
      const added = parsed<Entry[]>(from[column], '[]').filter((entry) => !known.has(key(entry)))
      if (added.length > 0) columns[column] = JSON.stringify([...list, ...added])
    } else if (column === own) {
      const [mine, theirs] = [parsed<Values>(value, '{}'), parsed<Values>(from[column], '{}')]
      const added = Object.entries(theirs).filter(([code, each]) => isEmpty(mine[code]) && !isEmpty(each))
      if (added.length > 0) columns[column] = JSON.stringify({ ...mine, ...Object.fromEntries(added) })
    } else if (isEmpty(to[leader ?? column]) && !isEmpty(from[leader ?? column])) columns[column] = from[column] ?? null
  }
  return columns
}

/** Returns the columns in which two versions of a row differ. */
export const changesBetween = (before: Row, after: Row): RowChanges =>
  Object.fromEntries(
    Object.keys(after)
      .filter((column) => !bookkeeping.has(column) && !isSameValue(before[column], after[column]))
      .map((column) => [column, { before: before[column] ?? null, after: after[column] ?? null }]),
  )

/** Returns the columns to set when a merge is taken back, and the fields changed since. */
export function giveBack(rules: Rules, current: Row, changes: RowChanges): { columns: Row; conflicts: string[] } {
  const columns: Row = {}
  const conflicts: string[] = []
  for (const [column, { before, after }] of Object.entries(changes)) {
    const present = current[column] ?? null
    const leader = leaderOf(rules, current, column)
    const key = rules.lists[column]
    if (key !== undefined && !isSameValue(present, after)) {
      const former = new Set(parsed<Entry[]>(before, '[]').map(key))
      const given = new Set(
        parsed<Entry[]>(after, '[]')
          .map(key)
          .filter((each) => !former.has(each)),
      )
      columns[column] = JSON.stringify(parsed<Entry[]>(present, '[]').filter((entry) => !given.has(key(entry))))
    } else if (column === own) {
      const [was, is, now] = [before, after, present].map((text) => parsed<Values>(text, '{}')) as [
        Values,
        Values,
        Values,
      ]
      for (const code of Object.keys({ ...was, ...is }).filter((each) => !isSameValue(was[each], is[each])))
        if (!isSameValue(now[code], is[code])) conflicts.push(`${own}.${code}`)
        else if (isEmpty(was[code])) delete now[code]
        else now[code] = was[code]
      columns[column] = JSON.stringify(now)
    } else if (isSameValue(current[leader ?? column], changes[leader ?? column]?.after ?? after))
      columns[column] = before
    else if (leader === undefined) conflicts.push(column)
  }
  return { columns, conflicts }
}
