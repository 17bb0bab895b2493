// Orders a list and finds the rows after a cursor. One statement per sort key
// finds these rows. Each statement reads one range of a database index; a single statement with
// `or` could not use the index.
import { createHash } from 'node:crypto'
import { type Expression, type RawBuilder, type SelectQueryBuilder, type SqlBool, sql } from 'kysely'
import { didYouMean } from '../../contract/input/validation-errors.ts'
import type { Context } from '../context.ts'
import { invalid } from '../errors.ts'
import type { QueryValues } from './filter.ts'

// biome-ignore lint/suspicious/noExplicitAny: any query can be paged; Row is the type of its rows
export type Rows<Row> = SelectQueryBuilder<any, any, Row>

/** A column by its name, or an expression with one value per row. */
export type SortColumn = string | Expression<unknown>

export interface Key {
  name: string
  column: Expression<unknown>
  descending: boolean
  isNullable: boolean
  /** The alias of the joined table with the column; null for a column of the list's own table. */
  parent: string | null
  /** False for an expression, such as a custom attribute. */
  isColumn: boolean
}

/** A range of a list in its order. */
export interface Range {
  where: Expression<SqlBool>
  /** The part of `where` about the table of the first sort key. */
  ofParent: Expression<SqlBool>
  /** Whether every row of the range has a value of the first sort key. */
  hasValue: boolean
}

export interface Cursor {
  /** The values of the sort keys and the id of the row at the edge of the page. */
  at: (string | number | null)[]
  back: boolean
  of: string
}

/** The columns that every table has and that are never null. */
const neverNull: ReadonlySet<string> = new Set(['id', 'created_at', 'updated_at'])

export function sortKeys(query: QueryValues, sort: Record<string, SortColumn>, id: string): Key[] {
  const names = (query.sort as string[] | undefined) ?? ['-id']
  const own = id.split('.')[0] ?? ''
  const keys: Key[] = []
  for (const sent of names) {
    const descending = sent.startsWith('-')
    const name = descending ? sent.slice(1) : sent
    const column = Object.hasOwn(sort, name) ? sort[name] : undefined
    if (column === undefined)
      throw invalid({ 'query.sort': [`Unknown sort key ${name}.${didYouMean(name, Object.keys(sort))}`] })
    if (!keys.some((key) => key.name === name))
      keys.push({
        name,
        column: expressionOf(column),
        descending,
        isNullable: !neverNull.has(name),
        parent: parentOf(column, own),
        isColumn: typeof column === 'string',
      })
    if (column === id) return keys
  }
  const last = keys.at(-1)
  const descending = last?.descending ?? true
  const tie = { descending, isNullable: false, isColumn: true }
  // Rows of one joined row stay together, so that the index of the joined table supplies the order.
  if (last?.parent)
    keys.push({ ...tie, name: `${last.parent}.id`, column: sql.ref(`${last.parent}.id`), parent: last.parent })
  return [...keys, { ...tie, name: 'id', column: sql.ref(id), parent: null }]
}

function parentOf(column: SortColumn, own: string): string | null {
  if (typeof column !== 'string') return null
  const [table = own] = column.split('.')
  return table === own ? null : table
}

const expressionOf = (column: SortColumn): Expression<unknown> =>
  typeof column === 'string' ? sql.ref(column) : column

/**
 * Returns a text that identifies the SQL order: equal texts mean equal `order by` clauses. Returns
 * null when the clause contains bound values.
 */
export function orderText({ db }: Pick<Context, 'db'>, keys: readonly Key[]): string | null {
  const parts = keys.map(({ column }) => sql`${column}`.compile(db))
  if (parts.some(({ parameters }) => parameters.length > 0)) return null
  return parts.map(({ sql: text }, index) => `${text} ${keys[index]?.descending ? 'desc' : 'asc'}`).join()
}

/**
 * Adds the `order by` clause. Nulls sort last in ascending and descending order.
 * `nulls last` is omitted where it is the default of the database, because an index can then supply
 * the order. A reversed query has `nulls first`, also omitted where it is the default.
 */
export function ordered<Row>(
  { services }: Context,
  rows: Rows<Row>,
  keys: readonly Key[],
  isReverse: boolean,
): Rows<Row> {
  const { nullsAreLow } = services.store.dialect
  let result = rows
  for (const { column, descending, isNullable } of keys) {
    const isNatural = !isNullable || descending === nullsAreLow
    result = result.orderBy(column, (order) => {
      const directed = descending === isReverse ? order.asc() : order.desc()
      if (isNatural) return directed
      return isReverse ? directed.nullsFirst() : directed.nullsLast()
    })
  }
  return result
}

