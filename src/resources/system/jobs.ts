// API handlers that list, retry and delete background jobs.
import { withStatus } from '../../contract/output/status.ts'
import type { Schema } from '../../contract/types.ts'
import { isSequenceBusy, unblock } from '../../jobs/leases.ts'
import { type Context, now } from '../../kernel/context.ts'
import { notFound, Problem } from '../../kernel/errors.ts'
import type { Handler, Handlers } from '../../kernel/handler.ts'
import { timeField, valueField } from '../../kernel/query/filter.ts'
import { recordPage } from '../../kernel/query/page.ts'
import { transaction } from '../../kernel/write/write.ts'

type Job = Schema<'Job'>

const rowsOf = ({ db }: Pick<Context, 'db'>) => db.selectFrom('jobs').selectAll('jobs')
type Row = Awaited<ReturnType<ReturnType<typeof rowsOf>['executeTakeFirstOrThrow']>>

const present = (row: Row): Job => ({
  id: row.id,
  kind: row.kind,
  payload: JSON.parse(row.payload) as Job['payload'],
  state: row.state as Job['state'],
  dedupe_key: row.dedupe_key,
  sequence: row.sequence,
  attempts: row.attempts,
  run_at: row.run_at,
  locked_until: row.locked_until,
  last_error: row.last_error,
  created_at: row.created_at,
  updated_at: row.updated_at,
})

async function jobOf(ctx: Context, id: number): Promise<Row> {
  const row = await rowsOf(ctx).where('id', '=', id).executeTakeFirst()
  if (!row) throw notFound('job', id)
  return row
}

/** Returns the reply of an operation whose work a job continues after the response. */
export const deferredReply = async (ctx: Context, jobId: number, message: string): Promise<Schema<'JobResult'>> =>
  withStatus({ data: present(await jobOf(ctx, jobId)), message }, 202)

type Deletion = { params: { id: number }; query: { replace_with?: number | undefined } }

/**
 * Returns the handler of a deletion that a job completes if many other records must change. `start`
 * enqueues the job and returns its id, or null if `deleteNow` can delete the record at once.
 */
export const deleteOrDefer =
  <Input extends Deletion, Reply>(
    start: (ctx: Context, id: number, replacement?: number) => Promise<number | null>,
    deleteNow: (ctx: Context, input: Input) => Promise<Reply>,
    message: string,
  ) =>
  (ctx: Context, input: Input): Promise<Reply | Schema<'JobResult'>> =>
    transaction(ctx, async (ctx) => {
      const jobId = await start(ctx, input.params.id, input.query.replace_with)
      return jobId === null ? deleteNow(ctx, input) : deferredReply(ctx, jobId, message)
    })

/** Throws 404 when there is no such job. */
export const locateJob = async (ctx: Context, id: number): Promise<void> => void (await jobOf(ctx, id))

const listJobs: Handler<'listJobs'> = (ctx, { query }) =>
  recordPage(ctx, rowsOf(ctx), query, {
    fields: {
      id: valueField('jobs.id'),
      kind: valueField('jobs.kind'),
      state: valueField('jobs.state'),
      created_at: timeField('jobs.created_at'),
    },
    sort: { id: 'jobs.id', run_at: 'jobs.run_at' },
    id: 'jobs.id',
    present: (rows) => rows.map(present),
  })

/**
 * Returns the job. Throws 409 when the job is running. Call this in a transaction, so that the job
 * cannot start meanwhile.
 */
async function requireIdle(ctx: Context, id: number): Promise<Row> {
  const job = await jobOf(ctx, id)
  if (job.state === 'running') throw new Problem('state_conflict', 'The job is running.')
  return job
}

/**
 * Returns the context without the limits of the caller, because a user who manages jobs may not see
 * the records that a job changes.
 */
const asSystem = <C extends Context>(ctx: C): C => ({ ...ctx, user: null, token: null, ifMatch: null })

/**
 * Makes a job due now. Throws 409 when the job is running or blocked, or when its kind cannot be
 * retried after it was buried.
 */
export const retry = (ctx: Context, id: number): Promise<Job> =>
  transaction(ctx, async (ctx) => {
    const job = await requireIdle(ctx, id)
    if (job.state === 'blocked')
      throw new Problem('state_conflict', 'The job is blocked by an earlier one of its sequence.')
    const changes = job.state === 'buried' ? await restartColumns(ctx, job) : { state: 'waiting' as const }
    await ctx.db
      .updateTable('jobs')
      .set({ ...changes, run_at: now(ctx), updated_at: now(ctx) })
      .where('id', '=', id)
      .execute()
    ctx.unit.wakes = true
    return present(await jobOf(ctx, id))
  })

/**
 * Returns the columns that restart a buried job. The job is blocked while later jobs of its
 * sequence are unfinished.
 */
async function restartColumns(ctx: Context, job: Row) {
  const hooks = ctx.services.jobs.get(job.kind)
  if (hooks?.onBuried && !hooks.revive)
    throw new Problem('state_conflict', `A job ${job.kind} cannot be retried after it was given up.`)
  const payload = await hooks?.revive?.(asSystem(ctx), JSON.parse(job.payload) as object)
  return {
    state: (await isSequenceBusy(ctx, job)) ? ('blocked' as const) : ('waiting' as const),
    attempts: 0,
    crashes: 0,
    ...(payload && { payload: JSON.stringify(payload) }),
  }
}

const deleteJob: Handler<'deleteJob'> = (ctx, { params: { id } }) =>
  transaction(ctx, async (ctx) => {
    const { kind, state, payload, sequence } = await requireIdle(ctx, id)
    await ctx.db.deleteFrom('jobs').where('id', '=', id).execute()
    // `onBuried` of a buried job has already run.
    if (state !== 'buried') {
      const cause = `It was given up by ${ctx.user?.name ?? 'the system'}.`
      await ctx.services.jobs.get(kind)?.onBuried?.(asSystem(ctx), JSON.parse(payload) as object, cause)
    }
    await unblock(ctx, sequence)
    return { message: 'Job deleted.' }
  })

export const handlers = {
  listJobs,
  getJob: async (ctx, { params }) => ({ data: present(await jobOf(ctx, params.id)) }),
  deleteJob,
  retryJob: async (ctx, { params }) => ({ data: await retry(ctx, params.id), message: 'Job queued.' }),
} satisfies Partial<Handlers>
