// Chooses the access path of a list, which is how the database finds its rows: by the order of an
// index, by the search index, or by the ids of the records that a caller with a limited view sees.
// page.ts runs the queries.
import { type Expression, type SqlBool, sql } from 'kysely'
import type { Context } from '../context.ts'
import {
  compile,
  conditions,
  type Fields,
  isCandidate,
  type Leaf,
  leafOf,
  type QueryValues,
  searchCandidates,
  type Tree,
} from '../query/filter.ts'
import { countUpTo, type FoundRows, type IdPagedList, maxSorted } from '../query/id-pages.ts'
import { foundByIds } from '../query/joins.ts'
import type { Rows } from '../query/page.ts'
import { withoutVisibility } from '../query/visibility.ts'
import type { AnyDefinition, AnyRow, Narrow } from './any-definition.ts'
import { filterSources, servedBy, treesOf } from './where.ts'

/**
 * The highest number of records that a caller may see and a list finds by their ids. Finding them
 * costs about half a microsecond each.
 */
const maxInSight = 10_000

/** The highest number of rows that the search index collects for a test. */
const maxCollected = 20_000

/** The highest number that a list with filters is counted to. */
const maxFiltered = 50_000

/**
 * Returns the conditions of the query's filters; see `conditions` for `found`. `trees` are those of
 * its `where` and its view, which are read if the caller has not read them.
 */
export const filtersOf = async (
  ctx: Context,
  d: AnyDefinition,
  query: QueryValues,
  found?: Parameters<typeof conditions>[4],
  trees?: readonly Tree[],
): Promise<Expression<SqlBool>[]> => [
  ...conditions(ctx, query, await fieldsIn(ctx, d, query), d.search, found),
  ...(trees ?? (await treesOf(ctx, d, query))).map((each) => compile(ctx, each)),
]

