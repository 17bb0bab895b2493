// The records of a deleted user (DOMAIN 15.6): they go to a successor or lose their owner.
// operations.ts hands in the owned resources, because users may not import them.
import { sql } from 'kysely'
import { type Context, now } from '../../kernel/context.ts'
import { invalid } from '../../kernel/errors.ts'
import { canSeeOwner, withoutVisibility } from '../../kernel/query/visibility.ts'
import type { Resource } from '../../kernel/resource/define-resource.ts'

const ownedTables = ['leads', 'quotes', 'persons', 'organizations', 'activities', 'emails', 'tags'] as const
type OwnedTable = (typeof ownedTables)[number]

/** A resource whose records have an owner. */
export type OwnedResource = Pick<Resource<unknown, { user_id?: number | null }>, 'update'> & { table: string }

/** Throws 422 unless the successor is another active user whom the caller sees. */
export async function checkSuccessor(ctx: Context, from: number, to: number): Promise<void> {
  const refuse = (sentence: string) => invalid({ 'query.reassign_to': [sentence] })
  if (to === from) throw refuse('This is the user to delete.')
  const successor = await ctx.db.selectFrom('users').select('status').where('id', '=', to).executeTakeFirst()
  if (!successor || !canSeeOwner(ctx, to)) throw refuse(`No user has id ${to}.`)
  if (successor.status !== 1) throw refuse('This user is not active.')
}

/** Gives every record of one user to another, with its update event. */
export async function reassign(ctx: Context, owned: readonly OwnedResource[], from: number, to: number): Promise<void> {
  // All records of the user are reassigned, whether visible to the caller or not. The If-Match
  // header was about the user.
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

/** Removes the owner from the user's remaining records, as a change of each (DOMAIN 23). */
export async function disown(ctx: Context, userId: number): Promise<void> {
  for (const table of ownedTables) {
    await ctx.db
      .updateTable(table)
      .set({ user_id: null, version: sql`version + 1`, updated_at: now(ctx) })
      .where('user_id', '=', userId)
      .execute()
  }
}
