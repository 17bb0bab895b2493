// Handlers for login and logout, with bearer tokens or with a cookie.
// credentials.ts checks both kinds of login; passwords.ts resets forgotten passwords.

import { callingOf, checkVisitorCsrf, clearCookies, offerCsrf, sessionOf } from '../../kernel/auth/sessions.ts'
import { deviceTokenOf, keepDevice, rememberDevice } from '../../kernel/auth/sign-in-devices.ts'
import { issueToken, signedInAs } from '../../kernel/auth/tokens.ts'
import { type Context, now, requireUser } from '../../kernel/context.ts'
import { Problem } from '../../kernel/errors.ts'
import type { Handler, Handlers, PublicGuards } from '../../kernel/handler.ts'
import { daysAfter } from '../../kernel/runtime/clock.ts'
import { transaction, write } from '../../kernel/write/write.ts'
import { accountOf } from '../account/handlers.ts'
import { maxTokens, presentToken, revokeTokens, tokenRows } from '../tokens/rows.ts'
import { confirmCredentials, verifyCredentials } from './credentials.ts'
import { resetPage } from './login-page.ts'
import { notifyUser } from './notices.ts'
import { forgotPassword, resetPassword } from './passwords.ts'
import { beginSession, endOtherSessions, endSession, sessionRows } from './sessions.ts'

const login: Handler<'login'> = async (ctx, { body }) => {
  const { config } = ctx.services
  const { email, password, device_token } = body
  const proven = await verifyCredentials(ctx, { email, password, deviceToken: device_token ?? deviceTokenOf(ctx) })
  const { user } = proven
  const abilities = ['*']
  const expiresAt = config.tokenTtlDays === 0 ? null : daysAfter(ctx.time, config.tokenTtlDays)
  const token = await transaction({ ...ctx, user }, async (ctx) => {
    await confirmCredentials(ctx, proven)
    const device = await rememberDevice(ctx, user.id, proven.device)
    // A program may sign in each hour without a device token, so this is a notice only while the
    // account is being guessed.
    if (device.isNewBesideOthers && proven.isGuessed) await notifyUser(ctx, user.id, 'device')
    let text = ''
    const name = body.device_name ?? agentOf(ctx)
    const input = { email: body.email, device_name: name }
    const { id } = await write(ctx, 'user.token.create', { entity: 'tokens', input }, async (ctx) => {
      const issued = await issueToken(
        ctx.db,
        { userId: user.id, name, kind: 'login', abilities, expiresAt, allowedIps: [] },
        now(ctx),
      )
      text = issued.text
      const row = await tokenRows(ctx).where('tokens.id', '=', issued.id).executeTakeFirstOrThrow()
      return { id: issued.id, entity: { ...presentToken(row) } }
    })
    await revokeLeastUsed(ctx, user.id, id)
    return { id, text, deviceToken: device.token }
  })
  return {
    data: { id: user.id, name: user.name, email: user.email, token: token.text },
    meta: { token_id: token.id, abilities, expires_at: expiresAt, device_token: token.deviceToken },
    message: 'Signed in.',
  }
}

/** Returns the `User-Agent` of the program that signs in, such as `curl/8.5.0`, or `API`. */
function agentOf({ headers }: Context): string {
  const sent = headers['user-agent']
  return (typeof sent === 'string' ? sent.trim().slice(0, maxAgentLength) : '') || 'API'
}

const maxAgentLength = 100

/**
 * Revokes the least recently used login tokens of a user when there are more than `maxTokens`.
 * tokens/handlers.ts limits named tokens separately.
 */
async function revokeLeastUsed(ctx: Context, userId: number, issued: number): Promise<void> {
  const alive = await tokenRows(ctx)
    .where('tokens.user_id', '=', userId)
    .where('tokens.kind', '=', 'login')
    .where((eb) => eb.or([eb('tokens.expires_at', 'is', null), eb('tokens.expires_at', '>', now(ctx))]))
    .execute()
  const used = (token: { last_used_at: string | null; created_at: string }): string =>
    token.last_used_at ?? token.created_at
  const candidates = alive
    .filter(({ id }) => id !== issued)
    .sort((a, b) => (used(a) < used(b) || (used(a) === used(b) && a.id < b.id) ? -1 : 1))
  await revokeTokens(
    ctx,
    candidates.slice(0, Math.max(0, alive.length - maxTokens)).map(({ id }) => id),
  )
}

const logout: Handler<'logout'> = (ctx, { body }) =>
  transaction(ctx, async (ctx) => {
    const { id } = requireUser(ctx)
    const own = ctx.db.selectFrom('tokens').select('id').where('user_id', '=', id)
    const ended = await (body.all ? own : own.where('id', '=', ctx.token?.id ?? 0)).execute()
    await revokeTokens(
      ctx,
      ended.map(({ id }) => id),
    )
    if (body.all) await endOtherSessions(ctx, id)
    await endCallingSession(ctx)
    return { message: body.all ? 'Signed out everywhere.' : 'Signed out.' }
  })

async function endCallingSession(ctx: Context): Promise<void> {
  if (!ctx.session) return
  await endSessionById(ctx, ctx.session.id)
  clearCookies(ctx)
}

async function endSessionById(ctx: Context, id: number): Promise<void> {
  const row = await sessionRows(ctx).where('id', '=', id).executeTakeFirst()
  if (row) await endSession(ctx, row)
}

const createSession: Handler<'createSession'> = async (ctx, { body }) => {
  const { email, password, remember = false } = body
  const proven = await verifyCredentials(ctx, { email, password, deviceToken: deviceTokenOf(ctx) })
  const earlier = await sessionOf(ctx.services, callingOf(ctx))
  return transaction({ ...ctx, user: proven.user, origin: 'session' }, async (ctx) => {
    await confirmCredentials(ctx, proven)
    const device = await rememberDevice(ctx, proven.user.id, proven.device)
    if (device.isNewBesideOthers) await notifyUser(ctx, proven.user.id, 'device')
    // A new session ends the previous session of this browser. This prevents session fixation: a
    // cookie that an attacker planted or stole before the login becomes invalid.
    if (earlier) await endSessionById(ctx, earlier.id)
    const session = await beginSession(ctx, proven.user.id, remember)
    keepDevice(ctx, device.token)
    const user = await signedInAs(ctx.db, proven.user.id)
    return { data: await accountOf({ ...ctx, user, session }), message: 'Signed in.' }
  })
}

const deleteSession: Handler<'deleteSession'> = (ctx) =>
  transaction(ctx, async (ctx) => {
    if (!ctx.session) throw new Problem('state_conflict', 'You called with a token: there is no session to end.')
    await endCallingSession(ctx)
    return { message: 'Signed out.' }
  })

export const handlers = {
  login,
  logout,
  getCsrfCookie: async (ctx) => void (await offerCsrf(ctx)) as undefined,
  getSession: async (ctx) => ({ data: await accountOf(ctx) }),
  createSession,
  deleteSession,
  forgotPassword,
  getResetPasswordPage: async (ctx) => resetPage(ctx.services.config, await ctx.services.textsFor(ctx)),
  resetPassword,
} satisfies Partial<Handlers>

export const publicGuards: PublicGuards = { createSession: checkVisitorCsrf }
