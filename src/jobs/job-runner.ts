// Runs one claimed job, renews the lease of the job meanwhile and stores the outcome. A failed job
// is retried. After the last attempt the job is buried: it stays until a user retries it.
import { type Context, type Services, systemContext } from '../kernel/context.ts'
import { yieldToEventLoop } from '../kernel/runtime/cooperative.ts'
import { bury, finish, holdsLease, type JobRow, leaseMs, postpone, renew } from './leases.ts'
import { type AnyJob, BuryJob } from './queue.ts'
import type { StorageRetry } from './storage-retry.ts'

const maxErrorLength = 500
/** The delay in seconds before the retry of a job that met a storage fault, such as a full disk. */
const storageRetrySeconds = 15
/**
 * The number of crashes in a row after which a job is buried, because the job is then the probable
 * cause.
 */
export const maxCrashes = 10

export interface JobRunner {
  /** Runs the job to its end and stores the outcome. */
  run(row: JobRow, stop: AbortController): Promise<void>
}

export interface JobRunnerOptions {
  readonly services: Services
  readonly jobs: readonly AnyJob[]
  readonly retry: StorageRetry
  readonly isStopping: () => boolean
}

/** A claimed job with its definition, for one run. */
interface Claim {
  readonly row: JobRow
  readonly job: AnyJob
  readonly payload: object
}

export function createJobRunner({ services, jobs, retry, isStopping }: JobRunnerOptions): JobRunner {
  const kinds = new Map(jobs.map((job) => [job.kind, job]))
  const context = (): Context => systemContext(services, 'api')

  async function run(row: JobRow, stop: AbortController): Promise<void> {
    const job = kinds.get(row.kind)
    if (!job) return
    const claim: Claim = { row, job, payload: JSON.parse(row.payload) as object }
    const lease = setInterval(() => {
      renew(context(), row).then(
        (isHeld) => isHeld || stop.abort(),
        () => undefined,
      )
    }, leaseMs / 3)
    try {
      await runClaimed(claim, stop.signal)
    } catch (cause) {
      await storeFailure(claim, cause)
    } finally {
      clearInterval(lease)
    }
  }

  async function runClaimed({ row, job, payload }: Claim, signal: AbortSignal): Promise<void> {
    // SQLite queries do not yield to the event loop, so without this pause a backlog of jobs would
    // keep requests waiting.
    await yieldToEventLoop()
    if (row.crashes >= maxCrashes) throw new BuryJob(row.last_error ?? 'It never came to an end.')
    const outcome = await job.run(context(), payload, {
      id: row.id,
      attempt: row.attempts,
      isLast: row.attempts > job.retryAfterSeconds.length,
      signal,
      holdsLease: (ctx) => holdsLease(ctx, row),
    })
    await retry.untilStored(() =>
      outcome
        ? postpone(context(), row, outcome.runAgainAt, { attempts: 0, last_error: null })
        : finish(context(), row),
    )
  }

  async function storeFailure(claim: Claim, cause: unknown): Promise<void> {
    const { row, job } = claim
    // The log fields of a job. The message of a BuryJob may contain texts of users, so the job
    // stores it and the log omits it.
    const about = { job: row.id, kind: row.kind, attempt: row.attempts }
    try {
      // A job that stops with the worker or meets a storage fault does not count as failed.
      const isTransient = retry.isTransient(cause)
      if ((isStopping() || isTransient) && !(cause instanceof BuryJob)) {
        const at = isStopping() ? context().time : jitteredDelay(context().time, storageRetrySeconds)
        return await retry.untilStored(() => postpone(context(), row, at, { attempts: row.attempts - 1 }))
      }
      const delay = job.retryAfterSeconds[row.attempts - 1]
      if (cause instanceof BuryJob || delay === undefined) {
        services.log.error(cause instanceof BuryJob ? about : { ...about, err: cause }, 'A job was buried.')
        return await retry.untilStored(() => buryClaim(claim, sentenceOf(cause), about))
      }
      services.log.warn(about, 'A job failed and will be tried again.')
      await retry.untilStored(() =>
        postpone(context(), row, jitteredDelay(context().time, delay), { last_error: sentenceOf(cause) }),
      )
    } catch (error) {
      // The lease of the job expires, and a worker then claims the job again.
      services.log.error({ ...about, err: error }, 'The outcome of a job could not be stored.')
    }
  }

  /**
   * Buries the job and runs its `onBuried` hook. If the hook fails, buries the job without the
   * hook.
   */
  async function buryClaim({ row, job, payload }: Claim, sentence: string, about: object): Promise<void> {
    const onBuried = (ctx: Context): Promise<void> => job.onBuried?.(ctx, payload, sentence) ?? Promise.resolve()
    try {
      await bury(context(), row, sentence, onBuried)
    } catch (error) {
      if (retry.isTransient(error)) throw error
      services.log.error({ ...about, err: error }, 'A job was buried, but its onBuried hook failed.')
      await bury(context(), row, sentence)
    }
  }

  return { run }
}

/**
 * Returns `time` plus the delay. The delay varies by 10 %, so that jobs that failed together do not
 * run together again.
 */
function jitteredDelay(time: Date, seconds: number): Date {
  const share = 0.9 + Math.random() * 0.2
  return new Date(time.getTime() + seconds * 1000 * share)
}

const sentenceOf = (cause: unknown): string =>
  (cause instanceof Error ? cause.message : String(cause)).replaceAll(/\s+/g, ' ').slice(0, maxErrorLength)
