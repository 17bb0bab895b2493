// Returns the pages of a list in the reply format of lists. A page is selected by number, with a
// total, or by cursor, which contains sort keys and id. sort-and-cursor.ts determines the order,
// and id-pages.ts reads the pages of resources.
import { sql } from 'kysely'
import type { Schema } from '../../contract/types.ts'
import type { Context } from '../context.ts'
import { invalid } from '../errors.ts'
import { conditions, type Fields, type QueryValues, type SearchField } from './filter.ts'
import { withParameters } from './query-string.ts'
import {
  type Cursor,
  fingerprint,
  type Key,
  ordered,
  type Range,
  type Rows,
  rangesAfter,
  readCursor,
  type SortColumn,
  sortKeys,
  writeCursor,
} from './sort-and-cursor.ts'

export type { Rows, SortColumn } from './sort-and-cursor.ts'

export interface Paged<Row> {
  rows: Row[]
  links: Schema<'PageLinks'>
  meta: Schema<'PageMeta'>
}

/**
 * Returns one page of `rows`. `sort` maps every sort name of the contract to a column. `id` is the
 * id column, which orders rows with equal sort keys. Throws 422 on `query.cursor` when the cursor
 * belongs to another list, sort or filter, or when the query also has a page number.
 */
export async function page<Row extends object>(
  ctx: Context,
  rows: Rows<Row>,
  query: QueryValues,
  sort: Record<string, SortColumn>,
  id: string,
): Promise<Paged<Row>> {
  const keys = sortKeys(query, sort, id)
  return paged(ctx, query, {
    keys,
    find: async ({ range, limit, offset, reverse }) => {
      let found = ordered(ctx, rows, keys, reverse).select(marksOf(keys))
      if (range) found = found.where(range.where)
      const read = (await found.limit(limit).offset(offset).execute()) as (Row & CursorValues)[]
      return read.map((row) => ({ mark: row, row }))
    },
    count: async () => ({ count: Number((await countOf(rows).executeTakeFirstOrThrow()).total), isExact: true }),
  })
}

export const countOf = (rows: Rows<unknown>): Rows<{ total: number }> =>
  rows.clearSelect().select(sql<number>`count(*)`.as('total'))

/** The values of a row's sort keys, from which a cursor is built. */
export type CursorValues = Record<`cursor_${number}`, string | number | null>

/**
 * A row of a page with its sort keys. `row` is undefined when the record was deleted between the
 * two queries. The entry still counts towards the page size, so that the next page starts at the
 * right place.
 */
interface PageEntry<Row> {
  mark: CursorValues
  row: Row | undefined
}

const rowsOf = <Row>(entries: readonly PageEntry<Row>[]): Row[] => entries.flatMap(({ row }) => row ?? [])

export const marksOf = (keys: readonly Key[]) =>
  keys.map(({ column }, index) => sql<string | number | null>`${column}`.as(`cursor_${index}`))

export interface PageWindow {
  range?: Range
  limit: number
  offset: number
  reverse: boolean
}

interface PageSource<Row> {
  keys: readonly Key[]
  find: (wanted: PageWindow) => Promise<PageEntry<Row>[]>
  count: () => Promise<Total>
}

export interface Total {
  count: number
  /** Whether the list has no more rows than `count`. */
  isExact: boolean
}

export function paged<Row extends object>(
  ctx: Context,
  query: QueryValues,
  source: PageSource<Row>,
): Promise<Paged<Row>> {
  const size = Number(query.per_page ?? 10)
  if (query.cursor === undefined) return byNumber(ctx, query, source, size)
  if (new URLSearchParams(ctx.query).has('page')) throw invalid({ 'query.cursor': ['Use either page or cursor.'] })
  return byCursor(ctx, query, source, size)
}

