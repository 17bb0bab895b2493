// The rows that a caller sees (DOMAIN 7.4). Applied inside a resource's `rows`, so that show, list,
// update, delete, mass operations and references inherit it; a hidden row counts as missing.
import { type RawBuilder, type SqlBool, sql } from 'kysely'
import type { Context } from '../context.ts'

/**
 * Returns a condition that is true for rows whose owner the caller may see. Rows without an owner
 * are visible only to callers with a global view.
 */
export function visible(ctx: Context, ownerColumn: string): RawBuilder<SqlBool> {
  const owners = ctx.user?.visibleOwners
  if (!owners) return sql<SqlBool>`1 = 1`
  const within = sql<SqlBool>`${sql.ref(ownerColumn)} in (${sql.join(owners)})`
  const { visibleRecord: admitted } = ctx
  if (!admitted || !ownerColumn.startsWith(`${admitted.table}.`)) return within
  return sql<SqlBool>`(${within} or ${sql.ref(`${admitted.table}.id`)} = ${admitted.id})`
}

/** Returns the same as `visible`, for an owner id that is already loaded. */
export function canSeeOwner(ctx: Context, owner: number | null): boolean {
  const owners = ctx.user?.visibleOwners
  return !owners || (owner !== null && owners.includes(owner))
}

/**
 * Returns the context with a global view, for changes that a rule makes to records the request did
 * not name. If-Match refers to another record, so it is dropped.
 */
export const withoutVisibility = (ctx: Context): Context => ({
  ...ctx,
  ifMatch: null,
  ...(ctx.user && { user: { ...ctx.user, visibleOwners: null } }),
})
