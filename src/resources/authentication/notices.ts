// Notices to users about sign-ins: a sign-in from a new device, and many failed sign-ins. A user
// gets at most one notice of each kind a day.
import { defineJob, enqueue } from '../../jobs/queue.ts'
import { userAgentOf } from '../../kernel/auth/sessions.ts'
import { type Context, now } from '../../kernel/context.ts'
import { daysAfter } from '../../kernel/runtime/clock.ts'
import { oneLine } from '../../kernel/values/format.ts'
import { momentText } from '../../kernel/values/moments.ts'
import { accountMailFailed, pagesOf, type Recipient, sendAccountMail } from './account-mail.ts'

interface Notice {
  kind: 'device' | 'guessing'
  user_id: number
  at: string
  ip: string | null
  user_agent: string | null
}

const columns = { device: 'device_notice_at', guessing: 'guessing_notice_at' } as const

export const signInNotice = defineJob<Notice>({
  kind: 'authentication.notice',
  retryAfterSeconds: [60, 300, 1800],
  isMail: true,
  async run(ctx, notice, { signal }) {
    const column = columns[notice.kind]
    const user = await ctx.db
      .selectFrom('users')
      .select(['id', 'name', 'email', column])
      .where('id', '=', notice.user_id)
      .where('is_active', '=', 1)
      .executeTakeFirst()
    if (!user || !isDue(ctx, user[column])) return
    try {
      await sendAccountMail(ctx, user, await composeNotice(ctx, notice, user), signal)
    } catch (cause) {
      accountMailFailed(ctx, user.id, cause, 'a notice about a sign-in')
    }
    await ctx.db
      .updateTable('users')
      .set({ [column]: now(ctx) })
      .where('id', '=', user.id)
      .execute()
  },
})

const isDue = (ctx: Context, last: string | null): boolean => last === null || last <= daysAfter(ctx.time, -1)

/** Enqueues a notice to a user, unless one of this kind was sent within the last day. */
export async function notifyUser(ctx: Context, userId: number, kind: Notice['kind']): Promise<void> {
  if (!ctx.services.mailer.isConfigured) return
  const user = await ctx.db.selectFrom('users').select(columns[kind]).where('id', '=', userId).executeTakeFirst()
  if (!user || !isDue(ctx, user[columns[kind] as keyof typeof user])) return
  const payload = { kind, user_id: userId, at: now(ctx), ip: ctx.ip, user_agent: userAgentOf(ctx) }
  await enqueue(ctx, signInNotice, payload, { key: `sign-in notice ${kind} ${userId}` })
}

async function composeNotice(ctx: Context, { kind, at, ip, user_agent }: Notice, { email }: Recipient) {
  const texts = await ctx.services.textsFor(ctx)
  const { appName: app, timezone } = ctx.services.config
  const { signIn } = pagesOf(ctx)
  const moment = momentText(at, { zone: timezone, locale: texts.locale })
  const renew = texts.say('account.renew')
  const subject = texts.say(`account.${kind}_subject`, { app })
  if (kind === 'guessing') {
    const hint = texts.say('account.guessing_hint', { renew })
    const said = texts.say('account.guessing', { email, app, moment })
    return { subject, paragraphs: [said, texts.say('account.guessing_effect'), hint, signIn], texts }
  }
  const program = user_agent ? oneLine(user_agent) : ''
  const origin = ip && program ? 'both' : ip ? 'address' : program ? 'program' : 'nothing'
  const said = texts.say('account.device', { email, app, moment, origin, ip: ip ?? '', program })
  return { subject, paragraphs: [said, texts.say('account.device_hint', { renew }), signIn], texts }
}

export const jobs = [signInNotice]
