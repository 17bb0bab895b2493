// Jobs of a clock that was ahead and has been set back: without this they would wait until the wrong time comes, as would their leases.

import { type Context, now } from '../kernel/context.ts'
import { stamp } from '../kernel/runtime/clock.ts'
import { transaction } from '../kernel/write/write.ts'
import { leaseMs } from './leases.ts'

/** Clocks of several processes differ a little. */
const toleranceMs = 60_000
const batch = 200

/** Jobs that were changed in the future keep their delay, counted from now. */
export async function rescheduleFutureJobs(ctx: Context): Promise<void> {
  const future = stamp(new Date(ctx.time.getTime() + toleranceMs))
  for (let found = batch; found === batch; )
    found = await transaction(ctx, async (ctx) => {
      const rows = await ctx.db
        .selectFrom('jobs')
        .select(['id', 'run_at', 'updated_at'])
        .where('state', 'in', ['waiting', 'blocked'])
        .where('updated_at', '>', future)
        .limit(batch)
        .execute()
      for (const { id, run_at, updated_at } of rows) {
        const delayMs = Math.max(0, Date.parse(run_at) - Date.parse(updated_at))
        const runAt = stamp(new Date(ctx.time.getTime() + delayMs))
        await ctx.db
          .updateTable('jobs')
          .set({ run_at: runAt, updated_at: now(ctx) })
          .where('id', '=', id)
          .execute()
      }
      return rows.length
    })
  // A worker that lives renews its lease; the lease of one that does not ends.
  const leaseEnd = stamp(new Date(ctx.time.getTime() + leaseMs))
  await ctx.db
    .updateTable('jobs')
    .set({ locked_until: leaseEnd })
    .where('state', '=', 'running')
    .where('locked_until', '>', stamp(new Date(ctx.time.getTime() + leaseMs + toleranceMs)))
    .execute()
}
