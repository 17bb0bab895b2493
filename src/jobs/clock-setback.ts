// Reschedules jobs after the system clock was set back. The times and leases of jobs written
// earlier are then in the future, so the jobs would wait too long.

import { type Context, now } from '../kernel/context.ts'
import { stamp } from '../kernel/runtime/clock.ts'
import { transaction } from '../kernel/write/write.ts'
import { leaseMs } from './leases.ts'

/** The tolerated difference between the clocks of several processes, in milliseconds. */
const toleranceMs = 60_000
const batch = 200

/**
 * Reschedules jobs whose `updated_at` is in the future and shortens leases that end too late. A
 * rescheduled job keeps its delay, counted from now.
 */
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
  // Shortens leases that end too late. A live worker renews its leases; the leases of a dead worker
  // expire.
  const leaseEnd = stamp(new Date(ctx.time.getTime() + leaseMs))
  await ctx.db
    .updateTable('jobs')
    .set({ locked_until: leaseEnd })
    .where('state', '=', 'running')
    .where('locked_until', '>', stamp(new Date(ctx.time.getTime() + leaseMs + toleranceMs)))
    .execute()
}
