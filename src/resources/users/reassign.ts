// Gives the records of a deleted user to a successor, or removes their owner.
// operations.ts passes in the resources of these records, because the users folder may not import
// them.
import { sql } from 'kysely'
import type { RecordChange } from '../../jobs/removals.ts'
import { type Context, now } from '../../kernel/context.ts'
import { invalid } from '../../kernel/errors.ts'
import { withoutVisibility } from '../../kernel/query/visibility.ts'
import type { Resource } from '../../kernel/resource/define-resource.ts'

const ownedTables = [
  'leads',
  'quotes',
  'persons',
  'organizations',
  'activities',
  'emails',
  'tags',
  'saved_views',
] as const
type OwnedTable = (typeof ownedTables)[number]

export type OwnedResource = Pick<Resource<unknown, { user_id?: number | null }>, 'update'> & { table: string }

/** Throws 422 unless the successor `to` is another active user. */
export async function checkSuccessor(ctx: Context, from: number, to: number): Promise<void> {
  const refuse = (sentence: string) => invalid({ 'query.reassign_to': [sentence] })
  if (to === from) throw refuse('This is the user to delete.')
  const successor = await ctx.db.selectFrom('users').select('is_active').where('id', '=', to).executeTakeFirst()
  if (!successor) throw refuse(`No user has id ${to}.`)
  if (successor.is_active !== 1) throw refuse('This user is not active.')
}

/** Returns the number of records that the user owns. */
export async function countOwned({ db }: Context, userId: number): Promise<number> {
  let count = 0
  for (const table of ownedTables) {
    const { owned } = await db
      .selectFrom(table)
      .select(({ fn }) => fn.countAll<number>().as('owned'))
      .where('user_id', '=', userId)
      .executeTakeFirstOrThrow()
    count += Number(owned)
  }
  return count
}

/**
 * Returns changes that give up to `limit` records of a user to `to`, each with its update event.
 * Without a successor, and for records that cannot be passed on, the changes remove the owner.
 */
export async function ownerChanges(
  ctx: Context,
  owned: readonly OwnedResource[],
  { from, to, limit }: { from: number; to: number | null; limit: number },
): Promise<RecordChange[]> {
  const resources = new Map(owned.map((resource) => [resource.table, resource]))
  const tables = [...owned.map(({ table }) => table as OwnedTable), ...ownedTables]
  const changes: RecordChange[] = []
  for (const table of new Set(tables)) {
    const rows = await ctx.db
      .selectFrom(table)
      .select('id')
      .where('user_id', '=', from)
      .orderBy('id')
      .limit(limit - changes.length)
      .execute()
    const resource = to === null ? undefined : resources.get(table)
    for (const { id } of rows)
      changes.push((ctx) =>
        // All records of the user get the new owner, even records that the caller may not see.
        resource ? resource.update(withoutVisibility(ctx), id, { user_id: to }) : disownOne(ctx, table, id),
      )
    if (changes.length >= limit) break
  }
  return changes
}

const disownOne = (ctx: Context, table: OwnedTable, id: number) =>
  ctx.db
    .updateTable(table)
    .set({ user_id: null, version: sql`version + 1`, updated_at: now(ctx) })
    .where('id', '=', id)
    .execute()

/**
 * Removes the owner from the remaining records of the user, and increments the version of each
 * record.
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
