// Limits queries to the rows that the caller may see. The condition is part of the
// `rows` query of a resource, so that all operations and references apply it. A hidden row counts
// as missing.
import { type Expression, type RawBuilder, type SqlBool, sql } from 'kysely'
import { isIn } from '../../../db/long-lists.ts'
import type { Context } from '../context.ts'
import type { SqlCaller } from './caller-query.ts'

/**
 * The ways from a lead to other records. A caller who sees a lead sees the records that it reaches.
 * The lead has the alias `seen_lead`, the table between them `seen_link`.
 */
const ways = {
  persons: { id: 'seen_lead.person_id', link: null },
  organizations: { id: 'seen_link.organization_id', link: ['persons', 'seen_link.id', 'seen_lead.person_id'] },
  quotes: { id: 'seen_link.quote_id', link: ['lead_quotes', 'seen_link.lead_id', 'seen_lead.id'] },
} as const

/** The tables whose rows without an owner are visible to users whom the configuration names. */
const withoutOwner = { leads: true, persons: true, organizations: true, quotes: true, lead_outcomes: true } as const

const mayLackOwner = (table: string): boolean => Object.hasOwn(withoutOwner, table)

const isReached = (table: string): table is keyof typeof ways => Object.hasOwn(ways, table)

/**
 * Returns an SQL condition for the rows that the caller may see: those of an owner in the caller's
 * view, and those that a lead of such an owner reaches. `ownerColumn` names the alias of the row
 * and its owner column. Rows without an owner are visible to callers with a global view, and to
 * those of the configuration `visibility.ownerless`.
 */
export function visible(
  ctx: SqlCaller,
  ownerColumn: string,
  table: string = ownerColumn.split('.')[0] ?? '',
): RawBuilder<SqlBool> {
  const within = visibleOwner(ctx, sql.ref(ownerColumn), mayLackOwner(table))
  if (!ctx.user?.visibleOwners) return within
  const [alias = ''] = ownerColumn.split('.')
  const id = sql.ref(`${alias}.id`)
  const { visibleRecord: admitted } = ctx
  const conditions = [
    within,
    ...(isReached(table)
      ? [
          sql`exists (select 1 ${leadsReaching(table, id)} and ${visibleOwner(ctx, sql.ref('seen_lead.user_id'), true)})`,
        ]
      : []),
    ...(admitted?.table === alias ? [sql`${id} = ${admitted.id}`] : []),
  ]
  return conditions.length === 1 ? within : sql<SqlBool>`(${sql.join(conditions, sql` or `)})`
}

/**
 * Returns the part of a query, from `from` on, with the leads that reach a record. SQLite reads the
 * tables of a cross join in the given order: from the record to its leads.
 */
function leadsReaching(table: keyof typeof ways, id: unknown): RawBuilder<unknown> {
  const { id: reached, link } = ways[table]
  const between = link ? sql`${sql.table(link[0])} as seen_link cross join ` : sql``
  const on = link ? sql` and ${sql.ref(link[2])} = ${sql.ref(link[1])}` : sql``
  return sql`from ${between}leads as seen_lead where ${sql.ref(reached)} = ${id}${on}`
}

/**
 * Returns the owners of the leads that reach a record, null for a lead without one; null without
 * such leads.
 */
export async function leadOwnersOf({ db }: Context, table: string, id: number): Promise<(number | null)[] | null> {
  if (!isReached(table)) return null
  const { rows } = await sql<{
    id: number | null
  }>`select distinct seen_lead.user_id as id ${leadsReaching(table, id)}`.execute(db)
  return rows.length === 0 ? null : rows.map(({ id }) => id)
}

/**
 * Returns the condition that the caller saw a deleted record: by its owner, or by the owner of a
 * lead. `known` is the deletion's event, or its archive, of a row of `table`.
 */
export function wasVisible(ctx: Context, table: string): RawBuilder<SqlBool> {
  const within = visibleOwner(ctx, sql.ref('known.owner_id'), mayLackOwner(table))
  if (!ctx.user?.visibleOwners) return within
  const owners = ctx.services.store.dialect.jsonTexts('known.lead_owners', 'seen')
  return sql<SqlBool>`(${within} or exists (select 1 from ${owners} where ${visibleOwner(ctx, sql`cast(seen.value as bigint)`, true)}))`
}

/**
 * Returns subqueries of the ids of the rows of `visible`, one for each way, for a caller with a
 * limited view. Each reads an index of the owner.
 */
export function idsInSight(ctx: SqlCaller, table: string): RawBuilder<unknown>[] {
  const own = sql`select own.id from ${sql.table(table)} as own where ${visibleOwner(ctx, sql.ref('own.user_id'), mayLackOwner(table))}`
  if (!isReached(table)) return [own]
  const { id, link } = ways[table]
  const between = link ? sql` cross join ${sql.table(link[0])} as seen_link` : sql``
  const on = link ? sql` and ${sql.ref(link[1])} = ${sql.ref(link[2])}` : sql``
  const isOwned = visibleOwner(ctx, sql.ref('seen_lead.user_id'), true)
  // The plus keeps SQLite from reading the index of the id instead of that of the owner.
  return [
    own,
    sql`select ${sql.ref(id)} as id from leads as seen_lead${between} where ${isOwned}${on} and +${sql.ref(id)} is not null`,
  ]
}

/** Returns a subquery of the ids of `idsInSight`, in which an id may occur more than once. */
export const allInSight = (ctx: SqlCaller, table: string): RawBuilder<unknown> =>
  sql`(${sql.join(idsInSight(ctx, table), sql` union all `)})`

const seesOwnerless = ({ user }: SqlCaller): boolean => user?.visibleOwners != null && user.seesOwnerless

/**
 * Returns the condition of `visible` for an owner, as an expression, without regard to leads and to
 * `visibleRecord`. `mayLack` says that rows without an owner follow the configuration.
 */
export function visibleOwner(ctx: SqlCaller, owner: Expression<unknown>, mayLack = false): RawBuilder<SqlBool> {
  const owners = ctx.user?.visibleOwners
  if (!owners) return sql<SqlBool>`1 = 1`
  const within = isIn(owner, [...owners])
  return mayLack && seesOwnerless(ctx) ? sql<SqlBool>`(${within} or ${owner} is null)` : within
}

/**
 * Returns whether the caller may see the records of an owner. Applies the rule of `visible` to an
 * owner id that is already loaded. `mayLack` says that records without an owner follow the
 * configuration.
 */
export function canSeeOwner(ctx: Context, owner: number | null, mayLack = false): boolean {
  const owners = ctx.user?.visibleOwners
  return !owners || (owner === null ? mayLack && seesOwnerless(ctx) : owners.includes(owner))
}

/**
 * Returns the context with a global view, for changes of records that the request did not name.
 * If-Match is removed, because it names the version of the record in the path.
 */
export const withoutVisibility = (ctx: Context): Context => ({
  ...ctx,
  ifMatch: null,
  ...(ctx.user && { user: { ...ctx.user, visibleOwners: null } }),
})
