// Manages locks with an owner and an expiry, for work that only one process may do, such as
// scheduling. Another process can take the lock of a dead owner at once.

import { type Context, now } from '../kernel/context.ts'
import { stamp } from '../kernel/runtime/clock.ts'
import { isProcessGone } from '../kernel/runtime/process-identity.ts'
import { transaction } from '../kernel/write/write.ts'

/**
 * Takes or renews a lock. Returns false when another owner has the lock. A `shared` lock only shows
 * that an owner is alive, so any owner may overwrite the lock.
 */
export const acquireLock = (ctx: Context, name: string, own: string, forMs: number, shared = false): Promise<boolean> =>
  transaction(ctx, async (ctx) => {
    const lock = await ctx.db.selectFrom('locks').selectAll().where('name', '=', name).executeTakeFirst()
    const values = { locked_by: own, locked_until: stamp(new Date(ctx.time.getTime() + forMs)) }
    if (!lock) {
      await ctx.db
        .insertInto('locks')
        .values({ name, ...values })
        .execute()
      return true
    }
    const isFree = lock.locked_by === own || lock.locked_until < now(ctx) || isProcessGone(lock.locked_by)
    if (!isFree && !shared) return false
    await ctx.db.updateTable('locks').set(values).where('name', '=', name).execute()
    return true
  })

/** Releases the lock if this owner has it. */
export async function releaseLock(ctx: Context, name: string, own: string): Promise<void> {
  await ctx.db.deleteFrom('locks').where('name', '=', name).where('locked_by', '=', own).execute()
}
