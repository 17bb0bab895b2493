// The worker (DOMAIN 25.1): feeds the readers of the event log, claims what is due and runs it, as many at once as each kind allows.
// It is woken by commits of its own process, and looks by itself every second for those of others.
import { type Context, type Services, systemContext } from '../kernel/context.ts'
import { yieldToEventLoop } from '../kernel/runtime/cooperative.ts'
import { newOwnerId } from '../kernel/runtime/process-identity.ts'
import { createEventDispatcher, type EventConsumer } from './event-consumers.ts'
import { bury, claim, finish, holdsLease, type JobRow, leaseMs, postpone, releaseExpired, renew } from './leases.ts'
import { acquireLock } from './locks.ts'
import { type AnyJob, BuryJob } from './queue.ts'
import { createStorageRetry } from './storage-retry.ts'

export interface Worker {
  start(): void
  /** Claims no more, tells what runs to stop, and waits for it up to `graceMs`; what is left waits for another worker. */
  stop(graceMs?: number): Promise<void>
  /** Something may be due. */
  wake(): void
  /** Feeds readers and runs jobs until nothing is due; for tests and commands. */
  drain(): Promise<void>
}

const pollMs = 1000
const wakeMs = 10
const presenceMs = 20_000
const maxClaimed = 50
const maxErrorLength = 500
/** When a job is tried again that met a full disk or a locked database. */
const passesSeconds = 15
/** Of one job, one after another: then it is what ends the workers. */
export const maxCrashes = 10

