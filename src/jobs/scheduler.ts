// The scheduler: each minute the process with the lock enqueues every due job, once, however many
// times it was missed. node-cron computes the next minute in UTC, where no minute is skipped or
// repeated. The timer is the scheduler's own: after a jump of the clock a node-cron task would run
// for every skipped minute.
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
  /** Enqueues the due jobs once. False when another process is the scheduler. */
  tick(): Promise<boolean>
}

export const schedulerLock = 'scheduler'
/** Longer than the minute between two ticks, so that a live scheduler keeps the lock. */
export const schedulerLockMs = 90_000
/** The longest pause between two ticks, because timers do not follow jumps of the wall clock. */
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
    // On the first tick too, because the clock may have been set back while no scheduler ran.
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
      // Best effort: another process can take the lock of an ended one at once.
      await bestEffort(() => releaseLock(context(), schedulerLock, own))
    },
  }
}

/** Milliseconds until the next minute begins. */
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
    // A new schedule starts now: earlier due times are not caught up.
    if (!known) await ctx.db.insertInto('schedules').values({ name: schedule.name, last_due_at: due }).execute()
    else if (known.last_due_at !== due) {
      await ctx.db.updateTable('schedules').set({ last_due_at: due }).where('name', '=', schedule.name).execute()
      // A time before the last one means that the clock was set back, and the job has run already.
      if (known.last_due_at < due) await enqueue(ctx, schedule.job, { due }, { key: `schedule:${schedule.name}` })
    }
  })
