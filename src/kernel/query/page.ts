// Returns the pages of a list in the reply format of lists. A page is selected by
// number, with exact totals, or by cursor, which contains sort keys and id. sort-and-cursor.ts
// determines the order.
import { type Expression, sql } from 'kysely'
import type { Schema } from '../../contract/types.ts'
import type { Context } from '../context.ts'
import { invalid } from '../errors.ts'
import { queryAsCaller, untilNextCommitFor } from './caller-query.ts'
import { conditions, type Fields, type QueryValues, type SearchField } from './filter.ts'
import { parentFirst, pruneJoins } from './join-plugins.ts'
import { withParameters } from './query-string.ts'
import {
  type Cursor,
  fingerprint,
  halvesOf,
  type Key,
  ordered,
  orderText,
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

/** The rows of a list as a query. */
export interface ListQuery {
  rows: () => Rows<unknown>
  /**
   * A text that identifies the SQL of `rows`. It is the key of the compiled statement in the cache
   * (caller-query.ts); null disables the cache. `values` are the bound values of the SQL.
   */
  text: string | null
  values: readonly unknown[]
}

/**
 * A list whose pages are read in two steps: first the ids of a page, then the rows with these ids.
 * A page of few rows is gathered: the filters find all rows, which are then sorted. A page of many
 * rows is found by a walk: an index supplies the order, and each row is tested until the page is
 * full. So the cost of a page does not grow with the list.
 */
export interface IdPagedList<Row> {
  gathered: ListQuery
  walked: ListQuery
  /** The highest number that `total` counts to; null when all rows are counted. */
  maxTotal: number | null
  /** Returns the rows with these ids, by id. */
  byIds: (ids: number[]) => Promise<Map<number, Row>>
}

/** The highest number of rows that are gathered and sorted for a page. */
export const maxGathered = 1_000

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
    count: async () => ({ count: Number((await counted(rows).executeTakeFirstOrThrow()).total), isExact: true }),
  })
}

/**
 * Returns one page like `page`, with cached statements. The query of the ids is not pruned, because
 * SQLite itself omits the joins that the query does not use.
 */
export async function pageByIds<Row extends object>(
  ctx: Context,
  list: IdPagedList<Row>,
  query: QueryValues,
  sort: Record<string, SortColumn>,
  id: string,
): Promise<Paged<Row>> {
  const keys = sortKeys(query, sort, id)
  const hasChoice = list.gathered !== list.walked || halvesOf(keys, false) !== null
  let many: Promise<boolean> | undefined
  const isMany = (): Promise<boolean> => {
    many ??= hasChoice
      ? countUpTo(ctx, list.gathered, maxGathered).then(({ isExact }) => !isExact)
      : Promise.resolve(false)
    return many
  }
  return paged(ctx, query, {
    keys,
    find: async ({ range, ...wanted }) => {
      const search = {
        ...wanted,
        list: (await isMany()) ? list.walked : list.gathered,
        keys,
        id,
        isWalk: await isMany(),
      }
      const marks = range ? await marksInRange(ctx, search, range) : await marksOnPage(ctx, search)
      if (marks.length === 0) return []
      const shown = await list.byIds(marks.map((mark) => mark.id))
      return marks.map((mark) => ({ mark, row: shown.get(mark.id) }))
    },
    count: async () => {
      const total = await countUpTo(ctx, list.gathered, list.maxTotal)
      many = Promise.resolve(hasChoice && total.count >= maxGathered)
      return total
    },
  })
}

/** Returns the number of rows, or `most` when there are more. The result is kept until a commit. */
export function countUpTo(ctx: Context, { rows, text, values }: ListQuery, most: number | null): Promise<Total> {
  const name = text && `count ${most ?? 'all'} ${text}`
  return untilNextCommitFor(ctx, name && `${name} ${JSON.stringify(values)}`, async () => {
    if (most === null) {
      const [row] = await queryAsCaller(ctx, name, values, () => pruneJoins(counted(rows())))
      return { count: Number(row?.total ?? 0), isExact: true }
    }
    const [row] = await queryAsCaller(ctx, name, [...values, most + 1], () =>
      ctx.db
        .selectFrom(
          rows()
            .clearSelect()
            .select(sql<number>`1`.as('one'))
            .limit(most + 1)
            .as('found'),
        )
        .select(sql<number>`count(*)`.as('total')),
    )
    const found = Number(row?.total ?? 0)
    return { count: Math.min(found, most), isExact: found <= most }
  })
}

type Mark = CursorValues & { id: number }

interface MarkSearch extends Omit<PageWindow, 'range'> {
  list: ListQuery
  keys: readonly Key[]
  id: string
  isWalk: boolean
}

/**
 * Returns the ids of several pages. The ids of one page are in order. One statement reads all pages,
 * unless a page is read in halves.
 */
export async function idsOnPages(ctx: Context, searches: readonly MarkSearch[]): Promise<number[]> {
  const ids: number[] = []
  const together: MarkSearch[] = []
  for (const search of searches) {
    if (search.isWalk && halvesOf(search.keys, false)) ids.push(...(await marksOnPage(ctx, search)).map(({ id }) => id))
    else together.push(search)
  }
  const parts = together.map((search) => numberedPage(ctx, search))
  // The statements are split when one would have too many parameters.
  const parameters = Math.max(1, parts[0]?.compile().parameters.length ?? 0)
  const most = Math.max(1, Math.floor(ctx.services.store.dialect.maxParameters / parameters))
  for (let at = 0; at < parts.length; at += most) {
    const found = await parts
      .slice(at, at + most)
      .reduce((all, each) => all.unionAll(each))
      .execute()
    // A union does not keep the order of its parts.
    ids.push(...found.sort((one, other) => one.position - other.position).map(({ id }) => id))
  }
  return ids
}

