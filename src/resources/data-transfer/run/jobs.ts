// Defines the background jobs of imports. After a crash, the next attempt continues
// an import after the last stored batch.
import { defineJob, enqueue, type JobRun, type RunAgain } from '../../../jobs/queue.ts'
import type { Context } from '../../../kernel/context.ts'
import { Problem } from '../../../kernel/errors.ts'
import { newOwnerId } from '../../../kernel/runtime/process-identity.ts'
import { stops } from '../errors.ts'
import { initialState } from '../resource.ts'
import type { ImportRow } from '../settings.ts'
import type { ImportRun } from './import-run.ts'
import { processRows } from './process-rows.ts'
import { beginProcessing, failImport, giveUpValidation, importFault, storeState } from './states.ts'
import { validateRows } from './validate-rows.ts'

interface Payload {
  import_id: number
}

/** The delay before each retry, in seconds. */
const retryAfter = [5, 5, 15, 15, 60, 60, 300, 300, 900, 900]
const lockedRetryMs = 5000

async function attempt(
  ctx: Context,
  { import_id: id }: Payload,
  { signal }: JobRun,
  work: (run: ImportRun) => Promise<boolean>,
) {
  const { services } = ctx
  const later = (ms: number): RunAgain => ({ runAgainAt: new Date(services.clock.now().getTime() + ms) })
  try {
    if (!(await work({ services, id, own: newOwnerId(), signal }))) return later(0)
  } catch (error) {
    if (!stops(error, 'process')) throw error
    const { state } = (await ctx.db.selectFrom('imports').select('state').where('id', '=', id).executeTakeFirst()) ?? {}
    if (state === 'processing' || state === 'validating') return later(lockedRetryMs)
  }
  return undefined
}

/** Runs the work with the import, or does nothing when the import was deleted. */
async function withImport(
  ctx: Context,
  { import_id: id }: Payload,
  work: (ctx: Context, row: ImportRow) => Promise<unknown>,
): Promise<void> {
  const row = await ctx.db.selectFrom('imports').selectAll().where('id', '=', id).executeTakeFirst()
  if (row) await work({ ...ctx, origin: 'import' }, row)
}

/**
 * Restarts an import whose job has failed for good. Throws 409 when the import is no longer in the
 * given state.
 */
async function reviveImport(
  ctx: Context,
  payload: Payload,
  state: 'invalid' | 'failed',
  work: (ctx: Context, row: ImportRow) => Promise<unknown>,
): Promise<undefined> {
  let isRevived = false
  await withImport(ctx, payload, async (ctx, row) => {
    if (row.state !== state) return
    await work(ctx, row)
    isRevived = true
  })
  if (!isRevived) throw new Problem('state_conflict', `The import is not ${state} any more.`)
}

export const validateImport = defineJob<Payload>({
  kind: 'imports.validate',
  retryAfterSeconds: retryAfter,
  run: (ctx, payload, job) => attempt(ctx, payload, job, validateRows),
  onBuried: (ctx, payload, cause) => withImport(ctx, payload, (ctx, { id }) => giveUpValidation(ctx, id, cause)),
  revive: (ctx, payload) =>
    reviveImport(ctx, payload, 'invalid', (ctx, row) => storeState(ctx, row, { ...initialState, state: 'validating' })),
})

export const processImport = defineJob<Payload>({
  kind: 'imports.process',
  retryAfterSeconds: retryAfter,
  run: (ctx, payload, job) => attempt(ctx, payload, job, processRows),
  onBuried: (ctx, payload, cause) =>
    withImport(ctx, payload, (ctx, { id }) => failImport(ctx, id, [importFault(cause, 'import_failed')])),
  revive: (ctx, payload) =>
    reviveImport(ctx, payload, 'failed', (ctx, { id }) => beginProcessing(ctx, id, { isRevived: true })),
})

export const jobs = [validateImport, processImport]

/**
 * Enqueues the job of a run. The jobs of one import run one after another. A run within a request
 * also gets a job, which continues the run after a crash.
 */
export const enqueueRun = (
  ctx: Context,
  kind: typeof processImport,
  id: number,
  runAt: Date = ctx.time,
): Promise<number | null> => enqueue(ctx, kind, { import_id: id }, { sequence: `import:${id}`, runAt })

export const createRun = ({ services }: Context, id: number, more: Partial<ImportRun> = {}): ImportRun => ({
  services,
  id,
  own: newOwnerId(),
  ...more,
})
