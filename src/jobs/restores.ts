// Restores the records that a deletion deleted together with its record, by a job if they are many.

import { signedInAs } from '../kernel/auth/tokens.ts'
import { type Context, type Origin, systemContext } from '../kernel/context.ts'
import type { Archive } from '../kernel/history/archive.ts'
import { restoreCompanions } from '../kernel/history/restore.ts'
import { savepoint, transaction } from '../kernel/write/write.ts'
import { defineJob, enqueue, type RunAgain } from './queue.ts'
import { storeProgress } from './removals.ts'

/** The number of records that a job restores in one transaction. */
const stepSize = 50

interface Payload {
  companions: Archive['companions']
  user_id: number | null
  origin: Origin
  done: number
}

declare module '../kernel/context.ts' {
  interface SliceFunctions {
    restoreLater: typeof restoreLater
  }
}

/** Enqueues a job that restores these records, in the transaction of `ctx`. */
export async function restoreLater(ctx: Context, companions: Archive['companions']): Promise<void> {
  const { user, origin } = ctx
  await enqueue(ctx, restoreJob, { companions, user_id: user?.id ?? null, origin, done: 0 })
}

export const restoreJob = defineJob<Payload>({
  kind: 'history.restore',
  async run({ services }, payload, run): Promise<RunAgain | undefined> {
    const { companions, user_id: userId } = payload
    for (let { done } = payload; done < companions.length; done += stepSize) {
      if (run.signal.aborted) return { runAgainAt: services.clock.now() }
      const holds = await transaction(
        systemContext(services, payload.origin),
        async (ctx) => {
          if (!(await run.holdsLease(ctx))) return false
          // The restore was allowed when it began. Without its user, the system is the author.
          const user = userId === null ? null : await signedInAs(ctx.db, userId)
          const acting = { ...ctx, user }
          for (const companion of companions.slice(done, done + stepSize))
            await savepoint(acting, () => restoreCompanions(acting, [companion], []))
          await storeProgress(ctx, run, { ...payload, done: done + stepSize })
          return true
        },
        { isLong: true, inParts: true },
      )
      if (!holds) return undefined
    }
    return undefined
  },
})
