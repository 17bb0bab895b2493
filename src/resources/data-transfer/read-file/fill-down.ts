// Fills cells from the row above. Shopify writes the title of a product only in the row of its
// first variant, and the rows of further pictures have nothing else.
import { type Mapping, mappedFields } from '../settings.ts'
import type { SheetRow } from './read-rows.ts'

interface Filling {
  /** The place of the column. */
  index: number
  /** The place of the column that says which rows belong together. */
  group: number
}

/**
 * Yields the header and the rows. In columns whose rule has `fill_down`, an empty cell gets the
 * value of the last row of its group. Leaves out rows whose other mapped cells are all empty.
 */
export async function* filledDown(rows: AsyncGenerator<SheetRow>, mapping: Mapping | null): AsyncGenerator<SheetRow> {
  const { value: header } = await rows.next()
  if (!header) return
  yield header
  const names = (header as SheetRow).cells.map((cell) => cell.trim())
  const rules = Object.entries(mapping ?? {})
  const fillings = rules.flatMap(([name, rule]): Filling[] => {
    const by = typeof rule === 'object' && rule !== null ? (rule.fill_down ?? null) : null
    return by === null ? [] : [{ index: names.indexOf(name), group: names.indexOf(by) }]
  })
  const usable = fillings.filter(({ index, group }) => index >= 0 && group >= 0)
  if (usable.length === 0) return yield* rows
  const filled = new Set(usable.map(({ index }) => index))
  const own = rules.flatMap(([name, rule]) => (mappedFields(rule).length > 0 ? names.indexOf(name) : []))
  const deciding = own.filter((index) => index >= 0 && !filled.has(index))
  const last = new Map<number, { group: string; value: string }>()
  for await (const { row, cells } of rows) {
    const all = [...cells]
    for (const { index, group } of usable) {
      const [value, of] = [all[index] ?? '', (all[group] ?? '').trim()]
      const before = last.get(index)
      if (value.trim() !== '') last.set(index, { group: of, value })
      else if (before !== undefined && of !== '' && before.group === of) all[index] = before.value
    }
    if (deciding.length === 0 || deciding.some((index) => (all[index] ?? '').trim() !== '')) yield { row, cells: all }
  }
}
