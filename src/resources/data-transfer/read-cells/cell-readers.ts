// Parses cells by the kind of their column; kernel/resource/csv-cells.ts does the reverse. The
// results are values for a JSON body, which are validated later.
import { phoneKey } from '../../../../db/schema/phone-numbers.ts'
import { fold } from '../../../kernel/values/format.ts'
import { namedLike } from '../../../kernel/values/names.ts'
import type { AttributeOption } from '../../attributes/attribute-set.ts'
import { ImportStop } from '../errors.ts'
import { type CellFormats, readFormattedDate, readFormattedNumber } from './cell-formats.ts'
import { splitAddresses, splitNames, splitNumbers } from './list-cells.ts'

/** Parses the text of a cell that is neither empty nor NULL. */
export type CellReader = (text: string, formats: CellFormats) => unknown

export const readText = (cell: string): string => cell
export const readDecimal: CellReader = (cell, formats) => readFormattedNumber(cell, formats)
export const readCountryCode: CellReader = (cell, { country }) => country(cell)

/**
 * Reads a text of several lines. WooCommerce writes a line break as `\n`. A text with a path of
 * Windows stays as it is.
 */
export const readLines = (cell: string): string =>
  cell.includes('\n') || /[A-Za-z]:\\|\\(?!n)\w/.test(cell) ? cell : cell.replaceAll(/(?<!\\)\\n/g, '\n')

/** Drops the time of day, which other programs write for a date as well. */
export const readDate: CellReader = (cell, formats) =>
  readFormattedDate(cell, formats).replace(/^(\d{4}-\d\d-\d\d)[ T]\d{1,2}:\d\d.*$/, '$1')

/**
 * Converts numeric text to a number. Other text stays unchanged, so that the validator refuses it.
 */
export const readWholeNumber = (cell: string): string | number => {
  const trimmed = cell.trim()
  return /^-?(0|[1-9]\d{0,14})$/.test(trimmed) ? Number(trimmed) : cell
}

/** Adds midnight to a date without a time, because spreadsheets write midnight without a time. */
export const readMoment: CellReader = (cell, formats) => {
  const read = readFormattedDate(cell, formats).trim()
  return /^\d{4}-\d\d-\d\d$/.test(read) ? `${read} 00:00` : read
}

/**
 * Returns the entries of a list cell, which is written as `a|b`, as JSON, or with the separators
 * that `split` knows.
 */
const entriesOf = (cell: string, split: (cell: string) => string[] = splitLines): unknown[] => json(cell) ?? split(cell)

const splitLines = (cell: string): string[] =>
  cell
    .split('|')
    .map((each) => each.trim())
    .filter((each) => each !== '')

function json(cell: string): unknown[] | undefined {
  if (!cell.trimStart().startsWith('[')) return undefined
  try {
    return JSON.parse(cell) as unknown[]
  } catch {
    throw new ImportStop('Must be a list in JSON, or its entries with | between them.', { kind: 'cell' })
  }
}

/**
 * Parses contact points, written as `value:label|value:label` or as JSON. The label starts after
 * the first colon that follows the last bracket, because addresses with an IP literal in brackets
 * contain colons.
 */
const pointsReader =
  (split: (cell: string) => string[], keyOf: (value: string) => string): CellReader =>
  (cell) => {
    const seen = new Set<string>()
    return entriesOf(cell, split).flatMap((entry) => {
      if (typeof entry !== 'string') return [entry]
      const colon = entry.indexOf(':', entry.lastIndexOf(']') + 1)
      const value = colon < 0 ? entry : entry.slice(0, colon).trim()
      // Other programs repeat the same value with another label.
      if (seen.has(keyOf(value))) return []
      seen.add(keyOf(value))
      return [colon < 0 ? { value } : { value, label: entry.slice(colon + 1).trim() || null }]
    })
  }

export const readAddresses = pointsReader(splitAddresses, fold)
export const readNumbers = pointsReader(splitNumbers, phoneKey)

/** Parses tag names. A later step finds the tag ids. */
export const readNames: CellReader = (cell) => entriesOf(cell, splitNames).map(String)

/**
 * Parses external ids, `hubspot:123`. An entry without a system, or two of one system, leave the
 * text unchanged, so that the validator refuses it.
 */
export const readExternalIds: CellReader = (cell) => {
  const entries = entriesOf(cell, splitNames).map((entry) => /^([^:]+):(.+)$/.exec(String(entry)))
  const ids = new Map(entries.map((entry) => [entry?.[1]?.trim() ?? '', entry?.[2]?.trim() ?? '']))
  return entries.includes(null) || ids.size < entries.length ? cell : Object.fromEntries(ids)
}

/**
 * Returns a reader for an option by id or name. Any other text stays unchanged, so that the
 * validator refuses it and lists the valid ids.
 */
export const optionReader =
  (options: readonly AttributeOption[]): ((cell: string) => unknown) =>
  (cell) => {
    const id = readWholeNumber(cell)
    if (options.some((each) => each.id === id)) return id
    return namedLike(options, cell)[0]?.id ?? id
  }

export const optionListReader =
  (options: readonly AttributeOption[]): CellReader =>
  (cell) => {
    const isOption = (text: string): boolean => namedLike(options, text).length > 0
    const split = (text: string): string[] => {
      if (isOption(text)) return [text]
      const parts = splitNames(text)
      const slashed = parts.flatMap((part) => (isOption(part) ? part : part.split('/').map((each) => each.trim())))
      return slashed.every(isOption) ? slashed : parts
    }
    const ids = entriesOf(cell, split).map((entry) =>
      typeof entry === 'string' ? optionReader(options)(entry) : entry,
    )
    return [...new Set(ids)]
  }

const lineParts: Readonly<Record<string, { key: string; read: (cell: string) => unknown }>> = {
  id: { key: 'product_id', read: readWholeNumber },
  price: { key: 'price', read: readText },
  quantity: { key: 'quantity', read: readText },
}

/** Parses product lines, such as `id=2,price=4821,quantity=3|id=7`. */
export const readProductLines: CellReader = (cell) =>
  entriesOf(cell).map((entry) => {
    if (typeof entry !== 'string') return entry
    const line: Record<string, unknown> = {}
    for (const part of entry.split(',')) {
      const at = part.indexOf('=')
      const known = at < 0 ? undefined : lineParts[part.slice(0, at).trim()]
      if (!known)
        throw new ImportStop('Must be lines such as id=2,price=4821,quantity=3 with | between them.', { kind: 'cell' })
      const value = part.slice(at + 1).trim()
      if (value !== '') line[known.key] = known.read(value)
    }
    return line
  })
