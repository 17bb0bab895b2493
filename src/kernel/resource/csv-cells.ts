// Turns values of replies into CSV cells, in the forms that imports read (DOMAIN 21.1): one text
// per list, one column per part of an address, and ids for other records.
export type Cell = string | number | boolean | null

/** A column of the CSV: its header and its cells. */
export interface Column<Reply> {
  name: string
  cell: (reply: Reply) => Cell
}

export type Columns<Reply> = Column<Reply>[]

/** Columns whose values are cells as they are. */
export const plain = <Name extends string>(...names: Name[]): Columns<Record<Name, Cell>> =>
  names.map((name) => ({ name, cell: (reply) => reply[name] }))

/**
 * Returns a column with a list as one cell. The cell is JSON when an entry contains the separator.
 */
export const listColumn = <Reply>(
  name: string,
  texts: (reply: Reply) => readonly (string | number)[],
): Column<Reply> => ({
  name,
  cell: (reply) => list(texts(reply)),
})

const list = (entries: readonly (string | number)[]): string =>
  entries.some((entry) => /^\s*\[|\|/.test(String(entry))) ? JSON.stringify(entries) : entries.join('|')

interface Point {
  value: string
  label: string
}

/**
 * Returns contact points with their labels as one text, or as JSON when the text would be
 * ambiguous.
 */
export const points = (list: readonly Point[]): string =>
  list.some(
    ({ value, label }) =>
      /\||^\s*\[/.test(`${value}${label}`) || label.includes(']') || /:/.test(value.slice(value.lastIndexOf(']') + 1)),
  )
    ? JSON.stringify(list)
    : list.map(({ value, label }) => `${value}:${label}`).join('|')

export const contactPoints = <Name extends string>(...names: Name[]): Columns<Record<Name, readonly Point[]>> =>
  names.map((name) => ({ name, cell: (reply) => points(reply[name]) }))

/** Returns columns of lists of ids. */
export const idLists = <Name extends string>(...names: Name[]): Columns<Record<Name, readonly number[]>> =>
  names.map((name) => listColumn(name, (reply) => reply[name]))

/** Returns one line item as text: its named values, separated by commas. */
export const line = (parts: Record<string, Cell>): string =>
  Object.entries(parts)
    .map(([name, value]) => `${name}=${value ?? ''}`)
    .join(',')

const addressParts = ['address', 'country', 'state', 'city', 'postcode'] as const
type Address = Record<(typeof addressParts)[number], string | null> | null

/** Returns a column for each part of an address. */
export const addressColumns = <Reply>(name: string, address: (reply: Reply) => Address): Columns<Reply> =>
  addressParts.map((part) => ({ name: `${name}.${part}`, cell: (reply) => address(reply)?.[part] ?? null }))

/** The times of creation and change: the last columns of every record. */
export const bookkeeping = plain('created_at', 'updated_at', 'version')

/**
 * Matches the places where a spreadsheet would start a formula: the start of a text, and any place
 * that would start a cell for a program with another delimiter than the comma. Apostrophes already
 * there also match, so that removing the added ones restores the text.
 */
const formulas =
  /^(?=[' \u00a0\u3000]*[=+\-@\t\r\uff1d\uff0b\uff0d\uff20])|(?<=[\r\n;\t])(?='*[=+\-@\t\uff1d\uff0b\uff0d\uff20])/g
const guards =
  /^'(?=[' \u00a0\u3000]*[=+\-@\t\r\uff1d\uff0b\uff0d\uff20])|(?<=[\r\n;\t])'(?='*[=+\-@\t\uff1d\uff0b\uff0d\uff20])/g

/** Adds an apostrophe wherever a spreadsheet would begin a formula. */
export const escapeFormula = (text: string): string => text.replace(formulas, "'")

/** Removes these apostrophes, for imports. */
export const unescapeFormula = (cell: string): string => cell.replace(guards, '')
