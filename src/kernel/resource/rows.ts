// Reads the rows of a resource that the caller may see: by id, by page, or as a query. Compiled
// statements are cached (caller-query.ts).
import { type Expression, type SqlBool, sql } from 'kysely'
import type { Context } from '../context.ts'
import { queryByIds } from '../query/caller-query.ts'
import { conditions, type Fields, type QueryValues, timeField, valueField } from '../query/filter.ts'
import { pruneJoins } from '../query/join-pruning.ts'
import { inOrder, pageByIds, type Rows } from '../query/page.ts'
import type { AnyDefinition, AnyRow, VisibleRows } from './any-definition.ts'
import type { Sorts } from './definition.ts'

/** The filters that every list has. */
const commonFields = (table: string): Fields => ({
  id: valueField(`${table}.id`),
  created_at: timeField(`${table}.created_at`),
  updated_at: timeField(`${table}.updated_at`),
})

export function visibleRows(d: AnyDefinition, entity: string): VisibleRows {
  const id = `${d.table}.id`
  const common = commonFields(d.table)
  const all = (ctx: Context): Rows<AnyRow> => d.rows(ctx, ctx.db)
  const filters = async (ctx: Context, query: QueryValues): Promise<Expression<SqlBool>[]> =>
    conditions(ctx, query, { ...common, ...(await d.filter(ctx, query)) }, d.search)
  const sorts = async (ctx: Context, query: QueryValues): Promise<Sorts<string>> =>
    typeof d.sort === 'function' ? d.sort(ctx, query) : d.sort
  const where = <Row>(rows: Rows<Row>, filters: readonly Expression<SqlBool>[]): Rows<Row> =>
    filters.reduce((rows, condition) => rows.where(condition), rows)

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
      const wanted = await filters(ctx, query)
      const { sql: text, parameters: values } = sql.join([sql`1 = 1`, ...wanted], sql` and `).compile(ctx.db)
      const list = {
        rows: (): Rows<unknown> => where(narrow ? narrow(all(ctx)) : all(ctx), wanted),
        text: narrow ? null : `${entity}: ${text}`,
        values,
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

    query: async (ctx, query) =>
      inOrder(ctx, where(all(ctx), await filters(ctx, query)), query, await sorts(ctx, query), id),
  }
}
