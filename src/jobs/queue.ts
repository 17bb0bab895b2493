// Durable jobs (DOMAIN 25.1): a row each, written in the transaction of the write that needs the work. How they are claimed and
// run is leases.ts and worker.ts.

import { type Context, now, type Services } from '../kernel/context.ts'
import { stamp } from '../kernel/runtime/clock.ts'
import { transaction } from '../kernel/write/write.ts'

/** What a job is told of its own run. */
export interface JobRun {
  id: number
  /** 1 for the first try. */
  attempt: number
  /** Whether it is buried when this try fails. */
  isLast: boolean
  /** Aborts when the worker stops, or has lost its lease. */
  signal: AbortSignal
  /** Whether this run still holds the job. Asked in the transaction that stores an outcome: one of a lost claim counts for nothing. */
  holdsLease: (ctx: Context) => Promise<boolean>
}

/** It is not done, but nothing failed: it runs again then, as the same try. */
export interface RunAgain {
  runAgainAt: Date
}

export interface JobKind<Payload extends object> {
  /** How it is stored: `emails.send`. */
  kind: string
  /** How many of the kind run at once in one worker. */
  concurrency: number
  /** Seconds behind the first, second … failed try, each varied by 10 %. It is buried after the try behind the last of them. */
  retryAfterSeconds: readonly number[]
  /** Left waiting while this is false, such as mail without a server to give it to. */
  isReady: (services: Services) => boolean
  /** It mails: without a server for mail it waits, which is no fault, and what fails is a fault of that server. */
  isMail: boolean
  // biome-ignore lint/suspicious/noConfusingVoidType: most jobs have nothing to say
  run: (ctx: Context, payload: Payload, job: JobRun) => Promise<RunAgain | void>
  /** In the transaction that buries it, or deletes it before its time. `cause` is a sentence. */
  onBuried?: (ctx: Context, payload: Payload, cause: string) => Promise<void>
  /**
   * In the transaction in which somebody wants one that is buried done after all: takes back what `buried` did. Answers another payload
   * when it needs one; throws 409 when there is nothing to do any more. A kind with `buried` and without this cannot be revived.
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

/** Thrown by a job that can never succeed: it is buried without further tries. */
export class BuryJob extends Error {}

export interface EnqueueOptions {
  /** No second job is made while one with this key is unfinished. */
  key?: string
  /** Runs behind all earlier jobs of the sequence. */
  sequence?: string
  runAt?: Date
}

/** All but `buried`: named, so that those who look for one by its sequence find it in the index. */
export const unfinishedStates = ['running', 'waiting', 'blocked'] as const

type Wanted<Payload extends object> = { payload: Payload } & EnqueueOptions

/** Enqueues in the transaction `ctx` is in, or in one of its own. Answers the id; null when there is one with the key. */
export const enqueue = async <Payload extends object>(
  ctx: Context,
  job: Pick<JobKind<Payload>, 'kind'>,
  payload: Payload,
  options: EnqueueOptions = {},
): Promise<number | null> => (await enqueueAll(ctx, job, [{ payload, ...options }]))[0] ?? null

/**
 * Many of one kind, in their order, with a few statements for all of them. Those whose key is taken are left out; answers the ids of
 * the others.
 */
export const enqueueAll = <Payload extends object>(
  ctx: Context,
  job: Pick<JobKind<Payload>, 'kind'>,
  wanted: readonly Wanted<Payload>[],
): Promise<number[]> =>
  transaction(ctx, async (ctx) => {
    const ids: number[] = []
    for (let from = 0; from < wanted.length; from += atOnce)
      ids.push(...(await insertAll(ctx, job.kind, wanted.slice(from, from + atOnce))))
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

/** Keys of jobs that are unfinished; one that is buried has none. */
async function takenOf({ db }: Context, keys: readonly string[]): Promise<Set<string | null>> {
  if (keys.length === 0) return new Set()
  const rows = await db.selectFrom('jobs').select('dedupe_key').where('dedupe_key', 'in', keys).execute()
  return new Set(rows.map(({ dedupe_key: key }) => key))
}

/** Sequences that have an unfinished job. */
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

/** Keys in one statement, and rows. */
const atOnce = 500

/** Said by a job that begins: what is enqueued with its key from now on is not for it. */
export const releaseDedupeKey = async ({ db }: Context, jobId: number): Promise<void> =>
  void (await db.updateTable('jobs').set({ dedupe_key: null }).where('id', '=', jobId).execute())

/** Jobs with these keys that wait for a later time than `at` run then; their order in a sequence stays. */
export const expedite = (ctx: Context, keys: readonly string[], at: Date = ctx.time): Promise<void> =>
  transaction(ctx, async (ctx) => {
    for (let from = 0; from < keys.length; from += atOnce)
      await ctx.db
        .updateTable('jobs')
        .set({ run_at: stamp(at), updated_at: now(ctx) })
        .where('dedupe_key', 'in', keys.slice(from, from + atOnce))
        .where('state', 'in', ['waiting', 'blocked'])
        .where('run_at', '>', stamp(at))
        .execute()
    ctx.unit.wakes = true
  })