/** Returns a query of the ids of a page with their positions. */
function numberedPage(ctx: Context, search: MarkSearch) {
  const columns = search.keys.map((key, index) => ({ ...key, column: sql.ref(`page.cursor_${index}`) }))
  return ctx.db
    .selectFrom(pageOfMarks(ctx, search, undefined).as('page'))
    .select('page.id as id')
    .select(sql<number>`row_number() over (order by ${orderOf(columns)})`.as('position'))
}

const orderOf = (keys: readonly Pick<Key, 'column' | 'descending'>[]) =>
  sql.join(keys.map(({ column, descending }) => sql`${column} ${sql.raw(descending ? 'desc' : 'asc')} nulls last`))

interface GroupSearch extends Pick<MarkSearch, 'list' | 'keys' | 'id' | 'limit' | 'offset'> {
  /** The value that the rows of a group have in common. */
  group: Expression<unknown>
}

/** Returns the ids on the same page of each group, in order. Reads all rows. */
export async function idsPerGroup(
  ctx: Context,
  { list, keys, id, group, limit, offset }: GroupSearch,
): Promise<number[]> {
  const numbered = list
    .rows()
    .clearSelect()
    .select(sql<number>`${sql.ref(id)}`.as('id'))
    .select(sql<number>`row_number() over (partition by ${group} order by ${orderOf(keys)})`.as('position'))
  const found = await ctx.db
    .selectFrom(numbered.as('numbered'))
    .select('id')
    .where('position', '>', offset)
    .where('position', '<=', offset + limit)
    .orderBy('position')
    .execute()
  return found.map((row) => row.id as number)
}

/** Returns the ids and sort keys of a page. */
function marksOnPage(ctx: Context, search: MarkSearch): Promise<Mark[]> {
  const halves = search.isWalk ? halvesOf(search.keys, search.reverse) : null
  return halves ? marksInHalves(ctx, search, halves) : marksInRange(ctx, search, undefined)
}

function marksInRange(ctx: Context, search: MarkSearch, range: Range | undefined): Promise<Mark[]> {
  const { list, keys, isWalk, limit, offset, reverse } = search
  const order = orderText(ctx, keys)
  const within = range && sql`${range.where}`.compile(ctx.db)
  const parts = [list.text, order, within?.sql, range?.hasValue && 'values', reverse && 'back', isWalk && 'walk']
  const bound = [...list.values, ...(within?.parameters ?? []), limit, offset]
  return queryAsCaller<Mark>(ctx, list.text && order && parts.join(' '), bound, () => pageOfMarks(ctx, search, range))
}

/** Returns a query of the ids and sort keys of a page. */
function pageOfMarks(ctx: Context, search: MarkSearch, range: Range | undefined): Rows<Mark> {
  const { list, id, isWalk, limit, offset, reverse } = search
  const [first, ...others] = search.keys as [Key, ...Key[]]
  // Without nulls, no order of nulls is needed, which an index of a joined table could not supply.
  const keys = range?.hasValue ? [{ ...first, isNullable: false }, ...others] : search.keys
  const ids = list
    .rows()
    .clearSelect()
    .select(sql<number>`${sql.ref(id)}`.as('id'))
    .select(marksOf(keys))
  const found = range ? ids.where(range.where) : ids
  const page = ordered(ctx, found, keys, reverse).limit(limit).offset(offset) as Rows<Mark>
  return isWalk && range?.hasValue && first.parent !== null ? parentFirst(page, first.parent) : page
}

/** Returns the ids and sort keys of a page, from one half of the list after the other. */
async function marksInHalves(ctx: Context, search: MarkSearch, halves: readonly Range[]): Promise<Mark[]> {
  const found: Mark[] = []
  let { offset } = search
  for (const half of halves) {
    const some = await marksInRange(ctx, { ...search, offset, limit: search.limit - found.length }, half)
    found.push(...some)
    if (found.length === search.limit) break
    offset = some.length > 0 || offset === 0 ? 0 : offset - (await sizeOf(ctx, search, half))
  }
  return found
}

async function sizeOf(ctx: Context, { list }: MarkSearch, { where }: Range): Promise<number> {
  const { sql: text, parameters } = sql`${where}`.compile(ctx.db)
  const rows = () => list.rows().where(where)
  const half = { rows, text: list.text && `${list.text} ${text}`, values: [...list.values, ...parameters] }
  return (await countUpTo(ctx, half, null)).count
}

const counted = (rows: Rows<unknown>): Rows<{ total: number }> =>
  rows.clearSelect().select(sql<number>`count(*)`.as('total'))

/** The values of a row's sort keys, from which a cursor is built. */
type CursorValues = Record<`cursor_${number}`, string | number | null>

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

const marksOf = (keys: readonly Key[]) =>
  keys.map(({ column }, index) => sql<string | number | null>`${column}`.as(`cursor_${index}`))

interface PageWindow {
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

interface Total {
  count: number
  /** Whether the list has no more rows than `count`. */
  isExact: boolean
}

function paged<Row extends object>(ctx: Context, query: QueryValues, source: PageSource<Row>): Promise<Paged<Row>> {
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
