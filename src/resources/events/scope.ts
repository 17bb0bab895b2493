// Which rows about records a caller may know of (DOMAIN 7.4), as a condition, so that pages and totals are of the same rows: those about
// types the caller may list, of records the caller sees, or could see when they were deleted.
import { type RawBuilder, type SqlBool, sql } from 'kysely'
import type { Context } from '../../kernel/context.ts'
import type { Resource } from '../../kernel/definition.ts'
import { seeingAll, visible } from '../../kernel/visibility.ts'
import { openTypes } from './sight.ts'

type Condition = RawBuilder<SqlBool>
/** Tables whose rows tell of a record by `entity_type` and `entity_id`. */
type Table = 'webhook_deliveries' | 'workflow_runs'

export async function visibleAbout(ctx: Context, table: Table): Promise<Condition> {
  const isLimited = (ctx.user?.visibleOwners ?? null) !== null
  const conditions: Condition[] = []
  for (const type of openTypes(ctx)) {
    const resource = ctx.services.resources.get(type)
    // Who sees a file is a long question; who does not see everything can ask it where files are.
    if (isLimited && type === 'files') continue
    const isOfType = sql<SqlBool>`${sql.ref(`${table}.entity_type`)} = ${type}`
    const scope = isLimited && resource ? await scopeOf(ctx, resource, table) : null
    conditions.push(scope ? sql<SqlBool>`(${isOfType} and ${scope})` : isOfType)
  }
  return conditions.length === 0 ? sql<SqlBool>`1 = 0` : sql<SqlBool>`(${sql.join(conditions, sql` or `)})`
}

/** Null for records that everybody sees who may see any of them. */
async function scopeOf(ctx: Context, resource: Resource<unknown, never>, about: Table): Promise<Condition | null> {
  const { table, entity, events } = resource
  const ids = async (ctx: Context) =>
    (await resource.matching(ctx, {}))
      .clearSelect()
      .clearOrderBy()
      .select(sql<number>`${sql.ref(`${table}.id`)}`.as('id'))
  const [seen, all] = [await ids(ctx), await ids(seeingAll(ctx))]
  if (seen.compile().sql === all.compile().sql) return null
  const entityId = sql.ref(`${about}.entity_id`)
  const present = sql`select 1 from ${sql.table(table)} as present where present.id = ${entityId}`
  // As it was last: a record can be deleted, restored and deleted again.
  const last = sql`select max(later.id) from events as later where later.entity_type = ${entity}
    and later.entity_id = ${entityId} and later.name = ${`${events.delete}.after`}`
  const deletion = sql`select 1 from events as deletion where deletion.id = (${last})
    and ${visible(ctx, 'deletion.owner_id')}`
  return sql<SqlBool>`(${entityId} in (${seen}) or (not exists (${present}) and exists (${deletion})))`
}
