// Manages locks with an owner and an expiry, for work that only one process may do, such as
// scheduling. The lock of a process that has ended can be taken at once.

import { type Context, now } from '../kernel/context.ts'
import { stamp } from '../kernel/runtime/clock.ts'
import { isProcessGone, processOf } from '../kernel/runtime/process-identity.ts'
import { transaction } from '../kernel/write/write.ts'

/**
 * Takes or renews a lock. Returns false when another owner has the lock. A `shared` lock only shows
 * that an owner is alive, so any owner may overwrite the lock.
 */
export const acquireLock = (ctx: Context, name: string, own: string, forMs: number, shared = false): Promise<boolean> =>
  transaction(ctx, async (ctx) => {
    const known = await ctx.db.selectFrom('locks').select('locked_by').where('name', '=', name).executeTakeFirst()
    const free = [own, ...(known && isProcessGone(known.locked_by) ? [known.locked_by] : [])]
    const values = { locked_by: own, locked_until: stamp(new Date(ctx.time.getTime() + forMs)) }
    // One statement decides, because another process may take the lock at the same moment.
    const taken = await ctx.db
      .insertInto('locks')
      .values({ name, ...values })
      .onConflict((conflict) => {
        const update = conflict.column('name').doUpdateSet(values)
        if (shared) return update
        return update.where(({ eb, or }) =>
          or([eb('locks.locked_by', 'in', free), eb('locks.locked_until', '<', now(ctx))]),
        )
      })
      .returning('name')
      .executeTakeFirst()
    return taken !== undefined
  })

/** Releases the lock if this owner has it. */
export async function releaseLock(ctx: Context, name: string, own: string): Promise<void> {
  await ctx.db.deleteFrom('locks').where('name', '=', name).where('locked_by', '=', own).execute()
}

/**
 * Returns the processes that have an unexpired lock or an unexpired lease of a job, each with the
 * last end of these times. Processes of this machine that have ended are left out.
 */
export async function workingProcesses(
  { db }: Pick<Context, 'db'>,
  at: string,
): Promise<{ process: string; until: string }[]> {
  const locks = db.selectFrom('locks').select(['locked_by', 'locked_until']).where('locked_until', '>', at)
  const jobs = db
    .selectFrom('jobs')
    .select(['locked_by', 'locked_until'])
    .where('state', '=', 'running')
    .where('locked_until', '>', at)
  const held = new Map<string, string>()
  for (const { locked_by: owner, locked_until: until } of [...(await locks.execute()), ...(await jobs.execute())]) {
    if (owner === null || until === null || isProcessGone(owner)) continue
    const name = processOf(owner)
    if ((held.get(name) ?? '') < until) held.set(name, until)
  }
  return [...held].map(([process, until]) => ({ process, until }))
}
