// The scheduler: each minute the process with the lock enqueues every job that has become due, once, however often it was missed.
// node-cron says when the next minute begins, in UTC, where no minute is skipped or doubled. The timer is ours: a started task of
// node-cron walks through every minute that a clock which jumps ahead leaves out, and freezes the server.
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
  /** Looks once. False when another process is the scheduler. */
  tick(): Promise<boolean>
}

export const schedulerLock = 'scheduler'
/** From one look on; a scheduler that looks each minute keeps it. */
export const schedulerLockMs = 90_000
/** However far the clock jumps, the next look is never later than this. Timers do not follow the clock of the day. */
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
    // Also with the first: the clock may have been set back while nobody looked.
    if (at < lastTickAt) await rescheduleFutureJobs(context())
    lastTickAt = at
    for (const each of schedules) if (each.isWanted?.(services) ?? true) await enqueueDue(context(), each)
    return true
  }

  const guarded = (): Promise<void> =>
    tick().then(
      () => undefined,
      (cause: unknown) => services.log.error({ err: cause }, 'The scheduler failed; it looks again in a minute.'),
    )

  async function look(): Promise<void> {
    await guarded()
    if (task !== undefined) timer = setTimeout(() => void look(), pauseOf(task))
  }

  return {
    tick,
    start() {
      task = createTask('* * * * *', guarded, { timezone: 'UTC' })
      void look()
    },
    async stop() {
      clearTimeout(timer)
      const last = task
      task = undefined
      await last?.destroy()
      // Of a process that has ended it can be taken at once.
      await bestEffort(() => releaseLock(context(), schedulerLock, own))
    },
  }
}

/** Until the next minute begins. */
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
    // What was due before there was an installation is not caught up.
    if (!known) await ctx.db.insertInto('schedules').values({ name: schedule.name, last_due_at: due }).execute()
    else if (known.last_due_at !== due) {
      await ctx.db.updateTable('schedules').set({ last_due_at: due }).where('name', '=', schedule.name).execute()
      // After a clock was set back this has been done already.
      if (known.last_due_at < due) await enqueue(ctx, schedule.job, { due }, { key: `schedule:${schedule.name}` })
    }
  })
