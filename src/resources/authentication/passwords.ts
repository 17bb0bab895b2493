// Forgotten passwords (DOMAIN 6.1, 6.3). Nobody learns from an answer, or from how long it takes, who has an account: what is done
// for an account is done by a job (links.ts), and a wrong link is refused like that of an account that is not there.

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
import { linkOf, passwordLink } from './links.ts'

const hourMs = 60 * 60 * 1000
const maxAnHour = 3
/** Until then the answer is gone: what the job does for an account must not be felt in it. */
const jobAfterMs = 2_000

export const forgotPassword: Handler<'forgotPassword'> = async (ctx, { body: { email } }) => {
  const { services } = ctx
  // By who asks. How many mails an account gets is bounded by the job, so that strangers use up nobody's.
  await countCall(ctx, 'forgot-password', maxAnHour, hourMs)
  if (services.mailer.isConfigured)
    await enqueue(
      ctx,
      passwordLink,
      { email, network: networkOf(ctx.ip ?? '') },
      { runAt: new Date(ctx.time.getTime() + jobAfterMs) },
    )
  else
    services.log.warn({}, 'Somebody has forgotten a password, and there is no server for outgoing mail to help them.')
  return { message: 'If there is an account with this address, a mail with a link is on its way.' }
}

const badToken = ['The link is wrong, was used, or is too old. Ask for a new one.']

export const resetPassword: Handler<'resetPassword'> = async (ctx, { body }) => {
  // Wrong links count apart from wrong passwords and do not slow down signing in. They count at one network only: a link cannot be
  // guessed, and strangers must not keep its owner from using it.
  const find = async () => {
    const link = await linkOf(ctx, body)
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
    const user = link && (await used(ctx, link))
    if (!user || password_hash === undefined) throw invalid({ token: badToken })
    const caller: Context = { ...ctx, user }
    await setPassword(caller, body, password_hash)
    await endAccess(caller, user.id)
    // The owner of the mailbox is here: guesses from elsewhere do not slow down the sign-in that follows.
    await rememberNetwork(caller, user.id)
  })
  return { message: 'The password is set. Sign in with it.' }
}

/** The user, once: of two who use a link at the same moment one is refused. */
async function used({ db }: Context, link: { id: number; user_id: number }) {
  const { numDeletedRows } = await db.deleteFrom('password_resets').where('id', '=', link.id).executeTakeFirst()
  return numDeletedRows === 0n ? null : signedInAs(db, link.user_id)
}
