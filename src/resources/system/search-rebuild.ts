// Rebuilds the search index under a lock in the database, so that only one process at a time
// rebuilds it.
import { discardRebuild } from '../../../db/search/rebuild.ts'
import { acquireLock, releaseLock } from '../../jobs/locks.ts'
import { type Context, systemContext } from '../../kernel/context.ts'
import { newOwnerId } from '../../kernel/runtime/process-identity.ts'

export const rebuildLock = 'search-rebuild'
/**
 * How long the lock is valid without a renewal, in milliseconds. A running rebuild renews the lock
 * three times in this period.
 */
const lockMs = 60_000

/**
 * Runs `work` while this process holds the lock. Returns null without running `work` when another
 * process holds the lock.
 */
async function withRebuildLock<T>(ctx: Context, work: () => Promise<T>): Promise<T | null> {
  const own = newOwnerId()
  const keep = (): Promise<boolean> => acquireLock(systemContext(ctx.services, ctx.origin), rebuildLock, own, lockMs)
  if (!(await keep())) return null
  const timer = setInterval(() => keep().catch(() => {}), lockMs / 3).unref()
  try {
    return await work()
  } finally {
    clearInterval(timer)
    await releaseLock(ctx, rebuildLock, own)
  }
}

/**
 * Rebuilds the index of all records while other requests read and write. Returns the number of
 * indexed records, or null when another process is rebuilding the index.
 */
export const rebuildSearchOnline = (ctx: Context): Promise<number | null> =>
  withRebuildLock(ctx, () => ctx.services.searchIndex.rebuildOnline(ctx.services.store))

/**
 * Removes the tables and triggers that a killed rebuild left behind. The triggers slow down every
 * write.
 */
export const discardKilledRebuild = (ctx: Context): Promise<unknown> =>
  withRebuildLock(ctx, () => discardRebuild(ctx.services.store))
