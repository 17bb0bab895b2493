// Imports in the background (DOMAIN 25.1). A run that a crash ends is taken up by the next try where its last batch was kept.

import { defineJob, enqueue, type JobRun, type RunAgain } from '../../jobs/queue.ts'
import type { Context } from '../../kernel/context.ts'
import { Problem } from '../../kernel/errors.ts'
import { newOwnerId } from '../../kernel/runtime/process-identity.ts'
import { processRows } from './process.ts'
import { fresh } from './resource.ts'
import { Elsewhere, type ImportRow, type Run } from './run.ts'
import { beginProcessing, fail, faultOf, giveUp, store } from './states.ts'
import { rehearse } from './validate-rows.ts'

interface Payload {
  import_id: number
}

/** Seconds behind failed tries. */
const retryAfter = [5, 5, 15, 15, 60, 60, 300, 300, 900, 900]
const whileOccupiedMs = 5000

async function attempt(
  ctx: Context,
  { import_id: id }: Payload,
  { signal }: JobRun,
  work: (run: Run) => Promise<boolean>,
) {
  const { services } = ctx
  const later = (ms: number): RunAgain => ({ runAgainAt: new Date(services.clock.now().getTime() + ms) })
  try {
    if (!(await work({ services, id, own: newOwnerId(), signal }))) return later(0)
  } catch (error) {
    if (!(error instanceof Elsewhere)) throw error
    const { state } = (await ctx.db.selectFrom('imports').select('state').where('id', '=', id).executeTakeFirst()) ?? {}
    if (state === 'processing' || state === 'validating') return later(whileOccupiedMs)
  }
  return undefined
}

/** The import may be gone, and its job not. */
async function ifThere(
  ctx: Context,
  { import_id: id }: Payload,
  work: (ctx: Context, row: ImportRow) => Promise<unknown>,
): Promise<void> {
  const row = await ctx.db.selectFrom('imports').selectAll().where('id', '=', id).executeTakeFirst()
  if (row) await work({ ...ctx, origin: 'import' }, row)
}

/** It goes on where it was given up; its errors are forgotten or kept as for whoever starts it by hand. */
async function revived(
  ctx: Context,
  payload: Payload,
  state: 'invalid' | 'failed',
  work: (ctx: Context, row: ImportRow) => Promise<unknown>,
): Promise<undefined> {
  let isRevived = false
  await ifThere(ctx, payload, async (ctx, row) => {
    if (row.state !== state) return
    await work(ctx, row)
    isRevived = true
  })
  if (!isRevived) throw new Problem('state_conflict', `The import is not ${state} any more.`)
}

export const validateImport = defineJob<Payload>({
  kind: 'imports.validate',
  retryAfterSeconds: retryAfter,
  run: (ctx, payload, job) => attempt(ctx, payload, job, rehearse),
  onBuried: (ctx, payload, cause) => ifThere(ctx, payload, (ctx, { id }) => giveUp(ctx, id, cause)),
  revive: (ctx, payload) =>
    revived(ctx, payload, 'invalid', (ctx, row) => store(ctx, row, { ...fresh, state: 'validating' })),
})

export const processImport = defineJob<Payload>({
  kind: 'imports.process',
  retryAfterSeconds: retryAfter,
  run: (ctx, payload, job) => attempt(ctx, payload, job, processRows),
  onBuried: (ctx, payload, cause) =>
    ifThere(ctx, payload, (ctx, { id }) => fail(ctx, id, [faultOf(cause, 'import_failed')])),
  revive: (ctx, payload) =>
    revived(ctx, payload, 'failed', (ctx, { id }) => beginProcessing(ctx, id, { isRevived: true })),
})

export const jobs = [validateImport, processImport]

/** Runs of one import follow each other. Who does the work at once has it done by a job when that comes to nothing. */
export const enqueueRun = (
  ctx: Context,
  kind: typeof processImport,
  id: number,
  runAt: Date = ctx.time,
): Promise<number | null> => enqueue(ctx, kind, { import_id: id }, { sequence: `import:${id}`, runAt })

/** A run in this process, now. */
export const runOf = ({ services }: Context, id: number, more: Partial<Run> = {}): Run => ({
  services,
  id,
  own: newOwnerId(),
  ...more,
})
