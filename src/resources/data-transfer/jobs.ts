// Imports in the background (DOMAIN 25.1). A run that a crash ends is taken up by the next try where its last batch was kept.
import { ownName } from '../../jobs/claims.ts'
import { defineJob, enqueue, type Later, type Running } from '../../jobs/queue.ts'
import type { Context } from '../../kernel/context.ts'
import { processRows } from './process.ts'
import { rehearse } from './rehearse.ts'
import { Elsewhere, type Run } from './run.ts'
import { fail, faultOf, giveUp } from './states.ts'

interface Payload {
  import_id: number
}

/** Seconds behind failed tries: a crash counts as one, and must not end an import. */
const retryAfter = [5, 5, 15, 15, 60, 60, 300, 300, 900, 900]
const whileOccupiedMs = 5000

async function attempt(
  ctx: Context,
  { import_id: id }: Payload,
  { signal }: Running,
  work: (run: Run) => Promise<boolean>,
) {
  const { services } = ctx
  const later = (ms: number): Later => ({ again: new Date(services.clock.now().getTime() + ms) })
  try {
    if (!(await work({ services, id, own: ownName(), signal }))) return later(0)
  } catch (error) {
    if (!(error instanceof Elsewhere)) throw error
    const { state } = (await ctx.db.selectFrom('imports').select('state').where('id', '=', id).executeTakeFirst()) ?? {}
    if (state === 'processing' || state === 'validating') return later(whileOccupiedMs)
  }
  return undefined
}

export const validateImport = defineJob<Payload>({
  kind: 'imports.validate',
  retryAfter,
  run: (ctx, payload, job) => attempt(ctx, payload, job, rehearse),
  buried: (ctx, { import_id: id }, cause) => giveUp({ ...ctx, origin: 'import' }, id, cause),
})

export const processImport = defineJob<Payload>({
  kind: 'imports.process',
  retryAfter,
  run: (ctx, payload, job) => attempt(ctx, payload, job, processRows),
  buried: (ctx, { import_id: id }, cause) => fail({ ...ctx, origin: 'import' }, id, [faultOf(cause, 'import_failed')]),
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
  own: ownName(),
  ...more,
})
