// The credentials of a user: e-mail address, password, tokens and sessions. The users API changes
// them for administrators, and the account API changes them for the signed-in user.
import { hashPassword } from '../../kernel/auth/passwords.ts'
import { forgetDevices } from '../../kernel/auth/sign-in-devices.ts'
import { weaknessOf } from '../../kernel/auth/weak-passwords.ts'
import type { Context } from '../../kernel/context.ts'
import { invalid } from '../../kernel/errors.ts'
import type { Writing } from '../../kernel/resource/define-resource.ts'
import { unique } from '../../kernel/resource/references.ts'
import { fold } from '../../kernel/values/format.ts'
import { deleteLinks } from '../authentication/password-links.ts'
import { endOtherSessions } from '../authentication/sessions.ts'
import { revokeTokens } from '../tokens/rows.ts'

export interface Credentials {
  name?: string | undefined
  email?: string | undefined
  password?: string | undefined
  password_confirmation?: string | undefined
}

/**
 * A request body with the hash of its password. Callers cannot send `password_hash`, because the
 * schema refuses unknown keys.
 */
export type WithPasswordHash<B> = B & { password_hash?: string }

/**
 * Adds `password_hash` to a body that has a password. Call this before the transaction, because
 * hashing takes tens of milliseconds.
 */
export async function withPasswordHash<B extends Credentials>(ctx: Context, body: B): Promise<WithPasswordHash<B>> {
  return { ...body, ...(await passwordHashOf(ctx, body)) }
}

/** Returns the key that `withPasswordHash` adds, if the body has a password. */
export async function passwordHashOf(ctx: Context, { password }: Credentials): Promise<{ password_hash?: string }> {
  if (password === undefined) return {}
  // The lines of a batch share a transaction, and other writers would wait for all the hashes.
  if (ctx.sent) throw invalid({ password: ['Must be left out of a line. A new user gets a link to choose one.'] })
  return { password_hash: await hashPassword(ctx.services.config, password) }
}

type Finding = Pick<Writing<unknown>, 'ctx' | 'errors'>

/**
 * Adds a validation error for an e-mail address that another user has, for a password that differs
 * from its confirmation, and for a weak password.
 */
export async function checkCredentials(
  writing: Finding,
  body: Credentials,
  current: { id: number; email: string; name: string } | null,
): Promise<void> {
  const { errors } = writing
  const { email } = body
  const key = email === undefined ? undefined : fold(email)
  const except = current?.id ?? null
  await unique(writing, {
    field: 'email',
    table: 'users',
    column: 'email_key',
    key,
    entity: 'users',
    except,
    noun: 'user',
    owner: 'id',
  })
  checkPassword(errors, body, { email: email ?? current?.email ?? '', name: body.name ?? current?.name ?? '' })
}

/**
 * Adds a validation error for a password that differs from its confirmation, and for a weak
 * password.
 */
export function checkPassword(
  errors: Finding['errors'],
  { password, password_confirmation }: Credentials,
  owner: { email: string; name: string },
): void {
  if (password !== password_confirmation) errors.invalid('password_confirmation', 'Must repeat the password.')
  const weakness = password === undefined ? undefined : weaknessOf(password, owner)
  if (weakness !== undefined) errors.invalid('password', weakness)
}

/**
 * Ends the user's access that needs no password: tokens, sessions and password links. Forgets the
 * devices of past sign-ins, because another person may have signed in from them. The calling token,
 * session and device stay, so that callers who change their own password remain signed in.
 */
export async function endAccess(ctx: Context, userId: number): Promise<void> {
  let ended = ctx.db.selectFrom('tokens').select('id').where('user_id', '=', userId)
  if (ctx.token) ended = ended.where('id', '!=', ctx.token.id)
  await revokeTokens(
    ctx,
    (await ended.execute()).map(({ id }) => id),
  )
  await endOtherSessions(ctx, userId)
  await deleteLinks(ctx, userId)
  await forgetDevices(ctx, userId)
}
