// Reads the rows of a resource that the caller may see: by id, by page, or as a query. Compiled
// statements are cached (caller-query.ts).
import { sql } from 'kysely'
import type { Context } from '../context.ts'
import { queryByIds } from '../query/caller-query.ts'
import type { QueryValues } from '../query/filter.ts'
import { idsOnPages, idsPerGroup, pageByIds, withCondition } from '../query/id-pages.ts'
import { foundByIds, pruneJoins } from '../query/joins.ts'
import { inOrder, type Rows, type SortColumn } from '../query/page.ts'
import { sortKeys } from '../query/sort-and-cursor.ts'
import { accessPathsOf, filtersOf, inSight, whereAll } from './access-paths.ts'
import type { AnyDefinition, AnyRow, VisibleRows } from './any-definition.ts'
import { servedBy, treesOf } from './where.ts'

export function visibleRows(d: AnyDefinition, entity: string): VisibleRows {
  const id = `${d.table}.id`
  const all = (ctx: Context): Rows<AnyRow> => d.rows(ctx, ctx.db)
  const sorts = async (ctx: Context, query: QueryValues): Promise<Record<string, SortColumn>> =>
    typeof d.sort === 'function' ? d.sort(ctx, query) : d.sort
  const byIds = (ctx: Context, ids: readonly number[]): Promise<AnyRow[]> =>
    queryByIds(ctx, `${entity}: rows`, ids, (ids) => all(ctx).where(sql.ref(id), 'in', ids))

  return {
    byIds,

    async visibleIds(ctx, ids) {
      const rows = await queryByIds(ctx, `${entity}: visible ids`, [...new Set(ids)], (ids) =>
        all(ctx)
          .clearSelect()
          .select(sql<number>`${sql.ref(id)}`.as('id'))
          .where(sql.ref(id), 'in', ids),
      )
      return new Set(rows.map(({ id }) => id))
    },

    async page(ctx, query, narrow) {
      const list = {
        ...(await accessPathsOf(ctx, d, query, narrow)),
        byIds: async (ids: readonly number[]) => new Map((await byIds(ctx, ids)).map((row) => [row.id, row])),
      }
      return pageByIds(ctx, list, query, await sorts(ctx, query), id)
    },

    async countBy(ctx, column, ids) {
      const rows = await queryByIds(ctx, `${entity}: count by ${column}`, ids, (ids) =>
        pruneJoins(
          all(ctx)
            .clearSelect()
            .select([sql<number>`${sql.ref(column)}`.as('value'), sql<number>`count(*)`.as('count')])
            .where(sql.ref(column), 'in', ids)
            .groupBy(sql.ref(column)),
        ),
      )
      return new Map(rows.map(({ value, count }) => [value, Number(count)]))
    },

    found: async (ctx, query) => (await accessPathsOf(ctx, d, query)).sorted.rows(),

    async idsOnPages(ctx, query, pages) {
      const { sorted, scanned } = await accessPathsOf(ctx, d, query)
      const searches = pages.map(async ({ sort, part, ...page }) => {
        const keys = sortKeys({ sort }, await sorts(ctx, query), id)
        return {
          ...page,
          list: withCondition(ctx, page.isIndexScan ? (scanned ?? sorted) : sorted, part),
          keys,
          id,
          reverse: false,
        }
      })
      return idsOnPages(ctx, await Promise.all(searches))
    },

    async idsPerGroup(ctx, query, { part, group, limit, offset }) {
      const list = withCondition(ctx, (await accessPathsOf(ctx, d, query)).sorted, part)
      return idsPerGroup(ctx, { list, keys: sortKeys(query, await sorts(ctx, query), id), id, group, limit, offset })
    },

    allInSight(ctx) {
      const rows = (inSight(ctx, d)?.rows() ?? all(ctx)).clearSelect()
      const isOpen = rows.toOperationNode().where === undefined
      return isOpen ? null : rows.select(sql<number>`${sql.ref(id)}`.as('id'))
    },

    async query(ctx, query) {
      const trees = await treesOf(ctx, d, query)
      // An export reads its whole list; only the conditions on a related record are bounded.
      const served = query.where === undefined ? 'list' : await servedBy(ctx, d, query, trees, [])
      const rows = typeof served === 'object' ? foundByIds(ctx, all(ctx), d.table, served.ids) : all(ctx)
      const tests = await filtersOf(ctx, d, query, 'any', trees)
      return inOrder(ctx, whereAll(rows, tests), query, await sorts(ctx, query), id)
    },
  }
}
