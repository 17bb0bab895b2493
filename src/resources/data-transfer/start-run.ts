// Starts validation or import, in the background or within the request. Either way a job exists
// from the start, so that a crashed run continues.
import type { Schema } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import { Problem } from '../../kernel/errors.ts'
import { transaction } from '../../kernel/write/write.ts'
import { createRun, enqueueRun, processImport, validateImport } from './jobs.ts'
import { processRows } from './process-rows.ts'
import { imports } from './resource.ts'
import { type ImportRun, lockImport, TakenOver } from './run.ts'
import { beginProcessing, beginValidation } from './states.ts'
import { validateRows } from './validate-rows.ts'

export type RunKind = 'validate' | 'start'

const runs = {
  validate: { job: validateImport, begin: beginValidation, work: validateRows },
  start: { job: processImport, begin: beginProcessing, work: processRows },
} as const

export const queueRun = (ctx: Context, id: number, what: RunKind): Promise<Schema<'Import'>> =>
  transaction(ctx, async (ctx) => {
    const begun = await runs[what].begin(ctx, id)
    await enqueueRun(ctx, runs[what].job, id)
    return begun
  })

/** Whether an earlier try of this request began a run that crashed. */
export const hasBegun = ({ keyed }: Context): boolean => (keyed?.progress ?? null) !== null

/**
 * Runs within the request and returns the import when all is done or another process took over. A
 * repeated request continues the run of the first (idempotency.ts).
 */
export async function runNow(
  ctx: Context,
  id: number,
  what: RunKind,
  /** `after`: when the job checks whether this run has crashed. */
  { tell, after }: { tell?: (done: number, total: number) => void; after: Date },
): Promise<Schema<'Import'>> {
  const run: ImportRun = createRun(ctx, id, {
    tell: ({ processed_rows_count: done, rows_count: total }) => tell?.(done, total ?? 0),
  })
  const begin = (): Promise<Schema<'Import'>> =>
    transaction(ctx, async (ctx) => {
      const shown = await runs[what].begin(ctx, id)
      await lockImport(ctx, run).catch(refuseOccupied)
      await enqueueRun(ctx, runs[what].job, id, after)
      await ctx.keyed?.save(ctx, { isBegun: true })
      return shown
    })
  const begun = hasBegun(ctx) ? null : await begin()
  if (begun && ctx.dryRun) return begun
  try {
    await runs[what].work(run)
  } catch (error) {
    if (!(error instanceof TakenOver)) throw error
  }
  return imports.get(ctx, id)
}

/** Another run of the import is still ending. */
function refuseOccupied(error: unknown): never {
  throw error instanceof TakenOver ? new Problem('state_conflict', `${error.message} Try again in a moment.`) : error
}
