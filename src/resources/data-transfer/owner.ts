// Checks the ownership of imports. Rows are imported with the visibility and permissions of the
// owner, so only the owner can start the import. A user with limited visibility cannot read the
// file or the error report of another owner's import.
import type { Context } from '../../kernel/context.ts'
import { Problem } from '../../kernel/errors.ts'

interface OwnedImport {
  user_id: number | null
}

/**
 * Returns whether the caller owns the import. Commands and jobs have no user and count as owners of
 * every import.
 */
const isOwn = ({ user }: Context, { user_id: owner }: OwnedImport): boolean => user === null || user.id === owner

/** Returns whether the caller may read the file and report of the import. */
export const canOpen = (ctx: Context, row: OwnedImport): boolean => isOwn(ctx, row) || ctx.user?.visibleOwners === null

/**
 * Returns the column `user_id` that makes the caller the owner of the import. Throws 409 for a
 * caller who may not read the file of the import.
 */
export function ownerAfterTakeover(ctx: Context, row: OwnedImport): Partial<OwnedImport> {
  if (!ctx.user || isOwn(ctx, row)) return {}
  if (!canOpen(ctx, row))
    throw new Problem('state_conflict', 'The import belongs to another user; send your own file to take it over.')
  return { user_id: ctx.user.id }
}

/**
 * Throws 409 unless the caller owns the import, because validation has checked the rows with the
 * permissions of the owner.
 */
export function requireOwn(ctx: Context, row: OwnedImport): void {
  if (!isOwn(ctx, row))
    throw new Problem(
      'state_conflict',
      'The import belongs to another user and runs with the permissions of that user, who alone can start it.',
    )
}

export function readableImports(ctx: Context) {
  const rows = ctx.db.selectFrom('imports').select('imports.id')
  return ctx.user && ctx.user.visibleOwners !== null ? rows.where('imports.user_id', '=', ctx.user.id) : rows
}