/**
 * Returns conditions for the rows strictly after the row of the cursor, or strictly before that row
 * when `back` is set. Each condition selects one range. The first range has the rows that equal the
 * cursor's row in all sort keys but the last. The second range has the rows that equal it in all
 * but the last two, and so on.
 */
export function rangesAfter(keys: readonly Key[], { at, back }: Cursor): Range[] {
  const ranges: Range[] = []
  for (let last = keys.length - 1; last >= 0; last--) {
    const same = keys.slice(0, last).map(({ column }, index) => equal(column, at[index] ?? null))
    for (const { where, hasValue } of strictlyAfter(keys[last] as Key, at[last] ?? null, back)) {
      const all = [...same, where]
      ranges.push({
        where: allOf(all),
        ofParent: allOf(all.filter((_, index) => keys[index]?.parent === keys[0]?.parent)),
        hasValue: last > 0 ? at[0] !== null : hasValue,
      })
    }
  }
  return ranges
}

const allOf = (conditions: readonly Expression<SqlBool>[]): RawBuilder<SqlBool> =>
  sql<SqlBool>`(${sql.join(conditions, sql` and `)})`

const equal = (column: Expression<unknown>, at: string | number | null): RawBuilder<SqlBool> =>
  at === null ? sql<SqlBool>`${column} is null` : sql<SqlBool>`${column} = ${at}`

/**
 * Returns the conditions for rows strictly after the value `at`, or strictly before the value when
 * `back` is set. Nulls come after all values.
 */
function strictlyAfter({ column, descending, isNullable }: Key, at: string | number | null, back: boolean): Half[] {
  const [withValue, withoutValue] = halvesAt(column)
  if (at === null) return back ? [withValue] : []
  const where = sql<SqlBool>`${column} ${sql.raw(descending !== back ? '<' : '>')} ${at}`
  const beyond = { where, hasValue: true }
  return back || !isNullable ? [beyond] : [beyond, withoutValue]
}

type Half = Omit<Range, 'ofParent'>

const halvesAt = (column: Expression<unknown>): [withValue: Half, withoutValue: Half] => [
  { where: sql<SqlBool>`${column} is not null`, hasValue: true },
  { where: sql<SqlBool>`${column} is null`, hasValue: false },
]

/**
 * Returns the two halves of a list whose first sort key is a column of a joined table or an
 * expression: the rows with a value, and those without, which come last. An index supplies the
 * order of each half, but not of both. Returns null for a column of the list's own table.
 */
export function halvesOf([first]: readonly Key[], isReverse: boolean): Range[] | null {
  if (!first || (first.parent === null && first.isColumn)) return null
  const halves = halvesAt(first.column).map((half) => ({ ...half, ofParent: half.where }))
  return isReverse ? halves.reverse() : halves
}

const bookkeeping = new Set(['page', 'per_page', 'cursor', 'count', 'include', 'fields'])

/**
 * Returns a hash of the list, sort and filters. A cursor contains this hash, so that it is refused
 * for any other list, sort or filter. The hash contains the SQL of an expression, because a new
 * attribute may have the code of a deleted one and another type.
 */
export function fingerprint(ctx: Context, query: QueryValues, keys: readonly Key[]): string {
  const filters = Object.entries(query).filter(([name]) => !bookkeeping.has(name))
  const order = keys.map(({ name, descending, column, isColumn }) => [
    name,
    descending,
    ...(isColumn ? [] : [sql`${column}`.compile(ctx.db).sql]),
  ])
  return createHash('sha256')
    .update(JSON.stringify([ctx.path, order, filters.sort(([a], [b]) => (a < b ? -1 : 1))]))
    .digest('base64url')
    .slice(0, 16)
}

const macLength = 22

/**
 * Returns a signed cursor as opaque text. A valid signature proves that this server created the
 * cursor, so its values need no other check.
 */
export function writeCursor(ctx: Context, cursor: Cursor): string {
  const text = Buffer.from(JSON.stringify(cursor)).toString('base64url')
  return ctx.services.encryption.hmac(text).slice(0, macLength) + text
}

export function readCursor(ctx: Context, sent: string, of: string): Cursor {
  const text = sent.slice(macLength)
  const refused = invalid({ 'query.cursor': ['This cursor belongs to another list, sort or filter.'] })
  if (ctx.services.encryption.hmac(text).slice(0, macLength) !== sent.slice(0, macLength)) throw refused
  const cursor = JSON.parse(Buffer.from(text, 'base64url').toString()) as Cursor
  if (cursor.of !== of) throw refused
  return cursor
}
