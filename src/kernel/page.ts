// Pages of a list (DOMAIN 5.1, 5.2): by number with exact totals, or by cursor over (sort keys, id). Turns any query into
// the envelope of the contract; knows no resource.
import { createHash } from 'node:crypto'
import { type Expression, type RawBuilder, type SelectQueryBuilder, type SqlBool, sql } from 'kysely'
import { didYouMean } from '../contract/findings.ts'
import type { Schema } from '../contract/types.ts'
import type { Context } from './context.ts'
import { invalid } from './errors.ts'
import type { Query } from './filter.ts'

// biome-ignore lint/suspicious/noExplicitAny: a page is taken of any query; its rows are typed by Row
export type Rows<Row> = SelectQueryBuilder<any, any, Row>

export interface Paged<Row> {
  rows: Row[]
  links: Schema<'PageLinks'>
  meta: Schema<'PageMeta'>
}

/** A column by its name, or an expression with one value a row. */
export type SortColumn = string | Expression<unknown>

interface Key {
  name: string
  column: Expression<unknown>
  descending: boolean
}

interface Cursor {
  /** Values of the sort keys and the id of the row the page starts behind. */
  at: (string | number | null)[]
  back: boolean
  of: string
}

const bookkeeping = new Set(['page', 'per_page', 'cursor', 'count', 'include', 'fields'])

/**
 * One page of `rows`. `sort` maps every name the contract allows to a column; `id` is the column of the last tie-breaker.
 * Throws 422 on `query.cursor` for a cursor of another list, sort or filter, and for page together with cursor.
 */
export async function page<Row extends object>(
  ctx: Context,
  rows: Rows<Row>,
  query: Query,
  sort: Record<string, SortColumn>,
  id: string,
): Promise<Paged<Row>> {
  const keys = sortKeys(query, sort, id)
  const size = Number(query.per_page ?? 10)
  if (query.cursor === undefined) return byNumber(ctx, rows, query, keys, size)
  if (new URLSearchParams(ctx.query).has('page')) throw invalid({ 'query.cursor': ['Use either page or cursor.'] })
  return byCursor(ctx, rows, query, keys, size)
}

function sortKeys(query: Query, sort: Record<string, SortColumn>, id: string): Key[] {
  const names = (query.sort as string[] | undefined) ?? ['-id']
  const keys: Key[] = []
  for (const sent of names) {
    const descending = sent.startsWith('-')
    const name = descending ? sent.slice(1) : sent
    const column = Object.hasOwn(sort, name) ? sort[name] : undefined
    if (column === undefined)
      throw invalid({ 'query.sort': [`Unknown sort key ${name}.${didYouMean(name, Object.keys(sort))}`] })
    if (!keys.some((key) => key.name === name)) keys.push({ name, column: expressionOf(column), descending })
    if (column === id) return keys
  }
  return [...keys, { name: 'id', column: sql.ref(id), descending: keys.at(-1)?.descending ?? true }]
}

const expressionOf = (column: SortColumn): Expression<unknown> =>
  typeof column === 'string' ? sql.ref(column) : column

async function byNumber<Row extends object>(
  ctx: Context,
  rows: Rows<Row>,
  query: Query,
  keys: Key[],
  size: number,
): Promise<Paged<Row>> {
  const number = Number(query.page ?? 1)
  const counted = query.count !== 'none'
  const offset = (number - 1) * size
  const total = counted ? await count(rows) : null
  const beyond = !Number.isSafeInteger(offset) || (total !== null && offset >= total)
  const found = beyond
    ? []
    : await ordered(ctx, rows, keys, false)
        .limit(counted ? size : size + 1)
        .offset(offset)
        .execute()
  const more = counted ? offset + found.length < (total ?? 0) : found.length > size
  const shown = found.slice(0, size)
  const last = total === null ? null : Math.max(1, Math.ceil(total / size))
  const link = (to: number): string => url(ctx, { page: String(to) })
  return {
    rows: shown,
    links: {
      first: link(1),
      last: last === null ? null : link(last),
      prev: number > 1 ? link(last === null ? number - 1 : Math.min(number - 1, last)) : null,
      next: more && !beyond ? link(number + 1) : null,
    },
    meta: {
      current_page: number,
      from: shown.length > 0 ? offset + 1 : null,
      last_page: last,
      path: ctx.base + ctx.path,
      per_page: size,
      to: shown.length > 0 ? offset + shown.length : null,
      total,
    },
  }
}