export function createWorker(services: Services, jobs: readonly AnyJob[], readers: readonly EventConsumer[]): Worker {
  const own = newOwnerId()
  const feeder = createEventDispatcher(services, readers)
  const kinds = new Map(jobs.map((job) => [job.kind, job]))
  const running = new Map<number, { done: Promise<void>; stop: AbortController }>()
  const counts = new Map<string, number>()
  let timer: NodeJS.Timeout | undefined
  let presence: NodeJS.Timeout | undefined
  let isOn = false
  let isBusy = false
  let isWoken = false
  let isDue = false
  let isStopping = false
  /** The look that is under way. */
  let looking: Promise<void> = Promise.resolve()

  const context = (): Context => systemContext(services, 'api')
  const { isTransient: isPassing, untilStored: stored } = createStorageRetry(services, () => isStopping)
  const ids = (): ReadonlySet<number> => new Set(running.keys())

  const free = (): Map<string, number> =>
    new Map(
      jobs.map(({ kind, concurrency: atOnce, isReady }) => [
        kind,
        isReady(services) ? atOnce - (counts.get(kind) ?? 0) : 0,
      ]),
    )

  /** One look at everything. True when something was found. */
  async function round(): Promise<boolean> {
    let found = false
    if (await guarded('events', feeder.dispatch)) found = true
    const claimed = await guarded('claim', async () => {
      await releaseExpired(context(), { running: ids() })
      return isStopping ? [] : claim(context(), own, free(), maxClaimed, ids())
    })
    for (const row of claimed || []) launch(row)
    return found || (claimed || []).length > 0
  }

  async function guarded<T>(what: string, work: () => Promise<T>): Promise<T | false> {
    try {
      return await work()
    } catch (cause) {
      if (!isPassing(cause)) services.log.error({ err: cause, what }, 'The worker failed to look for work.')
      return false
    }
  }

  function launch(row: JobRow): void {
    counts.set(row.kind, (counts.get(row.kind) ?? 0) + 1)
    const stop = new AbortController()
    // Claimed while the worker was told to stop.
    if (isStopping) stop.abort()
    const done = run(row, stop).finally(() => {
      counts.set(row.kind, (counts.get(row.kind) ?? 1) - 1)
      running.delete(row.id)
      wake()
    })
    running.set(row.id, { done, stop })
  }

  const allDone = (): Promise<unknown> => Promise.all([...running.values()].map(({ done }) => done))

  async function run(row: JobRow, stop: AbortController): Promise<void> {
    const job = kinds.get(row.kind)
    if (!job) return
    const payload = JSON.parse(row.payload) as object
    const giveUp = (cause: string): Promise<void> =>
      bury(context(), row, cause, (ctx) => job.onBuried?.(ctx, payload, cause) ?? Promise.resolve())
    const lease = setInterval(() => {
      renew(context(), row).then(
        (isOurs) => isOurs || stop.abort(),
        () => undefined,
      )
    }, leaseMs / 3)
    try {
      // The database answers without leaving this turn of the event loop: a backlog must not keep requests waiting.
      await yieldToEventLoop()
      if (row.crashes >= maxCrashes) throw new BuryJob(row.last_error ?? 'It never came to an end.')
      const outcome = await job.run(context(), payload, {
        id: row.id,
        attempt: row.attempts,
        isLast: row.attempts > job.retryAfterSeconds.length,
        signal: stop.signal,
        holdsLease: (ctx) => holdsLease(ctx, row),
      })
      await stored(() =>
        outcome
          ? postpone(context(), row, outcome.runAgainAt, { attempts: 0, last_error: null })
          : finish(context(), row),
      )
    } catch (cause) {
      await failed(row, job, cause, giveUp)
    } finally {
      clearInterval(lease)
    }
  }

  async function failed(row: JobRow, job: AnyJob, cause: unknown, giveUp: (cause: string) => Promise<void>) {
    const sentence = sentenceOf(cause)
    // The sentence stays with the job: it may quote what others have said or written.
    const about = { job: row.id, kind: row.kind, attempt: row.attempts }
    try {
      // What was stopped with the worker has not failed, nor what found no room on the disk.
      const isPassed = isPassing(cause)
      if ((isStopping || isPassed) && !(cause instanceof BuryJob)) {
        const at = isStopping ? context().time : later(context().time, passesSeconds)
        return await stored(() => postpone(context(), row, at, { attempts: row.attempts - 1 }))
      }
      const delay = job.retryAfterSeconds[row.attempts - 1]
      if (cause instanceof BuryJob || delay === undefined) {
        services.log.error({ ...about, err: cause }, 'A job was buried.')
        return await stored(() =>
          giveUp(sentence).catch((error: unknown) => {
            if (isPassing(error)) throw error
            services.log.error({ ...about, err: error }, 'A job was buried without its last words.')
            return bury(context(), row, sentence)
          }),
        )
      }
      services.log.warn(about, 'A job failed and will be tried again.')
      await stored(() => postpone(context(), row, later(context().time, delay), { last_error: sentence }))
    } catch (error) {
      // Its lease ends by itself.
      services.log.error({ ...about, err: error }, 'What became of a job could not be stored.')
    }
  }

  function look(): Promise<void> {
    if (isOn && !isBusy) looking = lookAround()
    return looking
  }

  async function lookAround(): Promise<void> {
    isBusy = true
    clearTimeout(timer)
    try {
      do {
        isWoken = false
        while (isOn && (await round())) isWoken = false
      } while (isOn && isWoken)
    } finally {
      isBusy = false
      if (isOn) timer = setTimeout(() => void look(), pollMs)
    }
  }

  function wake(): void {
    isWoken = true
    // Not at once: what is written together is looked at together.
    if (!isOn || isBusy || isDue) return
    isDue = true
    setTimeout(() => {
      isDue = false
      void look()
    }, wakeMs)
  }

  const present = (): Promise<unknown> =>
    guarded('presence', () => acquireLock(context(), 'worker', own, 3 * presenceMs, true))

  return {
    start() {
      isOn = true
      isStopping = false
      void guarded('start', () => releaseExpired(context(), { running: ids(), isThorough: true })).then(look)
      void present()
      presence = setInterval(() => void present(), presenceMs)
    },
    async stop(graceMs = 5000) {
      isOn = false
      isStopping = true
      clearTimeout(timer)
      clearInterval(presence)
      for (const { stop } of running.values()) stop.abort()
      const grace = new Promise<void>((resolve) => setTimeout(resolve, graceMs).unref())
      await Promise.race([looking.then(allDone), grace])
    },
    wake,
    async drain() {
      await releaseExpired(context(), { running: ids(), isThorough: true })
      for (;;) {
        const found = await round()
        if (running.size > 0) await allDone()
        else if (!found) return
      }
    },
  }
}

/** Some time later, varied by a tenth, so that what failed together does not come again together. */
function later(time: Date, seconds: number): Date {
  const share = 0.9 + Math.random() * 0.2
  return new Date(time.getTime() + seconds * 1000 * share)
}

const sentenceOf = (cause: unknown): string =>
  (cause instanceof Error ? cause.message : String(cause)).replaceAll(/\s+/g, ' ').slice(0, maxErrorLength)
