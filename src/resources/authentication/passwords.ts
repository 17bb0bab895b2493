// Resets forgotten passwords. Neither the reply nor its timing reveals whether an
// account exists. A job (password-links.ts) does the work after the reply. A wrong link gets the
// same reply as an unknown account.

import { enqueue } from '../../jobs/queue.ts'
import { attempt } from '../../kernel/auth/attempts.ts'
import { keepDevice, rememberDevice } from '../../kernel/auth/sign-in-devices.ts'
import { signedInAs } from '../../kernel/auth/tokens.ts'
import type { Context } from '../../kernel/context.ts'
import { invalid, ValidationErrors } from '../../kernel/errors.ts'
import type { Handler } from '../../kernel/handler.ts'
import { fold } from '../../kernel/values/format.ts'
import { transaction } from '../../kernel/write/write.ts'
import { setPassword } from '../account/handlers.ts'
import { checkPassword, endAccess, withPasswordHash } from '../users/credentials.ts'
import { findLink, passwordLink } from './password-links.ts'

const limit = { scope: 'forgot-password', most: 3, windowMs: 60 * 60 * 1000 }
/**
 * The delay of the job in milliseconds. The job starts after the response, so the response time
 * does not reveal whether the account exists.
 */
const jobAfterMs = 2_000

export const forgotPassword: Handler<'forgotPassword'> = async (ctx, { body: { email } }) => {
  const { services } = ctx
  // The job separately limits mails per account.
  await attempt(ctx, limit)
  if (services.mailer.isConfigured)
    await enqueue(ctx, passwordLink, { email }, { runAt: new Date(ctx.time.getTime() + jobAfterMs) })
  else services.log.warn({}, 'A password reset was requested, but no server for outgoing mail is configured.')
  return { message: 'If an account has this address, an e-mail with a link is on its way.' }
}

const badToken = ['The link is invalid, used or expired. Request a new one.']

export const resetPassword: Handler<'resetPassword'> = async (ctx, { body }) => {
  // Wrong links are counted apart from wrong passwords, and a right one never waits: links are too
  // long to guess.
  const { right, link } = await attempt(ctx, {
    account: `reset:${fold(body.email)}`,
    isPaced: false,
    verify: async () => {
      const link = await findLink(ctx, body)
      return { link, right: link !== undefined }
    },
  })
  const errors = new ValidationErrors()
  if (!right) errors.invalid('token', badToken[0] ?? '')
  checkPassword(errors, body, { email: body.email, name: link?.name ?? '' })
  errors.throwIfAny()
  const { password_hash } = await withPasswordHash(ctx, body)
  await transaction(ctx, async (ctx) => {
    const user = link && (await useLink(ctx, link))
    if (!user || password_hash === undefined) throw invalid({ token: badToken })
    const caller: Context = { ...ctx, user }
    await setPassword(caller, body, password_hash)
    await endAccess(caller, user.id)
    // The user received the link by mail, so this device is known from now on. Password guesses of
    // strangers then do not delay the user's next sign-in.
    keepDevice(caller, (await rememberDevice(caller, user.id, null)).token)
  })
  return { message: 'Password set. Sign in with it.' }
}

/**
 * Deletes the link and returns its user. Returns null when a concurrent request has used the link
 * first.
 */
async function useLink({ db }: Context, link: { id: number; user_id: number }) {
  const { numDeletedRows } = await db.deleteFrom('password_resets').where('id', '=', link.id).executeTakeFirst()
  return numDeletedRows === 0n ? null : signedInAs(db, link.user_id)
}
