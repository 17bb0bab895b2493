// Which deliveries a caller sees: those about records the caller sees, or could see when they were deleted (DOMAIN 7.4).
import { type RawBuilder, type SqlBool, sql } from 'kysely'
import { type Context, may } from '../../kernel/context.ts'
import type { Resource } from '../../kernel/definition.ts'
import { seeingAll } from '../../kernel/visibility.ts'

type Condition = RawBuilder<SqlBool>

/** True for rows of webhook_deliveries about what the caller may see; of what is no record of a resource, nothing is said. */
export async function visibleDeliveries(ctx: Context): Promise<Condition> {
  const conditions: Condition[] = []
  for (const [entity, resource] of ctx.services.resources) {
    if (!may(ctx, resource.shows)) continue
    const isAbout = sql<SqlBool>`webhook_deliveries.entity_type = ${entity}`
    const owners = ctx.user?.visibleOwners
    const scope = owners ? await scopeOf(ctx, resource, owners) : null
    conditions.push(scope ? sql<SqlBool>`(${isAbout} and ${scope})` : isAbout)
  }
  return conditions.length === 0 ? sql<SqlBool>`1 = 0` : sql<SqlBool>`(${sql.join(conditions, sql` or `)})`
}

/** Null for records that everybody sees who may see any of them. */
async function scopeOf(
  ctx: Context,
  resource: Resource<unknown, never>,
  owners: readonly number[],
): Promise<Condition | null> {
  const ids = async (ctx: Context) =>
    (await resource.matching(ctx, {}))
      .clearSelect()
      .clearOrderBy()
      .select(sql<number>`${sql.ref(`${resource.table}.id`)}`.as('id'))
  const [seen, all] = [await ids(ctx), await ids(seeingAll(ctx))]
  if (seen.compile().sql === all.compile().sql) return null
  const there = sql`select 1 from ${sql.table(resource.table)} as record where record.id = webhook_deliveries.entity_id`
  const owned = sql`select 1 from events as event where event.id = webhook_deliveries.event_id
    and event.owner_id in (${sql.join(owners)})`
  return sql<SqlBool>`(webhook_deliveries.entity_id in (${seen}) or (not exists (${there}) and exists (${owned})))`
}
