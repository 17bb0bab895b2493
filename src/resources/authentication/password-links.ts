// Creates and mails links to set a password, for a reset or an invitation. The
// mail job creates the secret, and only the mail contains it; the database stores its digest. The
// secret is in the URL fragment, which browsers do not send to servers.
import { defineJob } from '../../jobs/queue.ts'
import { newSecret, sha256Hex } from '../../kernel/auth/secrets.ts'
import { type Context, now } from '../../kernel/context.ts'
import { stamp } from '../../kernel/runtime/clock.ts'
import { fold } from '../../kernel/values/format.ts'
import { accountMailFailed, pagesOf, type Recipient, sendAccountMail } from './account-mail.ts'

/**
 * How long a link is valid. A user who requests a reset waits for the mail. An invitation arrives
 * unannounced, so its link is valid longer.
 */
const hours = { reset: 1, invitation: 72 }
const hourMs = 60 * 60 * 1000
/**
 * The maximum number of reset mails per account and hour. Links are valid for at least an hour, so
 * the user still has a valid link when the limit is reached.
 */
const maxMailsPerHour = 5

/**
 * Returns the digest to store. The digest includes the e-mail address, so a link becomes invalid
 * when the address of the account changes.
 */
export const digestOf = (secret: string, email: string): string => sha256Hex(`${secret} ${fold(email)}`)

/**
 * The payload of the job. A reset has the `email` that was entered. An invitation has a `user_id`.
 */
type LinkRequest = { email: string } | { user_id: number }

export const passwordLink = defineJob<LinkRequest>({
  kind: 'authentication.password-link',
  retryAfterSeconds: [60, 300, 1800],
  isMail: true,
  async run(ctx, wanted, { signal }) {
    const user = await recipientOf(ctx, wanted)
    if (!user || (await isMailLimitReached(ctx, user, wanted))) return
    const kind = 'user_id' in wanted ? 'invitation' : 'reset'
    const { id, secret } = await createLink(ctx, user, hours[kind])
    try {
      await sendAccountMail(ctx, user, await composeMail(ctx, user, secret, kind), signal)
    } catch (cause) {
      // The mail was not sent, so its link must not count toward the hourly limit.
      await ctx.db.deleteFrom('password_resets').where('id', '=', id).execute()
      accountMailFailed(ctx, user.id, cause, 'a mail with a password link')
    }
  },
})

/**
 * Returns the active user who gets the mail. An invited user who already has a password gets none.
 */
async function recipientOf({ db }: Context, wanted: LinkRequest): Promise<Recipient | undefined> {
  const active = db.selectFrom('users').select(['id', 'name', 'email']).where('is_active', '=', 1)
  if ('email' in wanted) return active.where('email_key', '=', fold(wanted.email)).executeTakeFirst()
  return active.where('id', '=', wanted.user_id).where('password_hash', 'is', null).executeTakeFirst()
}

/**
 * Returns whether the account has reached the hourly limit of mails. Its last mails then have links
 * that are still valid, so a stranger who asks for more cannot keep the user out.
 */
async function isMailLimitReached(ctx: Context, { id }: Recipient, wanted: LinkRequest): Promise<boolean> {
  if (!('email' in wanted)) return false
  const { mails } = await ctx.db
    .selectFrom('password_resets')
    .select((eb) => eb.fn.countAll<number>().as('mails'))
    .where('user_id', '=', id)
    .where('created_at', '>', stamp(new Date(ctx.time.getTime() - hourMs)))
    .executeTakeFirstOrThrow()
  return Number(mails) >= maxMailsPerHour
}

/** Creates a link. Earlier links stay valid until one of the links is used. */
async function createLink(
  ctx: Context,
  { id, email }: Recipient,
  hours: number,
): Promise<{ id: number; secret: string }> {
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

/**
 * Returns the unexpired link with this secret, if the secret belongs to the account with this
 * address.
 */
export const findLink = (ctx: Context, { email, token }: { email: string; token: string }) =>
  ctx.db
    .selectFrom('password_resets')
    .innerJoin('users', 'users.id', 'password_resets.user_id')
    .select(['password_resets.id', 'password_resets.user_id', 'users.name'])
    // The response time reveals nothing about stored secrets, because the query compares digests
    // and an attacker cannot choose the characters of a digest.
    .where('password_resets.secret_hash', '=', digestOf(token, email))
    .where('password_resets.expires_at', '>', now(ctx))
    .where('users.email_key', '=', fold(email))
    .where('users.is_active', '=', 1)
    .executeTakeFirst()

async function composeMail(ctx: Context, { email }: Recipient, secret: string, kind: keyof typeof hours) {
  const texts = await ctx.services.textsFor(ctx)
  const { signIn: page, resetPassword } = pagesOf(ctx)
  const link = `${resetPassword}#${new URLSearchParams({ token: secret, email })}`
  const app = ctx.services.config.appName
  const hint =
    kind === 'invitation'
      ? texts.say('account.link_hint', { hours: hours.invitation, page })
      : texts.say('account.reset_hint', { minutes: hours.reset * 60 })
  return {
    subject: texts.say(`account.${kind}_subject`, { app }),
    paragraphs: [texts.say(`account.${kind}`, { app }), link, hint],
    texts,
  }
}

export const jobs = [passwordLink]
