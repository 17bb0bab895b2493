// Enqueues due jobs each minute, in the one process that has the scheduler lock. A job that was
// missed several times is enqueued once. node-cron only computes the next minute, in UTC, where no
// minute is skipped or repeated. A task of node-cron would run for every minute that a clock jump
// skips, so this file has its own timer.
import { createTask, type ScheduledTask } from 'node-cron'
import { type Context, type Services, systemContext } from '../kernel/context.ts'
import { stamp, systemClock } from '../kernel/runtime/clock.ts'
import { newOwnerId } from '../kernel/runtime/process-identity.ts'
import { bestEffort } from '../kernel/runtime/unavailable.ts'
import { transaction } from '../kernel/write/write.ts'
import { rescheduleFutureJobs } from './clock-setback.ts'
import { acquireLock, releaseLock } from './locks.ts'
import { enqueue } from './queue.ts'
import { lastDue, type Schedule } from './schedules.ts'

export interface Scheduler {
  start(): void
  stop(): Promise<void>
  /** Enqueues the due jobs once. Returns false when another process has the scheduler lock. */
  tick(): Promise<boolean>
}

export const schedulerLock = 'scheduler'
/**
 * The duration of the scheduler lock in milliseconds. The duration is longer than the minute
 * between two ticks, so that a live scheduler keeps the lock.
 */
export const schedulerLockMs = 90_000
/**
 * The longest pause between two ticks in milliseconds. The pause is limited, because timers do not
 * follow jumps of the wall clock.
 */
const maxPauseMs = 60_000

export function createScheduler(services: Services, schedules: readonly Schedule[]): Scheduler {
  const own = newOwnerId()
  let task: ScheduledTask | undefined
  let timer: NodeJS.Timeout | undefined
  let lastTickAt = Number.POSITIVE_INFINITY
  const context = (): Context => systemContext(services, 'api')

  async function tick(): Promise<boolean> {
    if (!(await acquireLock(context(), schedulerLock, own, schedulerLockMs))) return false
    const at = services.clock.now().getTime()
    // Also runs on the first tick, because the clock may have been set back while no scheduler ran.
    if (at < lastTickAt) await rescheduleFutureJobs(context())
    lastTickAt = at
    for (const each of schedules) if (each.isWanted?.(services) ?? true) await enqueueDue(context(), each)
    return true
  }

  const tickSafely = (): Promise<void> =>
    tick().then(
      () => undefined,
      (cause: unknown) => services.log.error({ err: cause }, 'The scheduler failed; it tries again in a minute.'),
    )

  async function run(): Promise<void> {
    await tickSafely()
    if (task !== undefined) timer = setTimeout(() => void run(), pauseOf(task))
  }

  return {
    tick,
    start() {
      task = createTask('* * * * *', tickSafely, { timezone: 'UTC' })
      void run()
    },
    async stop() {
      clearTimeout(timer)
      const last = task
      task = undefined
      await last?.destroy()
      // A failed release does not matter, because another process can take the lock of an ended
      // process at once.
      await bestEffort(() => releaseLock(context(), schedulerLock, own))
    },
  }
}

/** Returns the milliseconds until the next minute begins, at most `maxPauseMs`. */
function pauseOf(task: ScheduledTask): number {
  const [next] = task.getNextRuns(1)
  const ms = next === undefined ? maxPauseMs : next.getTime() - systemClock.now().getTime()
  return Math.min(Math.max(ms, 1), maxPauseMs)
}

const enqueueDue = (ctx: Context, schedule: Schedule): Promise<void> =>
  transaction(ctx, async (ctx) => {
    const due = stamp(lastDue(schedule, ctx.time, ctx.services.config.timezone))
    const known = await ctx.db
      .selectFrom('schedules')
      .select('last_due_at')
      .where('name', '=', schedule.name)
      .executeTakeFirst()
    // A new schedule starts now. Its earlier due times are not caught up.
    if (!known) await ctx.db.insertInto('schedules').values({ name: schedule.name, last_due_at: due }).execute()
    else if (known.last_due_at !== due) {
      await ctx.db.updateTable('schedules').set({ last_due_at: due }).where('name', '=', schedule.name).execute()
      // A due time before the stored one means that the clock was set back. The job has then run
      // already.
      const payload = { due, since: known.last_due_at }
      if (known.last_due_at < due) await enqueue(ctx, schedule.job, payload, { key: `schedule:${schedule.name}` })
    }
  })
