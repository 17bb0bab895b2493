// Ownership of imports. Rows run with the visibility and permissions of one user, so only that user
// controls the import, and users who see fewer records cannot read its file or report.
import type { Context } from '../../kernel/context.ts'
import { Problem } from '../../kernel/errors.ts'

interface OwnedImport {
  user_id: number | null
}

/** Commands and jobs have no user and may do everything. */
const isOwn = ({ user }: Context, { user_id: owner }: OwnedImport): boolean => user === null || user.id === owner

/** Whether the caller may read the contents of the import. */
export const canOpen = (ctx: Context, row: OwnedImport): boolean => isOwn(ctx, row) || ctx.user?.visibleOwners === null

/**
 * The column that makes the caller the owner of a pending import. Throws 409 for callers who may
 * not read it.
 */
export function ownerAfterTakeover(ctx: Context, row: OwnedImport): Partial<OwnedImport> {
  if (!ctx.user || isOwn(ctx, row)) return {}
  if (!canOpen(ctx, row))
    throw new Problem('state_conflict', 'The import belongs to another user; send your own file to take it over.')
  return { user_id: ctx.user.id }
}

/** Throws 409 for another user: validation used the owner's permissions. */
export function requireOwn(ctx: Context, row: OwnedImport): void {
  if (!isOwn(ctx, row))
    throw new Problem(
      'state_conflict',
      'The import belongs to another user and runs with the permissions of that user, who alone can start it.',
    )
}

/** The imports whose contents the caller may read, as a query of their ids. */
export function readableImports(ctx: Context) {
  const rows = ctx.db.selectFrom('imports').select('imports.id')
  return ctx.user && ctx.user.visibleOwners !== null ? rows.where('imports.user_id', '=', ctx.user.id) : rows
}
