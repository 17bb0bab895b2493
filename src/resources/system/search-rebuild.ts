// Rebuilds the search index under a lock in the database, so that two processes never rebuild at
// once.
import { discardRebuild } from '../../../db/search/rebuild.ts'
import { acquireLock, releaseLock } from '../../jobs/locks.ts'
import { type Context, systemContext } from '../../kernel/context.ts'
import { newOwnerId } from '../../kernel/runtime/process-identity.ts'

export const rebuildLock = 'search-rebuild'
/** How long the lock lasts; a rebuild renews it three times in this time. */
const lockMs = 60_000

/**
 * Runs `work` under the lock. Returns null without running it when another process holds the lock.
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
 * Indexes every record again while other requests read and write. Returns the number of records, or
 * null when another rebuild runs.
 */
export const rebuildSearch = (ctx: Context): Promise<number | null> =>
  withRebuildLock(ctx, () => ctx.services.searchIndex.rebuildOnline(ctx.services.store))

/** Removes the leftovers of a killed rebuild, whose triggers slow down every write. */
export const discardKilledRebuild = (ctx: Context): Promise<unknown> =>
  withRebuildLock(ctx, () => discardRebuild(ctx.services.store))
