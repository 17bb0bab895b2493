// The use of sources and types by leads: the number of leads that refer to a row. A source or type
// that is in use, or that is the last of its table, cannot be deleted.

import { sql } from 'kysely'
import type { Context } from '../../kernel/context.ts'
import { inUse, isProtected } from '../../kernel/errors.ts'
import type { SqlCaller } from '../../kernel/query/caller-query.ts'
import { canSeeOwner, visible } from '../../kernel/query/visibility.ts'

type Column = 'lead_source_id' | 'lead_type_id'

/**
 * The columns of lead_counts to compare after the database was copied. Triggers fill the table in
 * the copy.
 */
export const comparedCounts = {
  name: 'lead_counts',
  columns: ['kind', 'record_id', 'owner_id', 'count'],
  key: ['kind', 'record_id', 'owner_id'],
  json: [],
}

/**
 * Returns a column: the number of leads that refer to the row and that the caller sees. Reads the
 * table lead_counts, which triggers maintain (db/migrations/0017).
 */
export const leadsCount = (ctx: SqlCaller, kind: 'sources' | 'types', of: string) =>
  sql<number>`(select coalesce(sum(kept.count), 0) from lead_counts as kept where kept.kind = ${sql.lit(kind)} and kept.record_id = ${sql.ref(of)} and ${visible(ctx, 'kept.owner_id')})`.as(
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
        id: canSeeOwner(ctx, lead.user_id, true) ? lead.id : null,
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
