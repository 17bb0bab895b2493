// Links to set a password (DOMAIN 6.3, 15.6), for a reset or an invitation. The mail job creates
// the secret, so it exists only in the mail: the database has its digest, and it follows the # of
// the URL, which no log records.
import { randomUUID } from 'node:crypto'
import { operations } from '../../contract/operations.gen.ts'
import { defineJob } from '../../jobs/queue.ts'
import { isHome } from '../../kernel/auth/brute-force-delay.ts'
import { newSecret, sha256Hex } from '../../kernel/auth/secrets.ts'
import { type Context, now } from '../../kernel/context.ts'
import { stamp } from '../../kernel/runtime/clock.ts'
import { escapeHtml, fold, oneLine } from '../../kernel/values/format.ts'
import { MailRefused } from '../../mail/outbound.ts'
import { withGracePeriod } from '../../mail/send-grace.ts'

/** Lifetimes: a reset is requested and used at once, an invitation arrives unannounced. */
const lifetimes = {
  reset: { hours: 1, text: '60 minutes' },
  invitation: { hours: 72, text: '72 hours' },
}
const hourMs = 60 * 60 * 1000
/**
 * Mails per hour that anyone can request for an account. A link lives at least an hour, so the
 * owner always has a valid one.
 */
const maxMailsPerHour = 5

/**
 * The stored digest includes the address, so a link becomes invalid when the account's address
 * changes.
 */
export const digestOf = (secret: string, email: string): string => sha256Hex(`${secret} ${fold(email)}`)

/**
 * `email`: a reset for this typed address, requested from `network`; `user_id`: an invitation. Jobs
 * of an earlier version have no `network`.
 */
type LinkRequest = { email: string; network?: string } | { user_id: number }

export const passwordLink = defineJob<LinkRequest>({
  kind: 'authentication.password-link',
  retryAfterSeconds: [60, 300, 1800],
  isMail: true,
  async run(ctx, wanted, { signal }) {
    const user = await recipientOf(ctx, wanted)
    if (!user || (await isMailLimitReached(ctx, user, wanted))) return
    const kind = 'user_id' in wanted ? 'invitation' : 'reset'
    const { id, secret } = await createLink(ctx, user, lifetimes[kind].hours)
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
          ...composeMail(ctx, user, secret, kind),
          references: [],
          headers: { 'Auto-Submitted': 'auto-generated' },
          attachments: [],
        },
        withGracePeriod(signal),
      )
    } catch (cause) {
      // The mail was not sent, so the link does not count.
      await ctx.db.deleteFrom('password_resets').where('id', '=', id).execute()
      // The mail server's message often repeats the address, so it is not logged.
      if (!(cause instanceof MailRefused)) throw new Error('The mail server did not take the mail.')
      log.warn({ user: user.id }, 'The mail server refused a mail with a password link.')
    }
  },
})

interface User {
  id: number
  name: string
  email: string
}

/** The active user who gets the mail. An invited user who has a password by now gets none. */
async function recipientOf({ db }: Context, wanted: LinkRequest): Promise<User | undefined> {
  const active = db.selectFrom('users').select(['id', 'name', 'email']).where('status', '=', 1)
  if ('email' in wanted) return active.where('email_key', '=', fold(wanted.email)).executeTakeFirst()
  return active.where('id', '=', wanted.user_id).where('password_hash', 'is', null).executeTakeFirst()
}

/**
 * Whether the hourly limit is reached. It does not apply to a network from which the account has
 * signed in before, so attackers cannot use up the owner's mails.
 */
async function isMailLimitReached(ctx: Context, { id }: User, wanted: LinkRequest): Promise<boolean> {
  if (!('email' in wanted)) return false
  const { mails } = await ctx.db
    .selectFrom('password_resets')
    .select((eb) => eb.fn.countAll<number>().as('mails'))
    .where('user_id', '=', id)
    .where('created_at', '>', stamp(new Date(ctx.time.getTime() - hourMs)))
    .executeTakeFirstOrThrow()
  return Number(mails) >= maxMailsPerHour && !(await isHome(ctx, { userId: id, network: wanted.network ?? '' }))
}

/** Creates a link; earlier links stay valid until one is used. */
async function createLink(ctx: Context, { id, email }: User, hours: number): Promise<{ id: number; secret: string }> {
  const secret = newSecret()
  const link = await ctx.db
    .insertInto('password_resets')
    .values({
      user_id: id,
      secret_hash: digestOf(secret, email),
      expires_at: stamp(new Date(ctx.time.getTime() + hours * hourMs)),
      created_at: now(ctx),
    })
    .returning('id')
    .executeTakeFirstOrThrow()
  return { id: link.id, secret }
}

export const deleteLinks = async ({ db }: Context, userId: number): Promise<void> =>
  void (await db.deleteFrom('password_resets').where('user_id', '=', userId).execute())

/** The link with this secret, when it is valid for the account with this address. */
export const findLink = (ctx: Context, { email, token }: { email: string; token: string }) =>
  ctx.db
    .selectFrom('password_resets')
    .innerJoin('users', 'users.id', 'password_resets.user_id')
    .select(['password_resets.id', 'password_resets.user_id', 'users.name'])
    // The database compares digests, whose characters an attacker cannot choose, so timing reveals
    // nothing.
    .where('password_resets.secret_hash', '=', digestOf(token, email))
    .where('password_resets.expires_at', '>', now(ctx))
    .where('users.email_key', '=', fold(email))
    .where('users.status', '=', 1)
    .executeTakeFirst()

function composeMail({ services }: Context, { name, email }: User, secret: string, kind: keyof typeof lifetimes) {
  const { config } = services
  // Never the host of the request: an attacker could choose it.
  const base = config.appUrl ?? `http://localhost:${config.port}`
  const page = `${base}${operations.getResetPasswordPage.path}`
  const link = `${page}#${new URLSearchParams({ token: secret, email })}`
  const signIn = `${base}${operations.getSession.path}`
  const isInvitation = kind === 'invitation'
  const { text: lifetime } = lifetimes[kind]
  const [why, otherwise] = isInvitation
    ? [
        `an account was created for you at ${config.appName} with this e-mail address. Choose a password here:`,
        `The link works once and expires in ${lifetime}. After that, choose "Forgot password?" on ${signIn} to get a new one.`,
      ]
    : [
        `we received a request to reset the password of your account at ${config.appName}. Set a new password here:`,
        `The link works once and expires in ${lifetime}. If you did not request it, ignore this e-mail: your password stays unchanged.`,
      ]
  const paragraphs = [`Hello ${oneLine(name)},`, why, link, otherwise]
  const html = paragraphs.map((each) => `<p>${each === link ? anchor(link) : escapeHtml(each)}</p>`).join('\n')
  return {
    subject: oneLine(isInvitation ? `Your account at ${config.appName}` : `Reset your password for ${config.appName}`),
    text: `${paragraphs.join('\n\n')}\n`,
    html,
  }
}

const anchor = (link: string): string => `<a href="${escapeHtml(link)}">${escapeHtml(link)}</a>`

export const jobs = [passwordLink]
