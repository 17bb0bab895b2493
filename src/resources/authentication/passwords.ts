// Forgotten passwords (DOMAIN 6.1, 6.3). Neither the answer nor its timing shows whether an account
// exists: a job (password-links.ts) does the work, and a wrong link gets the same answer as an
// unknown account.

import { enqueue } from '../../jobs/queue.ts'
import { countCall } from '../../kernel/auth/attempt-limits.ts'
import { rememberNetwork, withBruteForceProtection } from '../../kernel/auth/brute-force-delay.ts'
import { networkOf } from '../../kernel/auth/ip-ranges.ts'
import { signedInAs } from '../../kernel/auth/tokens.ts'
import type { Context } from '../../kernel/context.ts'
import { invalid, ValidationErrors } from '../../kernel/errors.ts'
import type { Handler } from '../../kernel/handler.ts'
import { fold } from '../../kernel/values/format.ts'
import { transaction } from '../../kernel/write/write.ts'
import { setPassword } from '../account/handlers.ts'
import { checkPassword, endAccess, withPasswordHash } from '../users/credentials.ts'
import { findLink, passwordLink } from './password-links.ts'

const hourMs = 60 * 60 * 1000
const maxCallsPerHour = 3
/** The job starts after the response, so its work does not change the response time. */
const jobAfterMs = 2_000

export const forgotPassword: Handler<'forgotPassword'> = async (ctx, { body: { email } }) => {
  const { services } = ctx
  // Limited per caller here; the job limits mails per account, so strangers cannot use up the
  // owner's.
  await countCall(ctx, 'forgot-password', maxCallsPerHour, hourMs)
  if (services.mailer.isConfigured)
    await enqueue(
      ctx,
      passwordLink,
      { email, network: networkOf(ctx.ip ?? '') },
      { runAt: new Date(ctx.time.getTime() + jobAfterMs) },
    )
  else services.log.warn({}, 'A password reset was requested, but no server for outgoing mail is configured.')
  return { message: 'If an account has this address, an e-mail with a link is on its way.' }
}

const badToken = ['The link is invalid, used or expired. Request a new one.']

export const resetPassword: Handler<'resetPassword'> = async (ctx, { body }) => {
  // Wrong links count separately from wrong passwords and per network only: a link cannot be
  // guessed, and an attacker must not lock out its owner.
  const find = async () => {
    const link = await findLink(ctx, body)
    return { link, right: link !== undefined }
  }
  const { right, link } = await withBruteForceProtection(ctx, `reset:${fold(body.email)}`, find, {
    isOverAllNetworks: false,
  })
  const found = new ValidationErrors()
  if (!right) found.invalid('token', badToken[0] ?? '')
  checkPassword(found, body, { email: body.email, name: link?.name ?? '' })
  found.throwIfAny()
  const { password_hash } = await withPasswordHash(ctx, body)
  await transaction(ctx, async (ctx) => {
    const user = link && (await useLink(ctx, link))
    if (!user || password_hash === undefined) throw invalid({ token: badToken })
    const caller: Context = { ...ctx, user }
    await setPassword(caller, body, password_hash)
    await endAccess(caller, user.id)
    // The owner has read the mail here, so guesses from other networks do not slow down the next
    // login.
    await rememberNetwork(caller, user.id)
  })
  return { message: 'Password set. Sign in with it.' }
}

/** Uses up the link and returns its user; null when a concurrent request used it first. */
async function useLink({ db }: Context, link: { id: number; user_id: number }) {
  const { numDeletedRows } = await db.deleteFrom('password_resets').where('id', '=', link.id).executeTakeFirst()
  return numDeletedRows === 0n ? null : signedInAs(db, link.user_id)
}