/** Returns the filter fields that the query uses. */
async function fieldsIn(ctx: Context, d: AnyDefinition, query: QueryValues): Promise<Fields> {
  const sources = filterSources(d)
  const fields: Fields = {}
  for (const name of new Set(Object.keys(query).map((parameter) => parameter.replace(/\[.*/, '')))) {
    const source = Object.hasOwn(sources, name) ? sources[name] : undefined
    if (source) fields[name] = typeof source === 'function' ? await source(ctx, query) : source
  }
  return fields
}

/** Returns the tests of the query's filters. */
async function leavesOf(ctx: Context, d: AnyDefinition, query: QueryValues): Promise<Leaf[]> {
  const fields = await fieldsIn(ctx, d, query)
  return Object.entries(query).flatMap(([name, value]) => leafOf(name, value, fields) ?? [])
}

/** Returns the rows that meet all conditions. */
export const whereAll = <Row>(rows: Rows<Row>, wanted: readonly Expression<SqlBool>[]): Rows<Row> =>
  wanted.reduce((rows, condition) => rows.where(condition), rows)

type AccessPaths = Pick<IdPagedList<AnyRow>, 'sorted' | 'scanned' | 'maxTotal'>

/** Returns the ways to read a list. `narrow` limits it to the children of one record. */
export async function accessPathsOf(
  ctx: Context,
  d: AnyDefinition,
  query: QueryValues,
  narrow?: Narrow,
): Promise<AccessPaths> {
  const trees = await treesOf(ctx, d, query)
  const all = (): Rows<unknown> => d.rows(ctx, ctx.db)
  const rows = narrow ? () => narrow(all()) : all
  const name = narrow ? null : d.table
  const tests = await filtersOf(ctx, d, query, 'scanned', trees)
  const scanned = selected(ctx, name, rows, tests)
  const sight = narrow || hasIdFilter(query) ? null : inSight(ctx, d)
  if (sight) {
    const ids = { rows: () => sight.ids, text: `${name} in sight`, values: [] }
    const { isExact } = await countUpTo(ctx, ids, maxInSight)
    const test = isCandidate(ctx, query, d.search, sql.ref('path.id'))
    if (isExact && test) {
      const found = await filtersOf(ctx, d, query, 'found', trees)
      // The words of `q` come before the other values of the statement, so it is not cached.
      return { sorted: selected(ctx, null, () => sight.rows(test), found), scanned, maxTotal: null }
    }
    if (isExact) {
      const found = query.q === undefined ? [] : await testOfCandidates(ctx, d, query)
      return { sorted: selected(ctx, `${name} in sight`, sight.rows, [...found, ...tests]), scanned, maxTotal: null }
    }
  }
  const isBounded = trees.length > 0 && !narrow
  const served = isBounded ? await servedBy(ctx, d, query, trees, await leavesOf(ctx, d, query)) : 'list'
  const most = query.q !== undefined ? maxSorted : sight ? maxInSight : tests.length > 0 ? maxFiltered : null
  if (typeof served === 'object') {
    const few = selected(ctx, null, () => foundByIds(ctx, rows(), d.table, served.ids), tests)
    return { sorted: few, scanned: null, maxTotal: most }
  }
  if (query.q === undefined) return { sorted: scanned, scanned, maxTotal: most }
  const ids = searchCandidates(ctx, query, d.search)
  const sorted = ids
    ? selected(
        ctx,
        null,
        () => foundByIds(ctx, rows(), d.table, sql`(${ids})`),
        await filtersOf(ctx, d, query, 'found', trees),
      )
    : selected(ctx, name, rows, await filtersOf(ctx, d, query, 'any', trees))
  return { sorted, scanned: served === 'list' ? scanned : null, maxTotal: most }
}

/**
 * Returns a condition that tests whether the search index finds a row, which costs less than a test
 * of its texts. Returns none when the index finds many rows: SQLite would collect all their ids.
 */
async function testOfCandidates(
  ctx: Context,
  d: AnyDefinition,
  query: QueryValues,
): Promise<[] | [Expression<SqlBool>]> {
  const ids = searchCandidates(ctx, query, d.search)
  if (ids === null) return []
  const rows = (): Rows<unknown> => ctx.db.selectFrom(sql`(${ids})`.as('found'))
  const { isExact } = await countUpTo(ctx, { rows, text: null, values: [] }, maxCollected)
  return isExact ? [sql<SqlBool>`+${sql.ref(`${d.table}.id`)} in (${ids})`] : []
}

/** Returns whether a filter by the id of another record selects few rows. */
const hasIdFilter = (query: QueryValues): boolean =>
  Object.keys(query).some((name) => /^([a-z_]+_)?id$/.test(name) && name !== 'user_id')

/** Returns the rows that meet the conditions. `name` identifies what `rows` contains. */
function selected(
  ctx: Context,
  name: string | null,
  rows: () => Rows<unknown>,
  wanted: readonly Expression<SqlBool>[],
): FoundRows {
  const { sql: text, parameters: values } = sql.join([sql`1 = 1`, ...wanted], sql` and `).compile(ctx.db)
  return { rows: () => whereAll(rows(), wanted), text: name && `${name}: ${text}`, values }
}

/**
 * Returns queries of the records that a caller with a limited view sees: their ids, and their rows,
 * found by the ids, all or only those that meet a test of `path.id`. Returns null for other
 * callers, and for records that every caller sees.
 */
export function inSight(
  ctx: Context,
  d: AnyDefinition,
): { ids: Rows<unknown>; rows: (test?: Expression<SqlBool>) => Rows<unknown> } | null {
  if (!ctx.user?.visibleOwners || d.idsInSight === undefined) return null
  const paths = d.idsInSight(ctx)
  const ids = sql`select distinct id from (${sql.join(paths, sql` union all `)}) as path`
  return {
    ids: ctx.db.selectFrom(sql`(${ids})`.as('chosen')),
    rows: (test) =>
      foundByIds(
        ctx,
        d.rows(withoutVisibility(ctx), ctx.db),
        d.table,
        test ? sql`(${ids} where ${test})` : sql`(${ids})`,
      ),
  }
}
