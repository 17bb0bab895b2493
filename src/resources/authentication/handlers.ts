// Signing in and out with bearer tokens (DOMAIN 6.1 to 6.3). Guessing is slowed down in kernel/ratelimit.ts.

import { issueToken } from '../../kernel/auth.ts'
import { daysAfter } from '../../kernel/clock.ts'
import { type Context, now, type SignedIn, signedIn } from '../../kernel/context.ts'
import { Problem } from '../../kernel/errors.ts'
import { fold } from '../../kernel/format.ts'
import type { Handler, HandlersFor } from '../../kernel/handler.ts'
import { hashPassword, verifyPassword } from '../../kernel/passwords.ts'
import { braked } from '../../kernel/ratelimit.ts'
import { transaction, write } from '../../kernel/write.ts'
import { mostTokens, presentToken, revoke, tokenRows } from '../tokens/rows.ts'
import { isStateful } from './stateful.ts'

const invalidCredentials = (): Problem =>
  new Problem('invalid_credentials', undefined, { errors: { email: ['These credentials do not match our records.'] } })

const login: Handler<'login'> = async (ctx, { body }) => {
  refuseForeignHost(ctx)
  const { config } = ctx.services
  const emailKey = fold(body.email)
  const user = await ctx.db
    .selectFrom('users')
    .select(['id', 'name', 'email', 'password_hash', 'status', 'role_id', 'view_permission'])
    .where('email_key', '=', emailKey)
    .executeTakeFirst()
  const stored = user?.password_hash ?? null
  const { right, outdated } = await braked(ctx, emailKey, () => verifyPassword(config, stored, body.password))
  if (!user || !right) throw invalidCredentials()
  if (user.status !== 1) throw new Problem('account_inactive')
  const renewed = outdated ? await hashPassword(config, body.password) : stored

  const visitor: SignedIn = {
    id: user.id,
    name: user.name,
    email: user.email,
    roleId: user.role_id,
    permissions: new Set(),
    viewPermission: user.view_permission as SignedIn['viewPermission'],
    visibleOwners: [user.id],
  }
  const abilities = ['*']
  const expiresAt = config.tokenTtlDays === 0 ? null : daysAfter(ctx.time, config.tokenTtlDays)
  const token = await transaction({ ...ctx, user: visitor }, async (ctx) => {
    // Comparing took its time; a password or status that changed meanwhile must not be passed by.
    const same = ctx.db
      .updateTable('users')
      .set({ password_hash: renewed })
      .where('id', '=', user.id)
      .where('status', '=', 1)
    const { numUpdatedRows } = await same.where('password_hash', '=', stored).executeTakeFirstOrThrow()
    if (numUpdatedRows === 0n) throw invalidCredentials()
    let text = ''
    const input = { email: body.email, device_name: body.device_name }
    const { id } = await write(ctx, 'user.token.create', { entity: 'tokens', input }, async (ctx) => {
      const issued = await issueToken(
        ctx.db,
        { userId: user.id, name: body.device_name, kind: 'login', abilities, expiresAt, allowedIps: [] },
        now(ctx),
      )
      text = issued.text
      const row = await tokenRows(ctx).where('tokens.id', '=', issued.id).executeTakeFirstOrThrow()
      return { id: issued.id, entity: { ...presentToken(row) } }
    })
    await revokeOldest(ctx, user.id, id)
    return { id, text }
  })
  return {
    data: { id: user.id, name: user.name, email: user.email, token: token.text },
    meta: { token_id: token.id, abilities, expires_at: expiresAt },
    message: 'Signed in.',
  }
}

/** Throws 401 when the request comes from a host that is not listed, whatever the credentials are (DOMAIN 6.2). */
function refuseForeignHost({ headers, calledAt, services }: Context): void {
  const calling = { origin: first(headers.origin), referer: first(headers.referer), calledAt }
  if (isStateful(calling, services.statefulDomains())) return
  throw new Problem('stateful_domain_mismatch', undefined, {
    errors: { email: ['Signing in from this host is not allowed.'] },
  })
}

const first = (header: string | string[] | undefined): string | undefined =>
  Array.isArray(header) ? header[0] : header

/** Revokes the login tokens that were used least recently, until no more than `mostTokens` are alive (DOMAIN 6.3). */
async function revokeOldest(ctx: Context, userId: number, issued: number): Promise<void> {
  const alive = await tokenRows(ctx)
    .where('tokens.user_id', '=', userId)
    .where((eb) => eb.or([eb('tokens.expires_at', 'is', null), eb('tokens.expires_at', '>', now(ctx))]))
    .execute()
  const used = (token: { last_used_at: string | null; created_at: string }): string =>
    token.last_used_at ?? token.created_at
  const candidates = alive
    .filter(({ id, kind }) => kind === 'login' && id !== issued)
    .sort((a, b) => (used(a) < used(b) || (used(a) === used(b) && a.id < b.id) ? -1 : 1))
  for (const row of candidates.slice(0, Math.max(0, alive.length - mostTokens))) await revoke(ctx, row)
}

const logout: Handler<'logout'> = (ctx, { body }) =>
  transaction(ctx, async (ctx) => {
    const own = tokenRows(ctx).where('tokens.user_id', '=', signedIn(ctx).id)
    const ended = await (body.all ? own : own.where('tokens.id', '=', ctx.token?.id ?? 0))
      .orderBy('tokens.id')
      .execute()
    for (const row of ended) await revoke(ctx, row)
    return { message: body.all ? 'Signed out everywhere.' : 'Signed out.' }
  })

export const handlers: HandlersFor<'login' | 'logout'> = { login, logout }
