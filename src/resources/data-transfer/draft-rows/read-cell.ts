// Reads one cell by its column: removes what spreadsheets add, replaces values by the column's
// rule, and converts the text to the value of the field.
import { unescapeFormula } from '../../../kernel/resource/csv-cells.ts'
import { fold } from '../../../kernel/values/format.ts'
import { currencyCodeIn } from '../../../texts/numbers.ts'
import type { FileColumn } from '../map-columns/columns.ts'
import type { CellFormats } from '../read-cells/cell-formats.ts'
import {
  type CellReader,
  readAddresses,
  readCountryCode,
  readDate,
  readDecimal,
  readMoment,
  readNames,
  readNumbers,
} from '../read-cells/cell-readers.ts'
import { splitNames } from '../read-cells/list-cells.ts'

export interface ReadCell {
  value?: unknown
  /** Why the cell has no value, although it is not empty. */
  lost?: string
  change?: { from: string | null; to: string | null }
}

const isDate = (read: CellReader): boolean => read === readDate || read === readMoment
const isPoints = (read: CellReader): boolean => read === readAddresses || read === readNumbers

/** Returns undefined for an empty cell. */
export function readCell(column: FileColumn, cells: readonly string[], formats: CellFormats): ReadCell | undefined {
  const { read, values, constant } = column
  const cell = constant ?? unescapeFormula(cells[column.index] ?? '')
  if (cell.trim() === '') return undefined
  if (constant !== undefined) return { value: read(constant, formats), change: { from: null, to: constant } }
  const text = withoutGuard(cell)
  const trimmed = text.trim()
  if (trimmed === 'NULL') return { value: column.cleared }
  const mapped = values === undefined ? undefined : replaced(text, column, values)
  if (mapped?.to === null) return { change: mapped }
  if (mapped === undefined) {
    const lost = lostCell(trimmed, read === readDecimal)
    if (lost) return { lost: lost.message }
    if (meansNothing(trimmed)) return { change: { from: trimmed, to: null } }
    if (trimmed === '' || (isDate(read) && isEmptyDate(trimmed))) return undefined
  }
  const value = labelled(read(mapped?.to ?? text, formats), column, cells)
  const change = mapped ?? changeOf(trimmed, value, column, formats)
  return change ? { value, change } : { value }
}

/** The date that MySQL writes for none. */
const zeroDate = /^0{4}-0{2}-0{2}\b/

/** Returns whether a text marks an empty cell. */
const isMark = (text: string): boolean =>
  text === '' || meansNothing(text) || lostCell(text, false) !== undefined || isEmptyDate(text) || zeroDate.test(text)

/** The key of a rule for all values that have no key. */
const anyOther = '*'

/** Returns the value that the column's rule reads instead, else undefined. */
function replaced(
  text: string,
  { read }: FileColumn,
  values: ReadonlyMap<string, string | null>,
): { from: string; to: string | null } | undefined {
  const key = fold(text.trim())
  const known = values.has(key) ? key : values.has(anyOther) && !isMark(key) ? anyOther : undefined
  if (known !== undefined) return { from: text.trim(), to: values.get(known) ?? null }
  if (values.has(anyOther) && (isEmptyDate(key) || zeroDate.test(key))) return { from: text.trim(), to: null }
  if (read !== readNames) return undefined
  const names = splitNames(text)
  if (!names.some((name) => values.has(fold(name)))) return undefined
  const left = names.flatMap((name) => values.get(fold(name)) ?? (values.has(fold(name)) ? [] : name))
  return { from: text.trim(), to: left.length === 0 ? null : left.length === 1 ? (left[0] ?? null) : left.join('|') }
}

/** Adds the label of the column to addresses and numbers that have none. */
function labelled(value: unknown, { read, pointLabel }: FileColumn, cells: readonly string[]): unknown {
  if (!pointLabel || !isPoints(read) || !Array.isArray(value)) return value
  const cell = pointLabel.index === null ? '' : (cells[pointLabel.index] ?? '')
  // Google marks the preferred address with an asterisk.
  const label =
    cell
      .replace(/^\s*\*\s*/, '')
      .trim()
      .toLowerCase()
      .slice(0, maxLabelLength) || pointLabel.text
  return label
    ? (value as { label?: string | null }[]).map((point) =>
        typeof point === 'object' && point !== null && !point.label ? { ...point, label } : point,
      )
    : value
}

const maxLabelLength = 30

/** Returns the change of a value that users may not expect: that of a country or of a currency. */
function changeOf(text: string, value: unknown, { read }: FileColumn, { currency }: CellFormats) {
  if (read === readCountryCode && value !== text) return { from: text, to: String(value) }
  if (read !== readDecimal) return undefined
  const code = currencyCodeIn(text)
  return code === undefined || code === currency ? undefined : { from: code, to: currency }
}

/** A cell that has no value, although the cell is not empty. */
export interface LostCell {
  message: string
}

const formulaErrors =
  /^#(n\/a|n\/v|nv|ref!|bezug!|wert!|value!|name\?|div\/0!|null!|num!|spill!|calc!|field!|blocked!|connect!|unknown!|getting_data)$/i
const exchangeName = /^\/o=.*\/cn=/i
const hashes = /^#{2,}$/
const dashes = /^([-–—]+|n\/a|n\.a\.|-+none-+|\(none\)|\(blank\)|\(?null\)?)$/i
const emptyDates = /^0{1,4}[/.-]0{1,2}[/.-]0{1,4}(?:[ T]0{1,2}:00(?::00)?)?$/
/** Fractions before the exponent end in digits that the program has dropped. */
const scientific = /^\d(?:[.,]\d+)?e\+?\d{1,2}$/i

/** Removes the guards `="0151"` and `'0151`, which keep a number a text. */
export function withoutGuard(cell: string): string {
  const [, quoted] = /^="((?:[^"]|"")*)"$/.exec(cell.trim()) ?? []
  if (quoted !== undefined) return quoted.replaceAll('""', '"')
  return /^'(?=[\d+(])/.test(cell) ? cell.slice(1) : cell
}

/** Returns the error of a cell whose value a program has lost, else undefined. */
export function lostCell(text: string, isNumber: boolean): LostCell | undefined {
  if (formulaErrors.test(text))
    return { message: `A spreadsheet wrote ${text}, the error of a formula, instead of a value.` }
  if (exchangeName.test(text))
    return { message: 'The address is the internal name of an Exchange server, which is not an e-mail address.' }
  if (hashes.test(text))
    return { message: 'A spreadsheet wrote # characters because its column was too narrow for the value.' }
  if (!isNumber && scientific.test(text) && /e\+/i.test(text))
    return { message: `A spreadsheet wrote ${text} and lost digits of the value. Format its column as text.` }
  return undefined
}

/** Returns whether a text such as `-` or `n/a` stands for an empty cell. The word NULL does not. */
export const meansNothing = (text: string): boolean => text !== 'NULL' && dashes.test(text)

/** Returns whether a text such as `0/0/00` is a date without a value. */
export const isEmptyDate = (text: string): boolean => emptyDates.test(text)
