// Durable jobs (DOMAIN 25.1): a row each, written in the transaction of the write that needs the work. How they are claimed and
// run is claims.ts and worker.ts.
import { stamp } from '../kernel/clock.ts'
import { type Context, now, type Services } from '../kernel/context.ts'
import { transaction } from '../kernel/write.ts'

/** What a job is told of its own run. */
export interface Running {
  id: number
  /** 1 for the first try. */
  attempt: number
  /** Whether it is buried when this try fails. */
  isLast: boolean
  /** Aborts when the worker stops, or has lost its lease. */
  signal: AbortSignal
}

/** It is not done, but nothing failed: it runs again then, as the same try. */
export interface Later {
  again: Date
}

export interface JobKind<Payload extends object> {
  /** How it is stored: `emails.send`. */
  kind: string
  /** How many of the kind run at once in one worker. */
  atOnce: number
  /** Seconds behind the first, second … failed try, each varied by 10 %. It is buried after the try behind the last of them. */
  retryAfter: readonly number[]
  /** Left waiting while this is false, such as mail without a server to give it to. */
  isReady: (services: Services) => boolean
  // biome-ignore lint/suspicious/noConfusingVoidType: most jobs have nothing to say
  run: (ctx: Context, payload: Payload, job: Running) => Promise<Later | void>
  /** In the transaction that buries it. `cause` is a sentence. */
  buried?: (ctx: Context, payload: Payload, cause: string) => Promise<void>
}

// biome-ignore lint/suspicious/noExplicitAny: a list of jobs with payloads of their own
export type AnyJob = JobKind<any>

type Defined<Payload extends object> = Pick<JobKind<Payload>, 'kind' | 'run'> & Partial<JobKind<Payload>>

export const defineJob = <Payload extends object>(job: Defined<Payload>): JobKind<Payload> => ({
  atOnce: 1,
  retryAfter: [60, 300, 1800, 7200],
  isReady: () => true,
  ...job,
})

/** Thrown by a job that can never succeed: it is buried without further tries. */
export class Bury extends Error {}

export interface Enqueued {
  /** No second job is made while one with this key is unfinished. */
  key?: string
  /** Runs behind all earlier jobs of the sequence. */
  sequence?: string
  runAt?: Date
}

/** Enqueues in the transaction `ctx` is in, or in one of its own. Answers the id; null when there is one with the key. */
export function enqueue<Payload extends object>(
  ctx: Context,
  job: Pick<JobKind<Payload>, 'kind'>,
  payload: Payload,
  { key, sequence, runAt = ctx.time }: Enqueued = {},
): Promise<number | null> {
  return transaction(ctx, async ({ db, unit }) => {
    if (key !== undefined) {
      const same = await db.selectFrom('jobs').select('id').where('dedupe_key', '=', key).executeTakeFirst()
      if (same) return null
    }
    const before =
      sequence === undefined
        ? undefined
        : await db
            .selectFrom('jobs')
            .select('id')
            .where('sequence', '=', sequence)
            .where('state', '<>', 'buried')
            .executeTakeFirst()
    const { id } = await db
      .insertInto('jobs')
      .values({
        kind: job.kind,
        payload: JSON.stringify(payload),
        state: before ? 'blocked' : 'waiting',
        dedupe_key: key ?? null,
        sequence: sequence ?? null,
        run_at: stamp(runAt),
        created_at: now(ctx),
        updated_at: now(ctx),
      })
      .returning('id')
      .executeTakeFirstOrThrow()
    unit.wakes = true
    return id
  })
}
