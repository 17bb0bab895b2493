// Reads the pages of large lists in two steps: first the ids of a page, then the rows with these
// ids. The statements are cached, and the cost of a page does not grow with the list.
import { type Expression, type Kysely, type SqlBool, sql } from 'kysely'
import type { Context } from '../context.ts'
import { queryAsCaller, untilNextCommitFor } from './caller-query.ts'
import type { QueryValues } from './filter.ts'
import { parentFirst, pruneJoins, splitJoin } from './joins.ts'
import { type CursorValues, countOf, marksOf, type Paged, type PageWindow, paged, type Total } from './page.ts'
import {
  halvesOf,
  type Key,
  ordered,
  orderText,
  type Range,
  type Rows,
  type SortColumn,
  sortKeys,
} from './sort-and-cursor.ts'

/** The rows of a list as a query. */
export interface FoundRows {
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
 * A list of few rows is sorted: the filters find all rows. A list of many rows is scanned: an index
 * supplies the order, and each row is tested until the page is full. So the cost of a page does not
 * grow with the list.
 */
export interface IdPagedList<Row> {
  sorted: FoundRows
  /** Null when a scan could read more rows than the request may read. */
  scanned: FoundRows | null
  /** The highest number that `total` counts to; null when all rows are counted. */
  maxTotal: number | null
  /** Returns the rows with these ids, by id. */
  byIds: (ids: number[]) => Promise<Map<number, Row>>
}

/** The highest number of rows that are found and sorted for a page. */
export const maxSorted = 1_000

/** Returns one page like `page`, with cached statements. */
export async function pageByIds<Row extends object>(
  ctx: Context,
  list: IdPagedList<Row>,
  query: QueryValues,
  sort: Record<string, SortColumn>,
  id: string,
): Promise<Paged<Row>> {
  const keys = sortKeys(query, sort, id)
  const { sorted, scanned } = list
  const hasChoice = scanned !== null && (sorted !== scanned || halvesOf(keys, false) !== null)
  let many: Promise<boolean> | undefined
  const isMany = (): Promise<boolean> => {
    many ??= hasChoice ? countUpTo(ctx, list.sorted, maxSorted).then(({ isExact }) => !isExact) : Promise.resolve(false)
    return many
  }
  return paged(ctx, query, {
    keys,
    find: async ({ range, ...wanted }) => {
      const search = {
        ...wanted,
        list: (await isMany()) ? (scanned ?? sorted) : sorted,
        keys,
        id,
        isIndexScan: await isMany(),
      }
      const marks = range ? await marksInRange(ctx, search, range) : await marksOnPage(ctx, search)
      if (marks.length === 0) return []
      const shown = await list.byIds(marks.map((mark) => mark.id))
      return marks.map((mark) => ({ mark, row: shown.get(mark.id) }))
    },
    count: async () => {
      const total = await countUpTo(ctx, list.sorted, list.maxTotal)
      many = Promise.resolve(hasChoice && total.count >= maxSorted)
      return total
    },
  })
}

/** Returns the number of rows, or `most` when there are more. The result is kept until a commit. */
export function countUpTo(ctx: Context, { rows, text, values }: FoundRows, most: number | null): Promise<Total> {
  const name = text && `count ${most ?? 'all'} ${text}`
  return untilNextCommitFor(ctx, name && `${name} ${JSON.stringify(values)}`, async () => {
    if (most === null) {
      const [row] = await queryAsCaller(ctx, name, values, () => pruneJoins(countOf(rows())))
      return { count: Number(row?.total ?? 0), isExact: true }
    }
    const [row] = await queryAsCaller(ctx, name, [...values, most + 1], () =>
      ctx.db
        .selectFrom(
          // A joined table would keep SQLite from counting in an index alone.
          pruneJoins(
            rows()
              .clearSelect()
              .select(sql<number>`1`.as('one'))
              .limit(most + 1),
          ).as('found'),
        )
        .select(sql<number>`count(*)`.as('total')),
    )
    const found = Number(row?.total ?? 0)
    return { count: Math.min(found, most), isExact: found <= most }
  })
}

type Mark = CursorValues & { id: number }

interface MarkSearch extends Omit<PageWindow, 'range'> {
  list: FoundRows
  keys: readonly Key[]
  id: string
  isIndexScan: boolean
}

/**
 * Returns the ids of several pages. The ids of one page are in order. One statement reads all
 * pages, unless a page is read in halves.
 */
export async function idsOnPages(ctx: Context, searches: readonly MarkSearch[]): Promise<number[]> {
  const ids: number[] = []
  const together: MarkSearch[] = []
  for (const search of searches) {
    if (search.isIndexScan && halvesOf(search.keys, false))
      ids.push(...(await marksOnPage(ctx, search)).map(({ id }) => id))
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
  const halves = search.isIndexScan ? halvesOf(search.keys, search.reverse) : null
  return halves ? marksInHalves(ctx, search, halves) : marksInRange(ctx, search, undefined)
}

function marksInRange(ctx: Context, search: MarkSearch, range: Range | undefined): Promise<Mark[]> {
  const { list, keys, isIndexScan, limit, offset, reverse } = search
  const order = orderText(ctx, keys)
  const within = range && sql`${range.where}`.compile(ctx.db)
  const parts = [list.text, order, within?.sql, range?.hasValue && 'values', reverse && 'back', isIndexScan && 'scan']
  const perParent = range && isPerParent(ctx, search, range) ? sql`${range.ofParent}`.compile(ctx.db).parameters : null
  const bound = [
    ...list.values,
    ...(within?.parameters ?? []),
    ...(perParent ? [limit + offset, ...perParent] : []),
    limit,
    offset,
  ]
  return queryAsCaller<Mark>(ctx, list.text && order && parts.join(' '), bound, () => pageOfMarks(ctx, search, range))
}

/** Returns a query of the ids and sort keys of a page. */
function pageOfMarks(ctx: Context, search: MarkSearch, range: Range | undefined): Rows<Mark> {
  const { list, id, isIndexScan, limit, offset, reverse } = search
  const [first, ...others] = search.keys as [Key, ...Key[]]
  // Without nulls, no order of nulls is needed, which an index of a joined table could not supply.
  const keys = range?.hasValue ? [{ ...first, isNullable: false }, ...others] : search.keys
  const ids = list
    .rows()
    .clearSelect()
    .select(sql<number>`${sql.ref(id)}`.as('id'))
    .select(marksOf(keys))
  const found = range ? ids.where(range.where) : ids
  const page = pruneJoins(ordered(ctx, found, keys, reverse).limit(limit).offset(offset) as Rows<Mark>)
  if (!isIndexScan || !range?.hasValue || first.parent === null) return page
  return isPerParent(ctx, search, range)
    ? pagePerParent(ctx, { ...search, keys, range }, found, first.parent)
    : parentFirst(page, first.parent)
}

/** Returns whether a page is found by `pagePerParent`. */
const isPerParent = ({ services }: Context, { keys: [first], isIndexScan }: MarkSearch, { hasValue }: Range): boolean =>
  services.store.dialect.hasLateralJoins && isIndexScan && hasValue && first?.parent !== null

/** Returns a query of a page from the first rows of each row of a joined table. */
function pagePerParent(
  ctx: Context,
  { keys, range, limit, offset, reverse }: MarkSearch & { range: Range },
  found: Rows<unknown>,
  alias: string,
): Rows<Mark> {
  const { parent, reference, children } = splitJoin(found, alias)
  const own = keys.filter((key) => key.parent !== alias)
  const first = { ...(own[0] as Key), column: reference, isNullable: false }
  const each = pruneJoins(ordered(ctx, children, [first, ...own], reverse).limit(limit + offset))
  // biome-ignore lint/suspicious/noExplicitAny: the name of the table is not known
  const parents = (ctx.db as Kysely<any>).selectFrom(parent).crossJoinLateral(each.as('page'))
  const shown = keys.map((key, index) =>
    key.parent === alias ? key : { ...key, column: sql.ref(`page.cursor_${index}`) },
  )
  return ordered(ctx, parents.selectAll('page').where(range.ofParent) as Rows<Mark>, shown, reverse)
    .limit(limit)
    .offset(offset)
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
  return (await countUpTo(ctx, withCondition(ctx, list, where), null)).count
}

/** Returns those rows that also meet a condition. */
export function withCondition(
  ctx: Context,
  { rows, text, values }: FoundRows,
  condition: Expression<SqlBool>,
): FoundRows {
  const { sql: added, parameters } = sql`${condition}`.compile(ctx.db)
  return {
    rows: () => rows().where(condition),
    text: text && `${text} ${added}`,
    values: [...values, ...parameters],
  }
}
