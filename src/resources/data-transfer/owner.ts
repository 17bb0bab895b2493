// Whose an import is. Its rows are matched and written with the sight and the permissions of one user, so nobody else decides what
// is in it or when it runs, and nobody who sees less reads the file or the report of its rows.
import type { Context } from '../../kernel/context.ts'
import { Problem } from '../../kernel/errors.ts'

interface Owned {
  user_id: number | null
}

/** Commands and jobs act for everybody. */
const isOwn = ({ user }: Context, { user_id: owner }: Owned): boolean => user === null || user.id === owner

/** Whether the caller may read what the import holds. */
export const opens = (ctx: Context, row: Owned): boolean => isOwn(ctx, row) || ctx.user?.visibleOwners === null

/** The column of whoever takes over what nobody has looked through yet. Throws 409 for a caller who may not read it. */
export function takenOver(ctx: Context, row: Owned): Partial<Owned> {
  if (!ctx.user || isOwn(ctx, row)) return {}
  if (!opens(ctx, row))
    throw new Problem('state_conflict', 'The import is that of another user; send a file of your own to take it over.')
  return { user_id: ctx.user.id }
}

/** Throws 409: what was validated for one user was not validated for another. */
export function requireOwn(ctx: Context, row: Owned): void {
  if (!isOwn(ctx, row))
    throw new Problem(
      'state_conflict',
      'The import is that of another user, on whose behalf its rows would be imported; only that user can start it.',
    )
}

/** The imports whose files the caller may read, as a query of their ids. */
export function opened(ctx: Context) {
  const rows = ctx.db.selectFrom('imports').select('imports.id')
  return ctx.user && ctx.user.visibleOwners !== null ? rows.where('imports.user_id', '=', ctx.user.id) : rows
}
