// What signs a user in: address, password, tokens, sessions. Shared by users, whom administrators change, and account, which its owner
// changes.
import type { Context } from '../../kernel/context.ts'
import { fold } from '../../kernel/format.ts'
import { hashPassword } from '../../kernel/passwords.ts'
import { unique } from '../../kernel/references.ts'
import type { Writing } from '../../kernel/resource.ts'
import { endOtherSessions } from '../../kernel/sessions.ts'
import { endLinks } from '../authentication/links.ts'
import { revoke, tokenRows } from '../tokens/rows.ts'

export interface Credentials {
  email?: string | undefined
  password?: string | undefined
  password_confirmation?: string | undefined
}

/** A body whose password has been hashed; `password_hash` never comes from a caller, whose unknown keys are refused. */
export type Hashed<B> = B & { password_hash?: string }

/** Adds the hash to a body with a password. Call it before the transaction: hashing takes tens of milliseconds. */
export async function hashed<B extends Credentials>(ctx: Context, body: B): Promise<Hashed<B>> {
  if (body.password === undefined) return body
  return { ...body, password_hash: await hashPassword(ctx.services.config, body.password) }
}

type Finding = Pick<Writing<unknown>, 'ctx' | 'found'>

/** Finds an address that another user has, a password that is not repeated, and one that equals the address. */
export async function checkCredentials(
  writing: Finding,
  body: Credentials,
  current: { id: number; email: string } | null,
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
  checkPassword(found, body, email ?? current?.email ?? '')
}

/** Finds a password that is not repeated, and one that equals the address. */
export function checkPassword(found: Finding['found'], body: Credentials, email: string): void {
  const { password, password_confirmation } = body
  if (password !== password_confirmation) found.invalid('password_confirmation', 'Must repeat the password.')
  if (password !== undefined && fold(password) === fold(email))
    found.invalid('password', 'Must not equal the e-mail address.')
}

/**
 * Ends all that lets a user in without the password: tokens, each with its events, sessions, and links to a new password. But for
 * the calling token or session: who changes the own password stays signed in.
 */
export async function endAccess(ctx: Context, userId: number): Promise<void> {
  let ended = tokenRows(ctx).where('tokens.user_id', '=', userId)
  if (ctx.token) ended = ended.where('tokens.id', '!=', ctx.token.id)
  for (const row of await ended.orderBy('tokens.id').execute()) await revoke(ctx, row)
  await endOtherSessions(ctx, userId)
  await endLinks(ctx, userId)
}
