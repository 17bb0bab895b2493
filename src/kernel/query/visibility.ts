// Limits queries to the rows that the caller may see. The condition is part of the
// `rows` query of a resource, so that all operations and references apply it. A hidden row counts
// as missing.
import { type Expression, type RawBuilder, type SqlBool, sql } from 'kysely'
import { isIn } from '../../../db/long-lists.ts'
import type { Context } from '../context.ts'
import type { SqlCaller } from './caller-query.ts'

/**
 * Returns an SQL condition for rows whose owner the caller may see. Rows without an owner are
 * visible only to callers with a global view.
 */
export function visible(ctx: SqlCaller, ownerColumn: string): RawBuilder<SqlBool> {
  const within = visibleOwner(ctx, sql.ref(ownerColumn))
  if (!ctx.user?.visibleOwners) return within
  const { visibleRecord: admitted } = ctx
  if (!admitted || !ownerColumn.startsWith(`${admitted.table}.`)) return within
  return sql<SqlBool>`(${within} or ${sql.ref(`${admitted.table}.id`)} = ${admitted.id})`
}

/** Returns a subquery of the ids of the records of the owners. */
export const idsOfOwners = (table: string, owners: readonly number[]): RawBuilder<unknown> =>
  sql`select own.id from ${sql.table(table)} as own where ${isIn(sql.ref('own.user_id'), [...owners])}`

/** Returns the condition of `visible` for an expression, without regard to `visibleRecord`. */
export function visibleOwner(ctx: SqlCaller, owner: Expression<unknown>): RawBuilder<SqlBool> {
  const owners = ctx.user?.visibleOwners
  return owners ? isIn(owner, [...owners]) : sql<SqlBool>`1 = 1`
}

/**
 * Returns whether the caller may see the records of an owner. Applies the rule of `visible` to an
 * owner id that is already loaded.
 */
export function canSeeOwner(ctx: Context, owner: number | null): boolean {
  const owners = ctx.user?.visibleOwners
  return !owners || (owner !== null && owners.includes(owner))
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