async function byNumber<Row extends object>(
  ctx: Context,
  query: QueryValues,
  { find, count }: PageSource<Row>,
  size: number,
): Promise<Paged<Row>> {
  const number = Number(query.page ?? 1)
  const isCounted = query.count !== 'none'
  const offset = (number - 1) * size
  const known = isCounted ? await count() : null
  const total = known?.isExact ? known.count : null
  const isBeyond = !Number.isSafeInteger(offset) || (total !== null && offset >= total)
  // A page in the second half of a long list is read in reverse order, because SQLite then skips
  // fewer rows.
  const reverse = total !== null && offset > farOff && offset > total / 2
  const limit = total === null ? size + 1 : Math.min(size, total - offset)
  const from = reverse ? total - offset - limit : offset
  const found = isBeyond ? [] : await find({ limit, offset: from, reverse })
  if (reverse) found.reverse()
  const more = total === null ? found.length > size : offset + found.length < total
  const shown = rowsOf(found.slice(0, size))
  const last = total === null ? null : Math.max(1, Math.ceil(total / size))
  const link = (to: number): string => url(ctx, { page: String(to) })
  return {
    rows: shown,
    links: {
      first: link(1),
      last: last === null ? null : link(last),
      prev: number > 1 ? link(last === null ? number - 1 : Math.min(number - 1, last)) : null,
      next: more && !isBeyond ? link(number + 1) : null,
    },
    meta: {
      current_page: number,
      from: shown.length > 0 ? offset + 1 : null,
      last_page: last,
      path: ctx.baseUrl + ctx.path,
      per_page: size,
      to: shown.length > 0 ? offset + shown.length : null,
      total: known?.count ?? null,
      is_total_exact: known?.isExact ?? null,
    },
  }
}

const farOff = 1_000

async function byCursor<Row extends object>(
  ctx: Context,
  query: QueryValues,
  { keys, find }: PageSource<Row>,
  size: number,
): Promise<Paged<Row>> {
  const of = fingerprint(ctx, query, keys)
  const cursor: Cursor | null = query.cursor === '' ? null : readCursor(ctx, String(query.cursor), of)
  const reverse = cursor?.back ?? false
  const found: PageEntry<Row>[] = []
  for (const range of cursor ? rangesAfter(keys, cursor) : [undefined]) {
    const wanted = { limit: size + 1 - found.length, offset: 0, reverse }
    found.push(...(await find(range ? { ...wanted, range } : wanted)))
    if (found.length > size) break
  }
  const more = found.length > size
  const shown = found.slice(0, size)
  if (reverse) shown.reverse()
  const at = (entry: PageEntry<Row> | undefined): (string | number | null)[] =>
    keys.map((_, index) => entry?.mark[`cursor_${index}`] ?? null)
  const next =
    shown.length > 0 && (reverse || more) ? writeCursor(ctx, { at: at(shown.at(-1)), back: false, of }) : null
  const prev =
    shown.length > 0 && (reverse ? more : cursor !== null)
      ? writeCursor(ctx, { at: at(shown[0]), back: true, of })
      : null
  return {
    rows: rowsOf(shown),
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
      path: ctx.baseUrl + ctx.path,
      per_page: size,
      to: null,
      total: null,
      is_total_exact: null,
      next_cursor: next,
      prev_cursor: prev,
    },
  }
}

interface RecordList<Row, Reply> {
  fields: Fields
  search?: readonly SearchField[]
  sort: Record<string, SortColumn>
  /**
   * The id column, which orders rows with equal sort keys. By default the newest record comes
   * first.
   */
  id: string
  /**
   * Converts the rows of a page to replies. Called once per page, so that each kind of reference
   * needs only one query.
   */
  present: (rows: Row[]) => Reply[] | Promise<Reply[]>
}

/**
 * Returns one page of records that have no resource: jobs, workflow runs, deliveries, mails of a
 * campaign. They are filtered and sorted by the query parameters.
 */
export async function recordPage<Row extends object, Reply>(
  ctx: Context,
  rows: Rows<Row>,
  query: QueryValues,
  { fields, search = [], sort, id, present }: RecordList<Row, Reply>,
): Promise<{ data: Reply[] } & Pick<Paged<Row>, 'links' | 'meta'>> {
  const wanted = conditions(ctx, query, fields, search).reduce((some, condition) => some.where(condition), rows)
  const { rows: shown, links, meta } = await page(ctx, wanted, query, sort, id)
  return { data: await present(shown), links, meta }
}

/** Returns `rows` with the order that the query parameter `sort` requests. */
export const inOrder = <Row>(
  ctx: Context,
  rows: Rows<Row>,
  query: QueryValues,
  sort: Record<string, SortColumn>,
  id: string,
): Rows<Row> => ordered(ctx, rows, sortKeys(query, sort, id), false)

/** Returns the URL of this request with some query parameters replaced. */
const url = (ctx: Context, replace: Record<string, string>): string =>
  `${ctx.baseUrl}${ctx.path}?${withParameters(ctx.query, replace)}`
