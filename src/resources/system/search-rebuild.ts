// One rebuild of the search index at a time: a lock in the database says that one runs, so a second process stops before it touches
// the index that the first one builds.
import { discardRebuild, rebuildAll } from '../../../db/search/search-index.ts'
import { acquireLock, releaseLock } from '../../jobs/locks.ts'
import { type Context, systemContext } from '../../kernel/context.ts'
import { newOwnerId } from '../../kernel/runtime/process-identity.ts'

export const rebuildLock = 'search-rebuild'
/** A rebuild renews its lock three times within this. */
const lockMs = 60_000

/** Runs `work` while no other process rebuilds. Returns null without calling it when another one does. */
async function alone<T>(ctx: Context, work: () => Promise<T>): Promise<T | null> {
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

/** Indexes every record anew while others read and write. Returns the number of records, or null when another rebuild runs. */
export const rebuildSearch = (ctx: Context): Promise<number | null> => alone(ctx, () => rebuildAll(ctx.services.store))

/** Removes what a rebuild left behind that was killed: its triggers cost every write time. */
export const discardKilledRebuild = (ctx: Context): Promise<unknown> =>
  alone(ctx, () => discardRebuild(ctx.services.store))
