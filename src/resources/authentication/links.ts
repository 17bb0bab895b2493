// Links to a new password (DOMAIN 6.3, 15.6), for who has forgotten one and for who has none yet. The job that mails a link makes it
// as well, so that it is nowhere but in the mail: stored is its digest, and it stands behind the # of the address, which no log sees.
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

/** How long a link is good for: in answer to somebody who waits for it, and to somebody who knows nothing of it yet. */
const lifetimes = {
  reset: { hours: 1, text: '60 minutes' },
  invitation: { hours: 72, text: '72 hours' },
}
const hourMs = 60 * 60 * 1000
/** Mails an hour that strangers can have sent to an account. Each holds a link that is good at least as long as no further one comes. */
const maxMailsPerHour = 5

/** What is stored of a link: with the address it goes to, so that it is good for nothing once the account has another one. */
export const digestOf = (secret: string, email: string): string => sha256Hex(`${secret} ${fold(email)}`)

/**
 * `email` is what somebody at `network` has typed who says to have forgotten the password; `user_id` a user who was made without one.
 * A job of an earlier version has no `network`.
 */
type Wanted = { email: string; network?: string } | { user_id: number }

export const passwordLink = defineJob<Wanted>({
  kind: 'authentication.password-link',
  retryAfterSeconds: [60, 300, 1800],
  isMail: true,
  async run(ctx, wanted, { signal }) {
    const user = await recipientOf(ctx, wanted)
    if (!user || (await hasEnough(ctx, user, wanted))) return
    const kind = 'user_id' in wanted ? 'invitation' : 'reset'
    const { id, secret } = await issue(ctx, user, lifetimes[kind].hours)
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
          ...mailOf(ctx, user, secret, kind),
          references: [],
          headers: { 'Auto-Submitted': 'auto-generated' },
          attachments: [],
        },
        withGracePeriod(signal),
      )
    } catch (cause) {
      // Nobody has it.
      await ctx.db.deleteFrom('password_resets').where('id', '=', id).execute()
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

/**
 * Whether strangers have had so many mails sent to the account that its owner must not get more. The owner still holds a link that is
 * good; where the account has signed in before, the owner gets another one.
 */
async function hasEnough(ctx: Context, { id }: User, wanted: Wanted): Promise<boolean> {
  if (!('email' in wanted)) return false
  const { mails } = await ctx.db
    .selectFrom('password_resets')
    .select((eb) => eb.fn.countAll<number>().as('mails'))
    .where('user_id', '=', id)
    .where('created_at', '>', stamp(new Date(ctx.time.getTime() - hourMs)))
    .executeTakeFirstOrThrow()
  return Number(mails) >= maxMailsPerHour && !(await isHome(ctx, { userId: id, network: wanted.network ?? '' }))
}

/** A new one; earlier ones stay good until one is used. */
async function issue(ctx: Context, { id, email }: User, hours: number): Promise<{ id: number; secret: string }> {
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

export const endLinks = async ({ db }: Context, userId: number): Promise<void> =>
  void (await db.deleteFrom('password_resets').where('user_id', '=', userId).execute())

/** The link that this is the secret of, when it is good for the account with this address. */
export const linkOf = (ctx: Context, { email, token }: { email: string; token: string }) =>
  ctx.db
    .selectFrom('password_resets')
    .innerJoin('users', 'users.id', 'password_resets.user_id')
    .select(['password_resets.id', 'password_resets.user_id', 'users.name'])
    // The database compares digests, of which nobody can choose the next character.
    .where('password_resets.secret_hash', '=', digestOf(token, email))
    .where('password_resets.expires_at', '>', now(ctx))
    .where('users.email_key', '=', fold(email))
    .where('users.status', '=', 1)
    .executeTakeFirst()

function mailOf({ services }: Context, { name, email }: User, secret: string, kind: keyof typeof lifetimes) {
  const { config } = services
  // Never the host of a request: that is the caller's to choose.
  const base = config.appUrl ?? `http://localhost:${config.port}`
  const page = `${base}${operations.getResetPasswordPage.path}`
  const link = `${page}#${new URLSearchParams({ token: secret, email })}`
  const signIn = `${base}${operations.getSession.path}`
  const isInvitation = kind === 'invitation'
  const { text: lifetime } = lifetimes[kind]
  const [why, otherwise] = isInvitation
    ? [
        `an account was made for you at ${config.appName}, with this e-mail address. Choose a password here:`,
        `The link is good for ${lifetime}, once. Later, press "Forgot password?" on ${signIn} for another one.`,
      ]
    : [
        `somebody, probably you, has forgotten the password of your account at ${config.appName}. Set a new one here:`,
        `The link is good for ${lifetime}, once. If it was not you, there is nothing to do: the password stays as it is.`,
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
