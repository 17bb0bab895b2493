// Checks the host, e-mail address and password of every login, with a token or a cookie. The
// transaction of the login checks the user again (`confirmCredentials`).
// kernel/auth/attempts.ts slows down guessing.

import { type Attempted, attempt } from '../../kernel/auth/attempts.ts'
import { hashPassword, verifyPassword } from '../../kernel/auth/passwords.ts'
import { hostOfCall, isFromStateful } from '../../kernel/auth/sessions.ts'
import { apart, type Context, type CurrentUser } from '../../kernel/context.ts'
import { Problem } from '../../kernel/errors.ts'
import { fold } from '../../kernel/values/format.ts'
import { emitLoginFailure } from './login-failures.ts'
import { notifyUser } from './notices.ts'

const invalidCredentials = (): Problem =>
  new Problem('invalid_credentials', undefined, { errors: { email: ['These credentials do not match our records.'] } })

export interface VerifiedCredentials extends Attempted {
  /** The user, without permissions because the login is not complete. */
  user: CurrentUser
  /** The stored hash that matched the password. */
  stored: string | null
}

/**
 * Verifies the credentials of a login. While the account is being guessed, a caller without a
 * device token of the account waits. Throws 401 for a host that may not sign in, for wrong
 * credentials and for an inactive account.
 */
export async function verifyCredentials(
  ctx: Context,
  { email, password, deviceToken }: { email: string; password: string; deviceToken: string | undefined },
): Promise<VerifiedCredentials> {
  refuseForeignHost(ctx)
  const { config } = ctx.services
  const emailKey = fold(email)
  const user = await ctx.db
    .selectFrom('users')
    .select(['id', 'name', 'email', 'password_hash', 'is_active', 'role_id', 'view_permission'])
    .where('email_key', '=', emailKey)
    .executeTakeFirst()
  const stored = user?.password_hash ?? null
  const { right, outdated, device, isGuessed } = await attempt(ctx, {
    account: emailKey,
    deviceToken,
    verify: (from) => verifyPassword(config, { stored, password, from }),
  })
  if (!user || !right) {
    if (user?.is_active === 1 && isGuessed) await notifyUser(apart(ctx), user.id, 'guessing')
    await emitLoginFailure(ctx, { emailKey, user, reason: 'invalid_credentials' })
    throw invalidCredentials()
  }
  if (user.is_active !== 1) {
    await emitLoginFailure(ctx, { emailKey, user, reason: 'account_inactive' })
    throw new Problem('account_inactive')
  }
  const visitor: CurrentUser = {
    id: user.id,
    name: user.name,
    email: user.email,
    roleId: user.role_id,
    permissions: new Set(),
    viewPermission: user.view_permission as CurrentUser['viewPermission'],
    visibleOwners: [user.id],
    seesOwnerless: false,
  }
  const current = outdated ? await renewHash(ctx, user.id, { stored, password }) : stored
  return { user: visitor, stored: current, device, isGuessed }
}

/**
 * Replaces an outdated password hash and returns the stored hash. If a concurrent login has
 * replaced the hash first, verifies the password against the new hash.
 */
async function renewHash(
  { db, services: { config } }: Context,
  id: number,
  { stored, password }: { stored: string | null; password: string },
): Promise<string | null> {
  const renewed = await hashPassword(config, password)
  const mine = db.updateTable('users').set({ password_hash: renewed }).where('id', '=', id)
  const { numUpdatedRows } = await mine.where('password_hash', '=', stored).executeTakeFirstOrThrow()
  if (numUpdatedRows > 0n) return renewed
  const now = await db.selectFrom('users').select('password_hash').where('id', '=', id).executeTakeFirst()
  const theirs = now?.password_hash ?? null
  if (!(await verifyPassword(config, { stored: theirs, password })).right) throw invalidCredentials()
  return theirs
}

/**
 * Throws 401 when the password or status of the user changed while the password was verified. Runs
 * in the transaction of the login.
 */
export async function confirmCredentials({ db }: Context, { user, stored }: VerifiedCredentials): Promise<void> {
  const same = db
    .updateTable('users')
    .set({ password_hash: stored })
    .where('id', '=', user.id)
    .where('is_active', '=', 1)
  const { numUpdatedRows } = await same.where('password_hash', '=', stored).executeTakeFirstOrThrow()
  if (numUpdatedRows === 0n) throw invalidCredentials()
}

/**
 * Throws 401 for a host that is not on the list of allowed hosts. The reply and the
 * log name the rejected host and the setting to change. Only the log contains the list, because the
 * reply must not reveal allowed hosts.
 */
function refuseForeignHost({ headers, requestOrigin, services }: Context): void {
  if (isFromStateful(services, { headers, requestOrigin })) return
  const host = hostOfCall({ headers, requestOrigin })
  const sentence =
    host === null
      ? 'Signing in from this page is not allowed, because its Origin or Referer header names no host.'
      : `Signing in from ${host} is not allowed. Add ${host} to ACCORD_STATEFUL_DOMAINS, or sign in from a host that it lists.`
  services.log.warn(
    { listed: services.statefulDomains() },
    host === null
      ? 'A sign-in was refused, because the Origin or Referer header of the page names no host.'
      : `ACCORD_STATEFUL_DOMAINS lacks ${host}, so a sign-in from there was refused. To allow it, add this host to the list and start again.`,
  )
  throw new Problem('stateful_domain_mismatch', sentence, { errors: { email: [sentence] } })
}
