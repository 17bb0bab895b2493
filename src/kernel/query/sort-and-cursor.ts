// The order of a list, and the start of a page by cursor (DOMAIN 5.1, 5.2). One statement per sort
// key finds the rows after a cursor: each reads one range of a database index, which a single
// condition with `or` would not.
import { createHash } from 'node:crypto'
import { type Expression, type RawBuilder, type SqlBool, sql } from 'kysely'
import { didYouMean } from '../../contract/input/validation-errors.ts'
import type { Context } from '../context.ts'
import { invalid } from '../errors.ts'
import type { Query } from './filter.ts'
import type { Rows } from './page.ts'

/** A column by its name, or an expression with one value per row. */
export type SortColumn = string | Expression<unknown>

export interface Key {
  name: string
  column: Expression<unknown>
  descending: boolean
  /** Whether rows may lack a value. */
  isNullable: boolean
}

export interface Cursor {
  /** The values of the sort keys and the id in the last row before the page. */
  at: (string | number | null)[]
  back: boolean
  of: string
}

/** Every table has these columns, and they are never null. */
const neverNull: ReadonlySet<string> = new Set(['id', 'created_at', 'updated_at'])

export function sortKeys(query: Query, sort: Record<string, SortColumn>, id: string): Key[] {
  const names = (query.sort as string[] | undefined) ?? ['-id']
  const keys: Key[] = []
  for (const sent of names) {
    const descending = sent.startsWith('-')
    const name = descending ? sent.slice(1) : sent
    const column = Object.hasOwn(sort, name) ? sort[name] : undefined
    if (column === undefined)
      throw invalid({ 'query.sort': [`Unknown sort key ${name}.${didYouMean(name, Object.keys(sort))}`] })
    if (!keys.some((key) => key.name === name))
      keys.push({ name, column: expressionOf(column), descending, isNullable: !neverNull.has(name) })
    if (column === id) return keys
  }
  return [...keys, { name: 'id', column: sql.ref(id), descending: keys.at(-1)?.descending ?? true, isNullable: false }]
}

const expressionOf = (column: SortColumn): Expression<unknown> =>
  typeof column === 'string' ? sql.ref(column) : column

/**
 * Returns the order as a text: equal texts mean an equal `order by`. Null when the order binds
 * values.
 */
export function orderText({ db }: Pick<Context, 'db'>, keys: readonly Key[]): string | null {
  const parts = keys.map(({ column }) => sql`${column}`.compile(db))
  if (parts.some(({ parameters }) => parameters.length > 0)) return null
  return parts.map(({ sql: text }, index) => `${text} ${keys[index]?.descending ? 'desc' : 'asc'}`).join()
}

/**
 * Adds the `order by`. Nulls sort last in both directions (DOMAIN 5.2). The nulls clause is omitted
 * where it is the database's default, also in a reversed query, because a database index can then
 * supply the order.
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

export interface KeysetRange {
  condition: Expression<SqlBool>
  /** The SQL of the condition, without its values. */
  text: string
  values: readonly (string | number)[]
}

/**
 * The rows strictly after the cursor's row (before it, when the cursor points back), as consecutive
 * ranges: rows equal in all keys but the last, rows equal in all but the last two, and so on.
 */
export function rangesAfter(keys: readonly Key[], { at, back }: Cursor): KeysetRange[] {
  const stretches: KeysetRange[] = []
  for (let last = keys.length - 1; last >= 0; last--) {
    const same = keys.slice(0, last).map((key, index) => equal(key, index, at[index] ?? null))
    for (const step of strictlyAfter(keys[last] as Key, last, at[last] ?? null, back)) {
      const parts = [...same, step]
      stretches.push({
        condition: sql<SqlBool>`(${sql.join(
          parts.map(({ condition }) => condition),
          sql` and `,
        )})`,
        text: parts.map(({ text }) => text).join(' '),
        values: parts.flatMap(({ values }) => values),
      })
    }
  }
  return stretches
}

interface Step extends KeysetRange {
  condition: RawBuilder<SqlBool>
}

function equal({ column }: Key, index: number, at: string | number | null): Step {
  if (at === null) return { condition: sql<SqlBool>`${column} is null`, text: `${index}null`, values: [] }
  return { condition: sql<SqlBool>`${column} = ${at}`, text: `${index}=`, values: [at] }
}

/**
 * Returns the condition for rows strictly after a value in the order. Nulls come after all values.
 */
function strictlyAfter(
  { column, descending, isNullable }: Key,
  index: number,
  at: string | number | null,
  back: boolean,
) {
  if (at === null)
    return back ? [{ condition: sql<SqlBool>`${column} is not null`, text: `${index}some`, values: [] }] : []
  const sign = descending !== back ? '<' : '>'
  const values: Step = {
    condition: sql<SqlBool>`${column} ${sql.raw(sign)} ${at}`,
    text: `${index}${sign}`,
    values: [at],
  }
  if (back || !isNullable) return [values]
  return [values, { condition: sql<SqlBool>`${column} is null`, text: `${index}null`, values: [] }]
}

const bookkeeping = new Set(['page', 'per_page', 'cursor', 'count', 'include', 'fields'])

/** Returns the hash that binds a cursor to its list, sort and filters. */
export function fingerprint(ctx: Context, query: Query, keys: readonly Key[]): string {
  const filters = Object.entries(query).filter(([name]) => !bookkeeping.has(name))
  const order = keys.map(({ name, descending }) => [name, descending])
  return createHash('sha256')
    .update(JSON.stringify([ctx.path, order, filters.sort(([a], [b]) => (a < b ? -1 : 1))]))
    .digest('base64url')
    .slice(0, 16)
}

const macLength = 22

/**
 * Returns an opaque signed cursor. A valid signature proves that the server wrote it, so its values
 * need no other check.
 */
export function writeCursor(ctx: Context, cursor: Cursor): string {
  const text = Buffer.from(JSON.stringify(cursor)).toString('base64url')
  return ctx.services.seal.hmac(text).slice(0, macLength) + text
}

export function readCursor(ctx: Context, sent: string, of: string): Cursor {
  const text = sent.slice(macLength)
  const refused = invalid({ 'query.cursor': ['This cursor belongs to another list, sort or filter.'] })
  if (ctx.services.seal.hmac(text).slice(0, macLength) !== sent.slice(0, macLength)) throw refused
  const cursor = JSON.parse(Buffer.from(text, 'base64url').toString()) as Cursor
  if (cursor.of !== of) throw refused
  return cursor
}