async function byCursor<Row extends object>(
  ctx: Context,
  rows: Rows<Row>,
  query: Query,
  keys: Key[],
  size: number,
): Promise<Paged<Row>> {
  const of = fingerprint(ctx, query, keys)
  const cursor = query.cursor === '' ? null : readCursor(ctx, String(query.cursor), of)
  const back = cursor?.back ?? false
  let selected = ordered(ctx, rows, keys, back).select(
    keys.map(({ column }, index) => sql<string | number | null>`${column}`.as(`cursor_${index}`)),
  )
  if (cursor) selected = selected.where(behind(keys, cursor))
  const found = (await selected.limit(size + 1).execute()) as (Row & Record<string, string | number | null>)[]
  const more = found.length > size
  const shown = found.slice(0, size)
  if (back) shown.reverse()
  const at = (row: Record<string, string | number | null> | undefined): (string | number | null)[] =>
    keys.map((_, index) => row?.[`cursor_${index}`] ?? null)
  const next = shown.length > 0 && (back || more) ? writeCursor(ctx, { at: at(shown.at(-1)), back: false, of }) : null
  const prev =
    shown.length > 0 && (back ? more : cursor !== null) ? writeCursor(ctx, { at: at(shown[0]), back: true, of }) : null
  return {
    rows: shown,
    links: {
      first: url(ctx, { cursor: '' }),
      last: null,
      prev: prev === null ? null : url(ctx, { cursor: prev }),
      next: next === null ? null : url(ctx, { cursor: next }),
    },
    meta: {
      current_page: null,
      from: null,
      last_page: null,
      path: ctx.base + ctx.path,
      per_page: size,
      to: null,
      total: null,
      next_cursor: next,
      prev_cursor: prev,
    },
  }
}

/** All rows in the order of the query. */
export const inOrder = <Row>(
  ctx: Context,
  rows: Rows<Row>,
  query: Query,
  sort: Record<string, SortColumn>,
  id: string,
): Rows<Row> => ordered(ctx, rows, sortKeys(query, sort, id), false)

/** Every table has them, and never without a value. */
const neverNull: ReadonlySet<string> = new Set(['id', 'created_at', 'updated_at'])

/**
 * Nulls sort last in both directions (DOMAIN 5.2). Where the engine puts them there by itself nothing is said of them, so that
 * an index serves the order; reversed, its own order is right as well.
 */
function ordered<Row>({ services }: Context, rows: Rows<Row>, keys: readonly Key[], reverse: boolean): Rows<Row> {
  const { nullsAreLow } = services.store.dialect
  let result = rows
  for (const { name, column, descending } of keys) {
    const isNatural = neverNull.has(name) || descending === nullsAreLow
    if (!isNatural) result = result.orderBy(sql`(${column} is null)`, reverse ? 'desc' : 'asc')
    result = result.orderBy(column, descending !== reverse ? 'desc' : 'asc')
  }
  return result
}

/** Rows strictly behind the cursor's row in the order of `keys` (before it, when the cursor points back). */
function behind(keys: readonly Key[], { at, back }: Cursor): Expression<SqlBool> {
  const alternatives: RawBuilder<SqlBool>[] = []
  for (const [index, key] of keys.entries()) {
    const step = beyond(key, at[index] ?? null, back)
    if (!step) continue
    const same = keys.slice(0, index).map((each, position) => equal(each, at[position] ?? null))
    alternatives.push(sql<SqlBool>`(${sql.join([...same, step], sql` and `)})`)
  }
  return sql<SqlBool>`(${sql.join(alternatives, sql` or `)})`
}

const equal = ({ column }: Key, at: string | number | null): RawBuilder<SqlBool> =>
  at === null ? sql<SqlBool>`${column} is null` : sql<SqlBool>`${column} = ${at}`

function beyond(
  { column, descending }: Key,
  at: string | number | null,
  back: boolean,
): RawBuilder<SqlBool> | undefined {
  if (at === null) return back ? sql<SqlBool>`${column} is not null` : undefined
  const sign = sql.raw(descending !== back ? '<' : '>')
  return back ? sql<SqlBool>`${column} ${sign} ${at}` : sql<SqlBool>`(${column} ${sign} ${at} or ${column} is null)`
}

async function count<Row>(rows: Rows<Row>): Promise<number> {
  const counted = await rows.clearSelect().select(sql<number>`count(*)`.as('total')).executeTakeFirstOrThrow()
  return Number((counted as { total: number }).total)
}

/** Binds a cursor to its list, sort and filters. */
function fingerprint(ctx: Context, query: Query, keys: readonly Key[]): string {
  const filters = Object.entries(query).filter(([name]) => !bookkeeping.has(name))
  const order = keys.map(({ name, descending }) => [name, descending])
  return createHash('sha256')
    .update(JSON.stringify([ctx.path, order, filters.sort(([a], [b]) => (a < b ? -1 : 1))]))
    .digest('base64url')
    .slice(0, 16)
}

const macLength = 22

/** Opaque and signed: what comes back is what was handed out, so its values need no second look. */
function writeCursor(ctx: Context, cursor: Cursor): string {
  const text = Buffer.from(JSON.stringify(cursor)).toString('base64url')
  return ctx.services.seal.fingerprint(text).slice(0, macLength) + text
}

function readCursor(ctx: Context, sent: string, of: string): Cursor {
  const text = sent.slice(macLength)
  const refused = invalid({ 'query.cursor': ['This cursor belongs to another list, sort or filter.'] })
  if (ctx.services.seal.fingerprint(text).slice(0, macLength) !== sent.slice(0, macLength)) throw refused
  const cursor = JSON.parse(Buffer.from(text, 'base64url').toString()) as Cursor
  if (cursor.of !== of) throw refused
  return cursor
}

/** This request's URL with some parameters replaced. */
function url(ctx: Context, replace: Record<string, string>): string {
  const parameters = new URLSearchParams(ctx.query)
  for (const [name, text] of Object.entries(replace)) parameters.set(name, text)
  return `${ctx.base}${ctx.path}?${parameters}`
}
