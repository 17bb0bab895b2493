// Links to a new password (DOMAIN 6.3, 15.6), for who has forgotten one and for who has none yet. The job that mails a link makes it
// as well, so that it is nowhere but in the mail: stored is its digest, and it stands behind the # of the address, which no log sees.
import { randomUUID } from 'node:crypto'
import { operations } from '../../contract/operations.gen.ts'
import { defineJob } from '../../jobs/queue.ts'
import { stamp } from '../../kernel/clock.ts'
import { type Context, now } from '../../kernel/context.ts'
import { escapeHtml, fold, oneLine } from '../../kernel/format.ts'
import { digest, newSecret } from '../../kernel/secrets.ts'
import { transaction } from '../../kernel/write.ts'
import { MailRefused } from '../../mail/outbound.ts'
import { patient } from '../../mail/patience.ts'

const minutes = 60

/** What is stored of a link: with the address it goes to, so that it is good for nothing once the account has another one. */
export const digestOf = (secret: string, email: string): string => digest(`${secret} ${fold(email)}`)

/** `email` is what somebody has typed who says to have forgotten the password; `user_id` a user who was made without one. */
type Wanted = { email: string } | { user_id: number }

export const passwordLink = defineJob<Wanted>({
  kind: 'authentication.password-link',
  retryAfter: [60, 300, 1800],
  isMail: true,
  async run(ctx, wanted, { signal }) {
    const user = await recipientOf(ctx, wanted)
    if (!user) return
    const secret = await issue(ctx, user)
    const { mailer, log, clock, config } = ctx.services
    try {
      await mailer.send(
        {
          messageId: `${randomUUID()}@${config.mailDomain}`,
          date: clock.now(),
          from: { address: config.mailFrom, name: config.mailFromName },
          to: [user.email],
          cc: [],
          bcc: [],
          ...mailOf(ctx, user, secret, 'user_id' in wanted),
          references: [],
          headers: { 'Auto-Submitted': 'auto-generated' },
          attachments: [],
        },
        patient(signal),
      )
    } catch (cause) {
      // What a mail server says often repeats the address, which is nobody's business.
      if (!(cause instanceof MailRefused)) throw new Error('The mail server did not take the mail.')
      log.warn({ user: user.id }, 'A mail with a link to a new password was refused by the mail server.')
    }
  },
})

interface User {
  id: number
  name: string
  email: string
}

/** The active user it is for; one who was invited and has a password by now needs none. */
async function recipientOf({ db }: Context, wanted: Wanted): Promise<User | undefined> {
  const active = db.selectFrom('users').select(['id', 'name', 'email']).where('status', '=', 1)
  if ('email' in wanted) return active.where('email_key', '=', fold(wanted.email)).executeTakeFirst()
  return active.where('id', '=', wanted.user_id).where('password_hash', 'is', null).executeTakeFirst()
}

/** A new one; older ones are good no longer. */
async function issue(ctx: Context, { id, email }: User): Promise<string> {
  const secret = newSecret()
  await transaction(ctx, async (ctx) => {
    await endLinks(ctx, id)
    await ctx.db
      .insertInto('password_resets')
      .values({
        user_id: id,
        secret_hash: digestOf(secret, email),
        expires_at: stamp(new Date(ctx.time.getTime() + minutes * 60_000)),
        created_at: now(ctx),
      })
      .execute()
  })
  return secret
}

export const endLinks = async ({ db }: Context, userId: number): Promise<void> =>
  void (await db.deleteFrom('password_resets').where('user_id', '=', userId).execute())

/** The link that this is the secret of, when it is good for the account with this address. */
export const linkOf = (ctx: Context, { email, token }: { email: string; token: string }) =>
  ctx.db
    .selectFrom('password_resets')
    .innerJoin('users', 'users.id', 'password_resets.user_id')
    .select(['password_resets.id', 'password_resets.user_id'])
    // The database compares digests, of which nobody can choose the next character.
    .where('password_resets.secret_hash', '=', digestOf(token, email))
    .where('password_resets.expires_at', '>', now(ctx))
    .where('users.email_key', '=', fold(email))
    .where('users.status', '=', 1)
    .executeTakeFirst()

function mailOf({ services }: Context, { name, email }: User, secret: string, isInvitation: boolean) {
  const { config } = services
  // Never the host of a request: that is the caller's to choose.
  const base = config.appUrl ?? `http://localhost:${config.port}`
  const page = `${base}${operations.getResetPasswordPage.path}`
  const link = `${page}#${new URLSearchParams({ token: secret, email })}`
  const signIn = `${base}${operations.getSession.path}`
  const [why, otherwise] = isInvitation
    ? [
        `an account was made for you at ${config.appName}, with this e-mail address. Choose a password here:`,
        `The link is good for ${minutes} minutes, once. Later, press "Forgot password?" on ${signIn} for another one.`,
      ]
    : [
        `somebody, probably you, has forgotten the password of your account at ${config.appName}. Set a new one here:`,
        `The link is good for ${minutes} minutes, once. If it was not you, there is nothing to do: the password stays as it is.`,
      ]
  const paragraphs = [`Hello ${oneLine(name)},`, why, link, otherwise]
  const html = paragraphs.map((each) => `<p>${each === link ? anchor(link) : escapeHtml(each)}</p>`).join('\n')
  return {
    subject: oneLine(isInvitation ? `Your account at ${config.appName}` : `A new password for ${config.appName}`),
    text: `${paragraphs.join('\n\n')}\n`,
    html,
  }
}

const anchor = (link: string): string => `<a href="${escapeHtml(link)}">${escapeHtml(link)}</a>`

export const jobs = [passwordLink]
