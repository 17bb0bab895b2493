// The rows behind a resource, read by statements that are kept (statement-cache.ts): by id, which of them are seen, and the pages of its list.
// Like resource.ts it works on any table, hence `any`.
import { type Expression, type SqlBool, sql } from 'kysely'
import type { Context } from '../context.ts'
import { conditions, type Fields, type Query, time, value } from '../query/filter.ts'
import { pruneJoins } from '../query/join-pruning.ts'
import { inOrder, type Paged, pageOf, type Rows } from '../query/page.ts'
import { queryByIds } from '../query/statement-cache.ts'
import type { Definition, Sorts } from './definition.ts'

type Described = Pick<Definition<any, any, any, any, any, any, any>, 'rows' | 'filter' | 'search' | 'sort'>
type Narrow = (rows: Rows<any>) => Rows<any>

export interface RowsOf<Row> {
  /** In no order. */
  byIds(ctx: Context, ids: readonly number[]): Promise<Row[]>
  seen(ctx: Context, ids: readonly number[]): Promise<Set<number>>
  page(ctx: Context, query: any, narrow?: Narrow): Promise<Paged<any>>
  matching(ctx: Context, query: any): Promise<Rows<any>>
}

const columnsBase = (table: string): Fields => ({
  id: value(`${table}.id`),
  created_at: time(`${table}.created_at`),
  updated_at: time(`${table}.updated_at`),
})

export function rowsOf<Row>(d: Described, { entity, table }: { entity: string; table: string }): RowsOf<Row> {
  const id = `${table}.id`
  const base = columnsBase(table)
  const all = (ctx: Context): Rows<any> => d.rows(ctx, ctx.db)
  const filters = async (ctx: Context, query: Query): Promise<Expression<SqlBool>[]> =>
    conditions(ctx, query, { ...base, ...(await d.filter(ctx, query)) }, d.search)
  const narrowed = (rows: Rows<any>, filters: readonly Expression<SqlBool>[]): Rows<any> =>
    filters.reduce((rows, condition) => rows.where(condition), rows)
  const sorts = async (ctx: Context, query: any): Promise<Sorts<string>> =>
    typeof d.sort === 'function' ? d.sort(ctx, query) : d.sort

  const byIds = (ctx: Context, ids: readonly number[]): Promise<Row[]> =>
    queryByIds(ctx, `${entity}: rows`, ids, (ids) => all(ctx).where(sql.ref(id), 'in', ids))

  return {
    byIds,

    async seen(ctx, ids) {
      const selected = (ids: readonly number[]): Rows<{ id: number }> =>
        all(ctx)
          .clearSelect()
          .select(sql<number>`${sql.ref(id)}`.as('id'))
          .where(sql.ref(id), 'in', ids)
      const wanted = [...new Set(ids)]
      const rows = await queryByIds(ctx, `${entity}: seen`, wanted, (ids) => pruneJoins(selected(ids)))
      return new Set(rows.map(({ id }) => id))
    },

    async page(ctx, query, narrow) {
      const wanted = await filters(ctx, query)
      const { sql: text, parameters: values } = sql.join([sql`1 = 1`, ...wanted], sql` and `).compile(ctx.db)
      const list = {
        rows: (): Rows<any> => narrowed(narrow ? narrow(all(ctx)) : all(ctx), wanted),
        text: narrow ? null : `${entity}: ${text}`,
        values,
        byIds: async (ids: readonly number[]) =>
          new Map((await byIds(ctx, ids)).map((row: any) => [row.id as number, row])),
      }
      return pageOf(ctx, list, query, await sorts(ctx, query), id)
    },

    matching: async (ctx, query) =>
      inOrder(ctx, narrowed(all(ctx), await filters(ctx, query)), query, await sorts(ctx, query), id),
  }
}
