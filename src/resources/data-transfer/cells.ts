// What the text of a cell means, by the kind of its column: the way back of kernel/resource/csv-cells.ts. Nothing is validated here; a text
// that cannot be taken apart is refused with a sentence, one that can becomes what a JSON body would have in its place.
import { fold } from '../../kernel/values/format.ts'
import type { Option } from '../attributes/set.ts'

/** Says why a cell cannot be read. */
export class CellFault extends Error {}

/** What a cell says; never called for one that is empty or clears. */
export type Reader = (text: string) => unknown

export const text: Reader = (cell) => cell

/** A number where the text is one, so that the validator sees what JSON would have. */
export const whole: Reader = (cell) => {
  const trimmed = cell.trim()
  return /^-?(0|[1-9]\d{0,14})$/.test(trimmed) ? Number(trimmed) : cell
}

/** A moment; of a day alone, its beginning, since a spreadsheet writes midnight so. */
export const moment: Reader = (cell) => (/^\d{4}-\d\d-\d\d$/.test(cell.trim()) ? `${cell.trim()} 00:00` : cell)

/** Entries of a list, `a|b` or written as JSON. */
const entriesOf = (cell: string): unknown[] =>
  json(cell) ??
  cell
    .split('|')
    .map((each) => each.trim())
    .filter((each) => each !== '')

function json(cell: string): unknown[] | undefined {
  if (!cell.trimStart().startsWith('[')) return undefined
  try {
    return JSON.parse(cell) as unknown[]
  } catch {
    throw new CellFault('Must be a list in JSON, or its entries with | between them.')
  }
}

/** `value:label|value:label`, or JSON. Behind the last bracket, as of an address at an IP number, the first colon counts. */
export const contactPoints: Reader = (cell) =>
  entriesOf(cell).map((entry) => {
    if (typeof entry !== 'string') return entry
    const colon = entry.indexOf(':', entry.lastIndexOf(']') + 1)
    return colon < 0
      ? { value: entry }
      : { value: entry.slice(0, colon).trim(), label: entry.slice(colon + 1).trim() || null }
  })

/** Names; which tags they are is found out later. */
export const names: Reader = (cell) => entriesOf(cell).map(String)

/** An option by its id or its name. What is neither is left to the validator, which lists the ids there are. */
export const option =
  (options: readonly Option[]): Reader =>
  (cell) => {
    const id = whole(cell)
    if (options.some((each) => each.id === id)) return id
    return options.find(({ name }) => fold(name) === fold(cell.trim()))?.id ?? id
  }

export const optionList =
  (options: readonly Option[]): Reader =>
  (cell) =>
    entriesOf(cell).map((entry) => (typeof entry === 'string' ? option(options)(entry) : entry))

const lineParts: Readonly<Record<string, { key: string; read: Reader }>> = {
  id: { key: 'product_id', read: whole },
  price: { key: 'price', read: text },
  quantity: { key: 'quantity', read: whole },
}

/** Product lines, `id=2,price=4821,quantity=3|id=7`. */
export const productLines: Reader = (cell) =>
  entriesOf(cell).map((entry) => {
    if (typeof entry !== 'string') return entry
    const line: Record<string, unknown> = {}
    for (const part of entry.split(',')) {
      const at = part.indexOf('=')
      const known = at < 0 ? undefined : lineParts[part.slice(0, at).trim()]
      if (!known) throw new CellFault('Must be lines such as id=2,price=4821,quantity=3 with | between them.')
      const value = part.slice(at + 1).trim()
      if (value !== '') line[known.key] = known.read(value)
    }
    return line
  })
