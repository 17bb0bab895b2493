// Defines and enqueues durable jobs. A job is a row. A write that needs background
// work inserts the row in its own transaction. leases.ts claims jobs, and worker.ts runs them.

import { type Context, now, type Services } from '../kernel/context.ts'
import { stamp } from '../kernel/runtime/clock.ts'
import { transaction } from '../kernel/write/write.ts'

/** The facts about a run that the job gets as an argument. */
export interface JobRun {
  id: number
  /** The number of this attempt, counted from 1. */
  attempt: number
  /** Whether the job is buried when this attempt fails. */
  isLast: boolean
  /** Aborts when the worker stops or the lease is lost. */
  signal: AbortSignal
  /**
   * Returns whether this run still has the lease of the job. A run calls this in the transaction
   * that stores its outcome. If the result is false, the run must store nothing.
   */
  holdsLease: (ctx: Context) => Promise<boolean>
}

/** Returned by a run that continues the job later. The job runs again at this time. */
export interface RunAgain {
  runAgainAt: Date
}

export interface JobKind<Payload extends object> {
  /** The stored name of the kind, such as `emails.send`. */
  kind: string
  /** The maximum number of jobs of the kind that one worker runs at once. */
  concurrency: number
  /**
   * Divides the jobs of the kind into lanes, so that one lane cannot take all places. A worker runs
   * at most `atOnce` jobs of a lane at once. Returns the beginning of the sequence that the jobs of
   * a lane share.
   */
  lanes?: { of: (sequence: string) => string; atOnce: number }
  /**
   * The delays in seconds after the first, second, … failed attempt. Each delay varies by 10 %. A
   * failure after the last delay buries the job.
   */
  retryAfterSeconds: readonly number[]
  /**
   * Returns whether jobs of the kind may run now. While the result is false, these jobs wait, for
   * example mail jobs without a mail server.
   */
  isReady: (services: Services) => boolean
  /**
   * Whether jobs of the kind send mail. Mail jobs wait while there is no mail server. Failures of
   * mail jobs count as failures of the mail server.
   */
  isMail: boolean
  // biome-ignore lint/suspicious/noConfusingVoidType: most jobs return nothing
  run: (ctx: Context, payload: Payload, job: JobRun) => Promise<RunAgain | void>
  /**
   * Runs in the transaction that buries the job or deletes an unfinished job. `cause` is a
   * sentence.
   */
  onBuried?: (ctx: Context, payload: Payload, cause: string) => Promise<void>
  /**
   * Undoes `onBuried` in the transaction that retries a buried job. Returns a new payload if the
   * job needs one. Throws a 409 problem when no work is left. A kind with `onBuried` but without
   * `revive` cannot be retried.
   */
  revive?: (ctx: Context, payload: Payload) => Promise<Payload | undefined>
}

// biome-ignore lint/suspicious/noExplicitAny: a list of jobs with payloads of their own
export type AnyJob = JobKind<any>

type Defined<Payload extends object> = Pick<JobKind<Payload>, 'kind' | 'run'> & Partial<JobKind<Payload>>

export const defineJob = <Payload extends object>(job: Defined<Payload>): JobKind<Payload> => ({
  concurrency: 1,
  retryAfterSeconds: [60, 300, 1800, 7200],
  isMail: false,
  isReady: ({ mailer }) => job.isMail !== true || mailer.isConfigured,
  ...job,
})

/** Thrown by a job that can never succeed. The job is buried without further attempts. */
export class BuryJob extends Error {}

export interface EnqueueOptions {
  /** While a job with this key is unfinished, no second job with the same key is enqueued. */
  key?: string
  /** The job runs after all earlier jobs of the sequence. */
  sequence?: string
  runAt?: Date
}

/**
 * All states except `buried`. A query by sequence lists these states, so that the database uses the
 * partial index.
 */
export const unfinishedStates = ['running', 'waiting', 'blocked'] as const

type Wanted<Payload extends object> = { payload: Payload } & EnqueueOptions

/**
 * Enqueues a job in the transaction of `ctx`, or in a new transaction. Returns the id of the job,
 * or null when a job with the same key is unfinished.
 */
