// Turns values of replies into CSV cells, in the form that imports read. A list is
// one cell, an address has one column per part, and a reference is the id of its record.
import { componentOf, resolved } from '../../contract/input/open-schema.ts'
import { externalIdText } from './external-ids.ts'

export type Cell = string | number | boolean | null

/** A column of the CSV file. `name` is its header; `cell` returns its cell for a record. */
export interface CsvColumn<Reply> {
  name: string
  cell: (reply: Reply) => Cell
  /** Set for texts that are dates or timestamps, which a workbook has as such. */
  format?: 'date' | 'date-time' | undefined
  /** The value of `include` that the reply needs for this column. */
  include?: string
}

export type CsvColumns<Reply> = CsvColumn<Reply>[]

/** Returns columns whose values become cells without conversion. */
export const plain = <Name extends string>(...names: Name[]): CsvColumns<Record<Name, Cell>> =>
  names.map((name) => ({ name, cell: (reply) => reply[name] }))

/** The properties of every reply whose values do not fit in a cell, each with its columns. */
type FurtherColumns<Reply> = {
  [K in keyof Reply as object extends Pick<Reply, K> ? never : Reply[K] extends Cell ? never : K]: CsvColumns<Reply>
} & Partial<Record<keyof Reply, CsvColumns<Reply>>>

interface Shown {
  required: string[]
  properties: Record<string, unknown>
}

/**
 * Returns the columns of a record, in the order of its schema in the contract: one for each text,
 * number and flag, and those of `further`. A property that only some replies have gets no column.
 */
export function recordColumns<Reply>(
  contract: object,
  schema: string,
  further: FurtherColumns<Reply>,
): CsvColumns<Reply> {
  const { required, properties } = componentOf(contract, `#/components/schemas/${schema}`) as Shown
  return required.flatMap((name): CsvColumns<Reply> => {
    const columns = Object.hasOwn(further, name) ? further[name as keyof typeof further] : undefined
    if (columns) return columns
    const { format } = resolved(contract, properties[name]) as { format?: string }
    const isTime = format === 'date' || format === 'date-time'
    return [{ name, cell: (reply) => reply[name as keyof Reply] as Cell, ...(isTime && { format }) }]
  })
}

/** Returns the column with the name of a referenced record, as the reply shows it. */
export const nameColumn = <Reference extends string>(
  reference: Reference,
): CsvColumn<Record<Reference, { name: string } | null>> => ({
  // Never equals the column of a custom attribute: attribute codes contain no dot, and no part of
  // an address is called `name`.
  name: `${reference}.name`,
  cell: (reply) => reply[reference]?.name ?? null,
})

/**
 * Returns a column that contains a list in one cell, separated by `|`. The cell is JSON when an
 * entry contains the separator.
 */
export const listColumn = <Reply>(
  name: string,
  texts: (reply: Reply) => readonly (string | number)[],
  /** Besides `|`, the separators at which an import splits an entry. */
  separators?: RegExp,
): CsvColumn<Reply> => ({
  name,
  cell: (reply) => list(texts(reply), separators),
})

const list = (entries: readonly (string | number)[], separators = /\|/): string =>
  entries.some((entry) => /^\s*\[|\|/.test(String(entry)) || separators.test(String(entry)))
    ? JSON.stringify(entries)
    : entries.join('|')

/** The separators at which an import splits names of tags and options, addresses and numbers. */
export const nameSeparators = /[,;\r\n]|\s\/\s|:::/

interface Point {
  value: string
  label: string
}

/**
 * Returns contact points as one text `value:label|value:label`. Returns JSON when that text would
 * be ambiguous.
 */
export const points = (list: readonly Point[]): string =>
  list.some(
    ({ value, label }) =>
      /\||^\s*\[/.test(`${value}${label}`) ||
      nameSeparators.test(`${value}${label}`) ||
      label.includes(']') ||
      /:/.test(value.slice(value.lastIndexOf(']') + 1)),
  )
    ? JSON.stringify(list)
    : list.map(({ value, label }) => `${value}:${label}`).join('|')

export const contactPoints = <Name extends string>(...names: Name[]): CsvColumns<Record<Name, readonly Point[]>> =>
  names.map((name) => ({ name, cell: (reply) => points(reply[name]) }))

export const idLists = <Name extends string>(...names: Name[]): CsvColumns<Record<Name, readonly number[]>> =>
  names.map((name) => listColumn(name, (reply) => reply[name]))

/** Returns one line item as text, in the form `name=value,name=value`. */
export const line = (parts: Record<string, Cell>): string =>
  Object.entries(parts)
    .map(([name, value]) => `${name}=${value ?? ''}`)
    .join(',')

const addressParts = ['address', 'country', 'state', 'city', 'postcode'] as const
type Address = Record<(typeof addressParts)[number], string | null> | null

export const addressColumns = <Reply>(name: string, address: (reply: Reply) => Address): CsvColumns<Reply> =>
  addressParts.map((part) => ({ name: `${name}.${part}`, cell: (reply) => address(reply)?.[part] ?? null }))

/** The column with the ids in other systems, in the form `hubspot:123`. */
export const externalIds: CsvColumn<{ external_ids: Readonly<Record<string, string>> }> = listColumn(
  'external_ids',
  ({ external_ids }) => Object.entries(external_ids).map(([source, id]) => externalIdText(source, id)),
)

/** The columns with the times and the version, which come last in every export. */
export const bookkeeping = plain('created_at', 'updated_at', 'version')

/**
 * Matches the positions where a spreadsheet could start a formula: the start of the text, and after
 * a line break, semicolon or tab, because some programs start a new cell there. Also matches a
 * formula behind apostrophes, so that `unescapeFormula` restores the exact text.
 */
const formulas =
  /^(?=[' \u00a0\u3000]*[=+\-@\t\r\uff1d\uff0b\uff0d\uff20])|(?<=[\r\n;\t])(?='*[=+\-@\t\uff1d\uff0b\uff0d\uff20])/g
const guards =
  /^'(?=[' \u00a0\u3000]*[=+\-@\t\r\uff1d\uff0b\uff0d\uff20])|(?<=[\r\n;\t])'(?='*[=+\-@\t\uff1d\uff0b\uff0d\uff20])/g

/** Adds an apostrophe at every position where a spreadsheet would start a formula. */
export const escapeFormula = (text: string): string => text.replace(formulas, "'")

/** Removes the apostrophes that `escapeFormula` added. Imports use this. */
export const unescapeFormula = (cell: string): string => cell.replace(guards, '')
