// The scheduler: each minute whoever holds the lock enqueues what has become due since it was due last, once, however often that
// was missed. node-cron gives the tick in UTC, where no minute is skipped or doubled.
import { schedule as cron, type ScheduledTask } from 'node-cron'
import { stamp } from '../kernel/clock.ts'
import { type Context, type Services, systemContext } from '../kernel/context.ts'
import { ownName } from '../kernel/owners.ts'
import { ifItCan } from '../kernel/unavailable.ts'
import { transaction } from '../kernel/write.ts'
import { hold, letGo } from './lock.ts'
import { enqueue } from './queue.ts'
import { lastDue, type Schedule } from './schedules.ts'

export interface Scheduler {
  start(): void
  stop(): Promise<void>
  /** Looks once. False when another process is the scheduler. */
  tick(): Promise<boolean>
}

export const schedulerLock = 'scheduler'
/** From one look on; whoever looks each minute keeps it. */
export const schedulerLockMs = 90_000

export function createScheduler(services: Services, schedules: readonly Schedule[]): Scheduler {
  const own = ownName()
  let task: ScheduledTask | undefined
  const context = (): Context => systemContext(services, 'api')

  async function tick(): Promise<boolean> {
    if (!(await hold(context(), schedulerLock, own, schedulerLockMs))) return false
    for (const each of schedules) if (each.isWanted?.(services) ?? true) await look(context(), each)
    return true
  }

  const guarded = (): Promise<void> =>
    tick().then(
      () => undefined,
      (cause: unknown) => services.log.error({ err: cause }, 'The scheduler failed; it looks again in a minute.'),
    )

  return {
    tick,
    start() {
      task = cron('* * * * *', guarded, { timezone: 'UTC', noOverlap: true })
      void guarded()
    },
    async stop() {
      await task?.destroy()
      // Of a process that has ended it can be taken at once.
      await ifItCan(() => letGo(context(), schedulerLock, own))
    },
  }
}

const look = (ctx: Context, schedule: Schedule): Promise<void> =>
  transaction(ctx, async (ctx) => {
    const due = stamp(lastDue(schedule, ctx.time, ctx.services.config.timezone))
    const known = await ctx.db
      .selectFrom('schedules')
      .select('last_due_at')
      .where('name', '=', schedule.name)
      .executeTakeFirst()
    // What was due before there was an installation is not caught up.
    if (!known) await ctx.db.insertInto('schedules').values({ name: schedule.name, last_due_at: due }).execute()
    else if (known.last_due_at < due) {
      await ctx.db.updateTable('schedules').set({ last_due_at: due }).where('name', '=', schedule.name).execute()
      await enqueue(ctx, schedule.job, { due }, { key: `schedule:${schedule.name}` })
    }
  })