export const enqueue = async <Payload extends object>(
  ctx: Context,
  job: Pick<JobKind<Payload>, 'kind'>,
  payload: Payload,
  options: EnqueueOptions = {},
): Promise<number | null> => (await enqueueAll(ctx, job, [{ payload, ...options }]))[0] ?? null

/**
 * Enqueues many jobs of one kind, in order, with few statements. Skips a job when an unfinished job
 * has the same key. Returns the ids of the new jobs.
 */
export const enqueueAll = <Payload extends object>(
  ctx: Context,
  job: Pick<JobKind<Payload>, 'kind'>,
  wanted: readonly Wanted<Payload>[],
): Promise<number[]> =>
  transaction(ctx, async (ctx) => {
    const ids: number[] = []
    for (let from = 0; from < wanted.length; from += batchSize)
      ids.push(...(await insertAll(ctx, job.kind, wanted.slice(from, from + batchSize))))
    if (ids.length > 0) ctx.unit.wakes = true
    return ids
  })

/** Returns the row of a job, for an insert without a context such as one in a group commit. */
export const waitingJob = (kind: string, payload: object, { runAt, at }: { runAt: Date; at: Date }) => ({
  kind,
  payload: JSON.stringify(payload),
  state: 'waiting' as const,
  run_at: stamp(runAt),
  created_at: stamp(at),
  updated_at: stamp(at),
})

async function insertAll(ctx: Context, kind: string, wanted: readonly Wanted<object>[]): Promise<number[]> {
  const taken = await takenOf(
    ctx,
    wanted.flatMap(({ key }) => key ?? []),
  )
  const busy = await busyOf(ctx, [...new Set(wanted.flatMap(({ sequence }) => sequence ?? []))])
  const rows = wanted.flatMap(({ payload, key, sequence, runAt = ctx.time }) => {
    if (key !== undefined && taken.has(key)) return []
    const isBehind = sequence !== undefined && busy.has(sequence)
    if (key !== undefined) taken.add(key)
    if (sequence !== undefined) busy.add(sequence)
    return {
      ...waitingJob(kind, payload, { runAt, at: ctx.time }),
      state: isBehind ? ('blocked' as const) : ('waiting' as const),
      dedupe_key: key ?? null,
      sequence: sequence ?? null,
    }
  })
  if (rows.length === 0) return []
  return (await ctx.db.insertInto('jobs').values(rows).returning('id').execute()).map(({ id }) => id)
}

/** Returns those of `keys` that unfinished jobs have. A buried job has no key. */
async function takenOf({ db }: Context, keys: readonly string[]): Promise<Set<string | null>> {
  if (keys.length === 0) return new Set()
  const rows = await db.selectFrom('jobs').select('dedupe_key').where('dedupe_key', 'in', keys).execute()
  return new Set(rows.map(({ dedupe_key: key }) => key))
}

/** Returns those of `sequences` that have an unfinished job. */
async function busyOf({ db }: Context, sequences: readonly string[]): Promise<Set<string | null>> {
  if (sequences.length === 0) return new Set()
  const rows = await db
    .selectFrom('jobs')
    .select('sequence')
    .distinct()
    .where('sequence', 'in', sequences)
    .where('state', 'in', unfinishedStates)
    .execute()
  return new Set(rows.map(({ sequence }) => sequence))
}

/** The maximum number of keys or rows in one statement. */
const batchSize = 500

/** Removes the key of a job that begins, so that later changes enqueue a new job. */
export const releaseDedupeKey = async ({ db }: Context, jobId: number): Promise<void> =>
  void (await db.updateTable('jobs').set({ dedupe_key: null }).where('id', '=', jobId).execute())

/**
 * Moves waiting jobs with these keys to the time `at`, if their time is later. The order of jobs in
 * a sequence does not change.
 */
export const expedite = (ctx: Context, keys: readonly string[], at: Date = ctx.time): Promise<void> =>
  transaction(ctx, async (ctx) => {
    for (let from = 0; from < keys.length; from += batchSize)
      await ctx.db
        .updateTable('jobs')
        .set({ run_at: stamp(at), updated_at: now(ctx) })
        .where('dedupe_key', 'in', keys.slice(from, from + batchSize))
        .where('state', 'in', ['waiting', 'blocked'])
        .where('run_at', '>', stamp(at))
        .execute()
    ctx.unit.wakes = true
  })
