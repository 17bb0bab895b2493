// Reads the rows of a resource that the caller may see: by id, by page, or as a query. Compiled
// statements are cached (statement-cache.ts).
import { type Expression, type SqlBool, sql } from 'kysely'
import type { Context } from '../context.ts'
import { conditions, type Fields, type QueryValues, time, value } from '../query/filter.ts'
import { inOrder, pageOf, type Rows } from '../query/page.ts'
import { oncePerBatch, queryByIds } from '../query/statement-cache.ts'
import type { AnyDefinition, AnyRow, VisibleRows } from './any-definition.ts'
import type { Sorts } from './definition.ts'

/** The filters that every list has. */
const commonFields = (table: string): Fields => ({
  id: value(`${table}.id`),
  created_at: time(`${table}.created_at`),
  updated_at: time(`${table}.updated_at`),
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
      const selected = (ids: readonly number[]): Rows<{ id: number }> =>
        all(ctx)
          .clearSelect()
          .select(sql<number>`${sql.ref(id)}`.as('id'))
          .where(sql.ref(id), 'in', ids)
      const wanted = [...new Set(ids)]
      const read = async () => (await queryByIds(ctx, `${entity}: seen`, wanted, selected)).map(({ id }) => id)
      return new Set(
        ctx.batch?.entity === entity ? await read() : await oncePerBatch(ctx, `${entity}: seen ${wanted}`, read),
      )
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
      return pageOf(ctx, list, query, await sorts(ctx, query), id)
    },

    query: async (ctx, query) =>
      inOrder(ctx, where(all(ctx), await filters(ctx, query)), query, await sorts(ctx, query), id),
  }
}
