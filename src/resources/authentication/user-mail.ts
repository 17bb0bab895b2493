// Mails to users about their work: reminders of tasks, and the notices of workflows. The write that
// causes a mail enqueues it, so it is sent once; after a crash of the server while it is being
// sent, it may arrive twice, with the same Message-ID.
import { defineJob, enqueueAll } from '../../jobs/queue.ts'
import type { Context } from '../../kernel/context.ts'
import { type AccountMail, accountMailFailed, sendAccountMail } from './account-mail.ts'

interface UserMail extends Omit<AccountMail, 'texts'> {
  user_id: number
  messageKey: string
}

export const userMail = defineJob<UserMail>({
  kind: 'users.mail',
  retryAfterSeconds: [60, 300, 1800, 7200],
  isMail: true,
  async run(ctx, { user_id: id, ...mail }, { signal }) {
    const users = ctx.db.selectFrom('users').select(['id', 'name', 'email']).where('id', '=', id)
    const user = await users.where('is_active', '=', 1).executeTakeFirst()
    if (!user) return
    try {
      await sendAccountMail(ctx, user, { ...mail, texts: await ctx.services.textsFor(ctx) }, signal)
    } catch (cause) {
      accountMailFailed(ctx, id, cause, 'a mail to a user')
    }
  },
})

/** Enqueues a mail to each user in the transaction of `ctx`. Inactive users get none. */
export const mailUsers = (ctx: Context, mails: readonly UserMail[]): Promise<number[]> =>
  enqueueAll(
    ctx,
    userMail,
    mails.map((payload) => ({ payload, key: `user-mail:${payload.messageKey}` })),
  )
