// Reminds the owners of open tasks by e-mail. The transaction that enqueues a mail marks its task,
// so a task is reminded of once for each `remind_at`, whichever process runs the job.

import { sql } from 'kysely'
import { defineJob } from '../../jobs/queue.ts'
import type { Schedule } from '../../jobs/schedules.ts'
import { type Context, now } from '../../kernel/context.ts'
import { yieldToEventLoop } from '../../kernel/runtime/cooperative.ts'
import { momentText } from '../../kernel/values/moments.ts'
import type { Snapshot } from '../../kernel/write/events.ts'
import { emitOnly, transaction } from '../../kernel/write/write.ts'
import type { Texts } from '../../texts/texts.ts'
import { mailUsers } from '../authentication/user-mail.ts'
import { activities } from './resource.ts'

const atOnce = 100

const remind = defineJob<{ due: string }>({
  kind: 'activities.remind',
  async run(ctx, _payload, { signal }) {
    while (!signal.aborted && (await remindSome(ctx)) === atOnce) await yieldToEventLoop()
  },
})

/** Returns the number of reminders. A task without an active owner waits for one. */
const remindSome = (ctx: Context): Promise<number> =>
  transaction(ctx, async (ctx) => {
    const isOpen = sql<boolean>`activities.is_done = ${sql.raw(ctx.services.store.dialect.flagLiteral(false))}`
    const rows = await ctx.db
      .selectFrom('activities')
      .innerJoin('users', 'users.id', 'activities.user_id')
      .select(['activities.id', 'activities.title', 'activities.due_at', 'activities.remind_at', 'users.id as user'])
      .where('activities.remind_at', '<=', now(ctx))
      .where('activities.reminded_at', 'is', null)
      .where(isOpen)
      .where('users.is_active', '=', 1)
      .orderBy('activities.remind_at')
      .orderBy('activities.id')
      .limit(atOnce)
      .execute()
    if (rows.length === 0) return 0
    const ids = rows.map(({ id }) => id)
    await ctx.db
      .updateTable('activities')
      .set({ reminded_at: now(ctx) })
      .where('id', 'in', ids)
      .execute()
    const texts = await ctx.services.textsFor(ctx)
    await mailUsers(
      ctx,
      rows.map((row) => reminderOf(ctx, texts, row)),
    )
    const shown = await activities.getMany(ctx, ids)
    for (const [id, activity] of shown)
      await emitOnly(ctx, 'activity.reminded', { entity: 'activities', id, shown: activity as Snapshot })
    return rows.length
  })

interface Row {
  id: number
  title: string | null
  due_at: string | null
  remind_at: string | null
  user: number
}

function reminderOf(ctx: Context, texts: Texts, { id, title, due_at, remind_at, user }: Row) {
  const { appName: app, timezone: zone } = ctx.services.config
  const named = { title: title ?? '', app }
  const lines = [texts.say('account.reminder', named)]
  return {
    user_id: user,
    messageKey: `reminder-${id}-${Date.parse(remind_at ?? '')}`,
    subject: texts.say('account.reminder_subject', named),
    paragraphs:
      due_at === null
        ? lines
        : [...lines, texts.say('account.reminder_due', { moment: momentText(due_at, { zone, locale: texts.locale }) })],
  }
}

export const jobs = [remind]

export const schedules: readonly Schedule[] = [
  { name: 'activities:remind', at: 5, job: remind, isWanted: ({ mailer }) => mailer.isConfigured },
]
