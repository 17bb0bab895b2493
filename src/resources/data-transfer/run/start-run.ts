// Starts validation or import, in the background or within the request. In both cases a job exists
// from the start, so that a run continues after a crash.
import type { Schema } from '../../../contract/types.ts'
import type { Context } from '../../../kernel/context.ts'
import { Problem } from '../../../kernel/errors.ts'
import { transaction } from '../../../kernel/write/write.ts'
import { stops } from '../errors.ts'
import { imports } from '../resource.ts'
import { type ImportRun, lockImport } from './import-run.ts'
import { createRun, enqueueRun, processImport, validateImport } from './jobs.ts'
import { processRows } from './process-rows.ts'
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

/** Returns whether an earlier attempt of this request has started the run and crashed. */
export const hasBegun = ({ keyed }: Context): boolean => (keyed?.progress ?? null) !== null

/**
 * Runs validation or import within the request. Returns the import when the run has ended or
 * another process has taken over. A repeated request continues the run of the first request
 * (idempotency.ts).
 */
export async function runNow(
  ctx: Context,
  id: number,
  what: RunKind,
  /** `after` is the time when the job continues the run, in case this process has crashed. */
  { onProgress, after }: { onProgress?: (done: number, total: number) => void; after: Date },
): Promise<Schema<'Import'>> {
  const run: ImportRun = createRun(ctx, id, {
    onProgress: ({ processed_rows_count: done, rows_count: total }) => onProgress?.(done, total ?? 0),
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
    if (!stops(error, 'process')) throw error
  }
  return imports.get(ctx, id)
}

/** Throws 409 when another run of the import has not ended yet. */
function refuseOccupied(error: unknown): never {
  throw stops(error, 'process') ? new Problem('state_conflict', `${error.message} Try again in a moment.`) : error
}
