// Starting to validate and to import: in the background, or at once by whoever asks. In both cases a job is there from the beginning,
// so that what ends half-way is gone on with.
import type { Schema } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import { Problem } from '../../kernel/errors.ts'
import { transaction } from '../../kernel/write/write.ts'
import { enqueueRun, processImport, runOf, validateImport } from './jobs.ts'
import { processRows } from './process.ts'
import { imports } from './resource.ts'
import { Elsewhere, occupy, type Run } from './run.ts'
import { beginProcessing, beginValidation } from './states.ts'
import { rehearse } from './validate-rows.ts'

export type What = 'validate' | 'start'

const runs = {
  validate: { job: validateImport, begin: beginValidation, work: rehearse },
  start: { job: processImport, begin: beginProcessing, work: processRows },
} as const

export const runLater = (ctx: Context, id: number, what: What): Promise<Schema<'Import'>> =>
  transaction(ctx, async (ctx) => {
    const begun = await runs[what].begin(ctx, id)
    await enqueueRun(ctx, runs[what].job, id)
    return begun
  })

/** Whether an earlier try of the same request has begun a run here, which a crash ended. */
export const isBegun = ({ keyed }: Context): boolean => (keyed?.progress ?? null) !== null

/**
 * Answers the import when all is done, or when another process has taken it over. A repeated request goes on with the run that the
 * first one began (idempotency.ts).
 */
export async function runHere(
  ctx: Context,
  id: number,
  what: What,
  /** `after`: when a job begins to look whether this run has come to its end without an end. */
  { tell, after }: { tell?: (done: number, total: number) => void; after: Date },
): Promise<Schema<'Import'>> {
  const run: Run = runOf(ctx, id, {
    tell: ({ processed_rows_count: done, rows_count: total }) => tell?.(done, total ?? 0),
  })
  const begin = (): Promise<Schema<'Import'>> =>
    transaction(ctx, async (ctx) => {
      const shown = await runs[what].begin(ctx, id)
      await occupy(ctx, run).catch(refuseOccupied)
      await enqueueRun(ctx, runs[what].job, id, after)
      await ctx.keyed?.save(ctx, { isBegun: true })
      return shown
    })
  const begun = isBegun(ctx) ? null : await begin()
  if (begun && ctx.dryRun) return begun
  try {
    await runs[what].work(run)
  } catch (error) {
    if (!(error instanceof Elsewhere)) throw error
  }
  return imports.get(ctx, id)
}

/** Somebody is at the end of an earlier run. */
function refuseOccupied(error: unknown): never {
  throw error instanceof Elsewhere ? new Problem('state_conflict', `${error.message} Try again in a moment.`) : error
}
