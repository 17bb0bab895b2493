// The use of sources, types and pipelines by leads: the number of leads that refer to
// a row. A source or type that is in use, or that is the last of its table, cannot be deleted.

import { sql } from 'kysely'
import type { Context } from '../../kernel/context.ts'
import { inUse, isProtected } from '../../kernel/errors.ts'
import type { SqlCaller } from '../../kernel/query/caller-query.ts'
import { canSeeOwner, visible } from '../../kernel/query/visibility.ts'

type Column = 'lead_source_id' | 'lead_type_id'

export const leadsCount = (ctx: SqlCaller, column: Column | 'lead_pipeline_id', of: string) =>
  sql<number>`(select count(*) from leads where ${sql.ref(`leads.${column}`)} = ${sql.ref(of)} and ${visible(ctx, 'leads.user_id')})`.as(
    'leads_count',
  )

/**
 * Throws 409 `in_use` while leads refer to `row`. Throws 409 `protected` when `row` is the last row
 * of its table.
 */
export async function refuseLastOrUsed(
  ctx: Context,
  table: 'lead_sources' | 'lead_types',
  column: Column,
  row: { id: number; name: string },
): Promise<void> {
  const users = await ctx.db
    .selectFrom('leads')
    .select(['id', 'user_id'])
    .where(column, '=', row.id)
    .orderBy('id')
    .limit(20)
    .execute()
  if (users.length > 0) {
    throw inUse(
      `Leads refer to ${row.name}.`,
      users.map((lead) => ({
        entity_type: 'leads',
        id: canSeeOwner(ctx, lead.user_id) ? lead.id : null,
        field: column,
      })),
    )
  }
  const { count } = await ctx.db
    .selectFrom(table)
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .executeTakeFirstOrThrow()
  if (Number(count) === 1) throw isProtected(`${row.name} is the last one, and leads need one.`)
}
