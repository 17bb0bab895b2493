// Durable jobs (DOMAIN 25.1). A job is a row, written in the transaction of the write that needs
// the work. leases.ts claims jobs, and worker.ts runs them.

import { type Context, now, type Services } from '../kernel/context.ts'
import { stamp } from '../kernel/runtime/clock.ts'
import { transaction } from '../kernel/write/write.ts'

/** Facts about a run, for the job. */
export interface JobRun {
  id: number
  /** Counts from 1. */
  attempt: number
  /** Whether the job is buried when this attempt fails. */
  isLast: boolean
  /** Aborts when the worker stops or the lease is lost. */
  signal: AbortSignal
  /**
   * Whether this run still holds the job. A run asks in the transaction that stores its outcome,
   * and stores nothing if not.
   */
  holdsLease: (ctx: Context) => Promise<boolean>
}

/** The job is not done but has not failed: it runs again at that time. */
export interface RunAgain {
  runAgainAt: Date
}

export interface JobKind<Payload extends object> {
  /** Its stored name, such as `emails.send`. */
  kind: string
  /** Maximum number of jobs of the kind that one worker runs at once. */
  concurrency: number
  /**
   * Delays after the first, second … failed attempt, each varied by 10 %. One more failure buries
   * the job.
   */
  retryAfterSeconds: readonly number[]
  /** Jobs of the kind wait while this is false, for example mail without a mail server. */
  isReady: (services: Services) => boolean
  /**
   * The kind sends mail: it waits while there is no mail server, and its failures count as failures
   * of the server.
   */
  isMail: boolean
  // biome-ignore lint/suspicious/noConfusingVoidType: most jobs return nothing
  run: (ctx: Context, payload: Payload, job: JobRun) => Promise<RunAgain | void>
  /**
   * Runs in the transaction that buries the job, or deletes it before it is done. `cause` is a
   * sentence.
   */
  onBuried?: (ctx: Context, payload: Payload, cause: string) => Promise<void>
  /**
   * Undoes `onBuried`, in the transaction that retries a buried job. Returns a new payload if the
   * job needs one. Throws 409 when nothing is left to do. A kind with `onBuried` needs this to be
   * revived.
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
  /** While a job with this key is unfinished, no second one is enqueued. */
  key?: string
  /** The job runs after all earlier jobs of the sequence. */
  sequence?: string
  runAt?: Date
}

/** All states but `buried`, listed so that a query by sequence can use the partial index. */
export const unfinishedStates = ['running', 'waiting', 'blocked'] as const

type Wanted<Payload extends object> = { payload: Payload } & EnqueueOptions

/**
 * Enqueues in the transaction of `ctx`, or in a new one. Returns the id, or null when a job with
 * the key is unfinished.
 */
export const enqueue = async <Payload extends object>(
  ctx: Context,
  job: Pick<JobKind<Payload>, 'kind'>,
  payload: Payload,
  options: EnqueueOptions = {},
): Promise<number | null> => (await enqueueAll(ctx, job, [{ payload, ...options }]))[0] ?? null

/**
 * Enqueues many jobs of one kind, in order, with few statements. Jobs whose key is taken are left
 * out. Returns the ids of the others.
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
      kind,
      payload: JSON.stringify(payload),
      state: isBehind ? 'blocked' : 'waiting',
      dedupe_key: key ?? null,
      sequence: sequence ?? null,
      run_at: stamp(runAt),
      created_at: now(ctx),
      updated_at: now(ctx),
    }
  })
  if (rows.length === 0) return []
  return (await ctx.db.insertInto('jobs').values(rows).returning('id').execute()).map(({ id }) => id)
}

/** The keys that unfinished jobs have. A buried job has none. */
async function takenOf({ db }: Context, keys: readonly string[]): Promise<Set<string | null>> {
  if (keys.length === 0) return new Set()
  const rows = await db.selectFrom('jobs').select('dedupe_key').where('dedupe_key', 'in', keys).execute()
  return new Set(rows.map(({ dedupe_key: key }) => key))
}

/** The sequences with an unfinished job. */
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

/** Maximum number of keys or rows in one statement. */
const batchSize = 500

/** Frees the key when a job begins, so that later changes enqueue a new job. */
export const releaseDedupeKey = async ({ db }: Context, jobId: number): Promise<void> =>
  void (await db.updateTable('jobs').set({ dedupe_key: null }).where('id', '=', jobId).execute())

/**
 * Waiting jobs with these keys run at `at` if they were due later. Their order in a sequence stays.
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
