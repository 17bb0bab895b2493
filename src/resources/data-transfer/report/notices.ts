// Collects what an import changes or leaves out: values that are read as other values, and filled
// columns without a field. Users see both after the validation.
import type { Schema } from '../../../contract/types.ts'
import { meansNothing } from '../draft-rows/read-cell.ts'
import type { CellChange } from '../draft-rows/row-drafts.ts'
import { shortened } from '../map-columns/read-header.ts'
import type { Findings } from '../read-file/read-rows.ts'

type ValueChange = Schema<'ImportValueChange'>

export interface Notices {
  changes: Map<string, ValueChange>
  /** The number of filled cells of each column without a field, by header. */
  leftOut: Map<string, number>
}

export const createNotices = (): Notices => ({ changes: new Map(), leftOut: new Map() })

const maxChanges = 100
const maxToldLength = 200

export function addChanges({ changes }: Notices, found: Iterable<CellChange>): void {
  for (const { column, from, to } of found) {
    const key = JSON.stringify([column, from, to])
    const known = changes.get(key)
    if (known) known.count++
    else if (changes.size < maxChanges) changes.set(key, { column, from: shortText(from), to: shortText(to), count: 1 })
  }
}

const shortText = (text: string | null): string | null => text?.slice(0, maxToldLength) ?? null

/** Counts the filled cells of the columns at the indexes `places`. */
export function addLeftOut(
  { leftOut }: Notices,
  headers: readonly string[],
  places: readonly number[],
  cells: readonly string[],
): void {
  for (const place of places) {
    if ((cells[place] ?? '').trim() === '') continue
    const header = headers[place] || `number ${place + 1}`
    leftOut.set(header, (leftOut.get(header) ?? 0) + 1)
  }
}

const counted = (count: number, one: string, many: string): string => `${count} ${count === 1 ? one : many}`

/** Returns a sentence for everything that is not imported. */
export function warningsOf({ leftOut, changes }: Notices, { footers, strayLines }: Findings): string[] {
  const emptied = [...changes.values()].filter(({ from, to }) => to === null && meansNothing(from ?? ''))
  return [
    ...[...leftOut]
      .slice(0, maxChanges)
      .map(
        ([header, count]) =>
          `The column ${shortened(header)} is left out; it has ${counted(count, 'value', 'values')}.`,
      ),
    ...(leftOut.size > maxChanges ? [`${leftOut.size - maxChanges} further columns are left out.`] : []),
    ...emptied.map(
      ({ column, from, count }) =>
        `${from} in ${shortened(column)} is read as empty in ${counted(count, 'row', 'rows')}.`,
    ),
    ...(footers > 0
      ? [`The last ${counted(footers, 'row below the table is', 'rows below the table are')} left out.`]
      : []),
    ...(strayLines > 0
      ? [`The file has two encodings: ${counted(strayLines, 'line is', 'lines are')} read as windows-1252.`]
      : []),
  ]
}
