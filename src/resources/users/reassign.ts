// Gives the records of a deleted user to a successor, or removes their owner (DOMAIN 15.6).
// operations.ts passes in the resources of these records, because the users folder may not import
// them.
import { sql } from 'kysely'
import { type Context, now } from '../../kernel/context.ts'
import { invalid } from '../../kernel/errors.ts'
import { canSeeOwner, withoutVisibility } from '../../kernel/query/visibility.ts'
import type { Resource } from '../../kernel/resource/define-resource.ts'

const ownedTables = ['leads', 'quotes', 'persons', 'organizations', 'activities', 'emails', 'tags'] as const
type OwnedTable = (typeof ownedTables)[number]

export type OwnedResource = Pick<Resource<unknown, { user_id?: number | null }>, 'update'> & { table: string }

/** Throws 422 unless the successor `to` is another active user who is visible to the caller. */
export async function checkSuccessor(ctx: Context, from: number, to: number): Promise<void> {
  const refuse = (sentence: string) => invalid({ 'query.reassign_to': [sentence] })
  if (to === from) throw refuse('This is the user to delete.')
  const successor = await ctx.db.selectFrom('users').select('status').where('id', '=', to).executeTakeFirst()
  if (!successor || !canSeeOwner(ctx, to)) throw refuse(`No user has id ${to}.`)
  if (successor.status !== 1) throw refuse('This user is not active.')
}

/**
 * Changes the owner of every record from one user to another. Each record emits its update event.
 */
export async function reassign(ctx: Context, owned: readonly OwnedResource[], from: number, to: number): Promise<void> {
  // All records of the user get the new owner, even records that the caller may not see. The
  // If-Match header is dropped, because it names the version of the user.
  const plain: Context = withoutVisibility(ctx)
  for (const resource of owned) {
    const rows = await plain.db
      .selectFrom(resource.table as OwnedTable)
      .select('id')
      .where('user_id', '=', from)
      .orderBy('id')
      .execute()
    for (const { id } of rows) await resource.update(plain, id, { user_id: to })
  }
}

/**
 * Removes the owner from the remaining records of the user, and increments the version of each
 * record (DOMAIN 23).
 */
export async function disown(ctx: Context, userId: number): Promise<void> {
  for (const table of ownedTables) {
    await ctx.db
      .updateTable(table)
      .set({ user_id: null, version: sql`version + 1`, updated_at: now(ctx) })
      .where('user_id', '=', userId)
      .execute()
  }
}
