// The credentials of a user: e-mail address, password, tokens, sessions. Used by users, which
// administrators change, and by account, which its owner changes.
import { forgetNetworks } from '../../kernel/auth/brute-force-delay.ts'
import { hashPassword } from '../../kernel/auth/passwords.ts'
import { weaknessOf } from '../../kernel/auth/weak-passwords.ts'
import type { Context } from '../../kernel/context.ts'
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
 * A body with the hash of its password; a caller cannot send `password_hash`, because unknown keys
 * are refused.
 */
export type WithPasswordHash<B> = B & { password_hash?: string }

/**
 * Adds the hash to a body with a password. Call it before the transaction: hashing takes tens of
 * milliseconds.
 */
export async function withPasswordHash<B extends Credentials>(ctx: Context, body: B): Promise<WithPasswordHash<B>> {
  if (body.password === undefined) return body
  return { ...body, password_hash: await hashPassword(ctx.services.config, body.password) }
}

type Finding = Pick<Writing<unknown>, 'ctx' | 'found'>

/**
 * Finds an e-mail address that another user has, a password that is not repeated, and a weak one.
 */
export async function checkCredentials(
  writing: Finding,
  body: Credentials,
  current: { id: number; email: string; name: string } | null,
): Promise<void> {
  const { found } = writing
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
  checkPassword(found, body, { email: email ?? current?.email ?? '', name: body.name ?? current?.name ?? '' })
}

/** Finds a password that is not repeated, and a weak one. */
export function checkPassword(
  found: Finding['found'],
  { password, password_confirmation }: Credentials,
  owner: { email: string; name: string },
): void {
  if (password !== password_confirmation) found.invalid('password_confirmation', 'Must repeat the password.')
  const weakness = password === undefined ? undefined : weaknessOf(password, owner)
  if (weakness !== undefined) found.invalid('password', weakness)
}

/**
 * Ends all access without the password: tokens and sessions with their events, password links, and
 * known networks, because another person may have signed in from there. The calling token or
 * session stays, so that callers who change their own password remain signed in.
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
  await forgetNetworks(ctx, userId)
}
