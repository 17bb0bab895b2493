// Selects the rows of a table that refer to records visible to the caller. The caller
// must be allowed to list the entity, and must see the record or have seen it when it was deleted.
// The rule is one SQL condition, so that it also applies to pages and totals.
import { type RawBuilder, type SqlBool, sql } from 'kysely'
import { type Context, canCall } from '../../kernel/context.ts'
import { deletionOf, never, type Records, scopeOf } from '../../kernel/query/event-visibility.ts'

type Condition = RawBuilder<SqlBool>
/** Tables whose rows name a record by `entity_type` and `entity_id`, and an event by `event_id`. */
type Table = 'webhook_deliveries' | 'workflow_runs'

export async function visibleReferences(ctx: Context, table: Table): Promise<Condition> {
  const conditions: Condition[] = []
  for (const [type, { lists, records }] of ctx.services.sights) {
    if (!canCall(ctx, lists)) continue
    const isOfType = sql<SqlBool>`${sql.ref(`${table}.entity_type`)} = ${type}`
    const scope = records && (await scopeWithin(ctx, type, records, table))
    conditions.push(scope ? sql<SqlBool>`(${isOfType} and ${scope})` : isOfType)
  }
  return conditions.length === 0 ? never : sql<SqlBool>`(${sql.join(conditions, sql` or `)})`
}

/**
 * Returns the condition for rows about one entity. Returns null when the caller sees all records of
 * the entity.
 */
async function scopeWithin(ctx: Context, type: string, records: Records, about: Table): Promise<Condition | null> {
  const seen = await scopeOf(ctx, records)
  if (seen === null) return null
  const [id, event] = [sql.ref(`${about}.entity_id`), sql.ref(`${about}.event_id`)]
  const present = sql`select 1 from ${sql.table(records.table)} as present where present.id = ${id}`
  const last = sql`coalesce(${deletionOf(type, records, id)}, ${event})`
  const known = sql`select 1 from events as known where known.id = ${last} and ${records.wasInSight(ctx)}`
  return sql<SqlBool>`(${id} in (${seen}) or (not exists (${present}) and exists (${known})))`
}
