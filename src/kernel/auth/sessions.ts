// Cookie sessions and their CSRF values. `identify` authenticates the caller by bearer
// token or session. tokens.ts handles bearer tokens.
import { randomBytes } from 'node:crypto'
import { operations } from '../../contract/operations.gen.ts'
import type { OperationId } from '../../contract/types.ts'
import { type CallingSession, type Context, type CurrentUser, canCall, type Services } from '../context.ts'
import { Problem } from '../errors.ts'
import { stamp } from '../runtime/clock.ts'
import { writeAside } from '../runtime/unavailable.ts'
import { cookieOf, setCookie } from './cookies.ts'
import { constantTimeEquals, newSecret, sha256Hex } from './secrets.ts'
import { callingHost, isStatefulHost } from './stateful-domains.ts'
import { authenticate, callerColumns, inactive, unauthenticated, userOfCaller, withCurrentCaller } from './tokens.ts'

const sessionCookie = 'accord_session'
const csrfCookie = 'XSRF-TOKEN'
const hourMs = 60 * 60 * 1000
const idleMs = 8 * hourMs
const maxSessionMs = 24 * hourMs
const rememberedMs = 30 * 24 * hourMs

/** The parts of a request that identify its caller. */
export interface Calling {
  headers: Context['headers']
  ip: string
  /** The scheme and host to which the request was sent. */
  requestOrigin: string
}

export type Caller = Pick<Context, 'token' | 'session'> & { user: CurrentUser }

/**
 * Returns the caller, identified by the bearer token if the request has one, else by the session.
 * Throws 401 when there is no valid token or session, or when the user is inactive. `isUse` tells
 * whether the call counts as use of the session and so keeps an idle session alive.
 */
export async function identify(services: Services, calling: Calling, isUse = true): Promise<Caller> {
  const authorization = one(calling.headers.authorization)
  if (authorization !== undefined && /^\s*bearer\b/i.test(authorization)) {
    const { user, token } = await authenticate(services, authorization, calling.ip)
    return { user, token, session: null }
  }
  const row = await sessionOf(services, calling)
  if (!row) throw unauthenticated()
  if (row.is_active !== 1) throw inactive()
  const { db } = services.store
  const time = services.clock.now()
  // The time of the last use is written at most once a minute. Otherwise every read request would
  // cause a write.
  if (isUse && row.last_used_at < stamp(new Date(time.getTime() - 60_000)))
    writeAside(services, `session ${row.id}`, () =>
      db
        .updateTable('sessions')
        .set({ last_used_at: stamp(time) })
        .where('id', '=', row.id)
        .execute(),
    )
  const user = await userOfCaller(services.store, row)
  return { user, token: null, session: { id: row.id, csrf: row.csrf } }
}

/**
 * Throws 401 when the token or session was deleted since the request arrived. Also throws 401 when
 * the user was deleted or is inactive.
 */
export async function confirmCaller(ctx: Context): Promise<void> {
  const { db, token, session } = ctx
  await withCurrentCaller(ctx)
  const tokenId = token && db.selectFrom('tokens').select('id').where('id', '=', token.id)
  const sessionId = session && db.selectFrom('sessions').select('id').where('id', '=', session.id)
  const row = await (tokenId ?? sessionId)?.executeTakeFirst()
  if ((token || session) && !row) throw unauthenticated()
}

/**
 * Returns the context with the caller's current rights, for work that outlives its request. Returns
 * undefined when the caller may no longer call the operation. Does not count as use of the session:
 * otherwise an open page would keep its session alive forever.
 */
export async function renewed(ctx: Context, operation: OperationId): Promise<Context | undefined> {
  try {
    const caller = await identify(ctx.services, callingOf(ctx), false)
    const renewed: Context = { ...ctx, ...caller, time: ctx.services.clock.now() }
    return canCall(renewed, operations[operation]) ? renewed : undefined
  } catch (error) {
    if (error instanceof Problem && error.status === 401) return undefined
    throw error
  }
}

const one = (header: string | string[] | undefined): string | undefined => (Array.isArray(header) ? header[0] : header)

/**
 * Returns whether the page that sent the request belongs to a host from which sign-in is allowed.
 */
export const isFromStateful = (
  { statefulDomains }: Services,
  { headers, requestOrigin }: Omit<Calling, 'ip'>,
): boolean =>
  isStatefulHost({ origin: one(headers.origin), referer: one(headers.referer), requestOrigin }, statefulDomains())

/** Returns the host that `isFromStateful` compares; null for an unreadable header. */
export const hostOfCall = ({ headers, requestOrigin }: Omit<Calling, 'ip'>): string | null =>
  callingHost({ origin: one(headers.origin), referer: one(headers.referer), requestOrigin })

/**
 * Returns whether the server accepts the session cookie of the call. Browsers send cookies from
 * pages of any site, so only pages of stateful domains may use a session.
 */
const isTrustedOrigin = (services: Services, calling: Calling): boolean =>
  one(calling.headers.origin) !== 'null' && isFromStateful(services, calling)

/**
 * Returns the session of a call with its user, who may be inactive. Returns undefined when there is
 * no session or the session has ended.
 */
export async function sessionOf(services: Services, calling: Calling) {
  const secret = cookieOf({ ...calling, services }, sessionCookie)
  if (secret === undefined || !/^[\w-]{43}$/.test(secret) || !isTrustedOrigin(services, calling)) return undefined
  const hash = sha256Hex(secret)
  const row = await services.store.db
    .selectFrom('sessions')
    .innerJoin('users', 'users.id', 'sessions.user_id')
    .innerJoin('roles', 'roles.id', 'users.role_id')
    .select(['sessions.id', 'sessions.is_remembered', 'sessions.last_used_at', 'sessions.expires_at'])
    .select(callerColumns)
    // The query compares hashes of the secret, so its duration does not help to guess the secret.
    .where('sessions.secret_hash', '=', hash)
    .executeTakeFirst()
  if (!row) return undefined
  const time = services.clock.now()
  const isIdle = row.is_remembered !== 1 && row.last_used_at <= idleSince(time)
  return isIdle || row.expires_at <= stamp(time) ? undefined : { ...row, csrf: csrfOf(services, hash) }
}

/**
 * Returns the idle limit: a session that was not used after this time has ended. The limit applies
 * only to sessions without "remember me".
 */
export const idleSince = (time: Date): string => stamp(new Date(time.getTime() - idleMs))

const maxUserAgentLength = 500

/** Returns the `User-Agent` header of the request; null when there is none. */
export const userAgentOf = ({ headers }: Pick<Context, 'headers'>): string | null =>
  one(headers['user-agent'])?.slice(0, maxUserAgentLength) ?? null

/**
 * Starts a session and sets its cookies. The caller emits the event
 * (resources/authentication/sessions.ts).
 */
export async function startSession(ctx: Context, userId: number, isRemembered: boolean): Promise<CallingSession> {
  const secret = newSecret()
  const hash = sha256Hex(secret)
  const at = stamp(ctx.time)
  const lasts = isRemembered ? rememberedMs : maxSessionMs
  const { id } = await ctx.db
    .insertInto('sessions')
    .values({
      user_id: userId,
      secret_hash: hash,
      is_remembered: isRemembered ? 1 : 0,
      last_used_at: at,
      expires_at: stamp(new Date(ctx.time.getTime() + lasts)),
      ip: ctx.ip,
      user_agent: userAgentOf(ctx),
      created_at: at,
      updated_at: at,
    })
    .returning('id')
    .executeTakeFirstOrThrow()
  const csrf = csrfOf(ctx.services, hash)
  setCookie(ctx, sessionCookie, secret, { isHidden: true, ...(isRemembered && { seconds: lasts / 1000 }) })
  setCookie(ctx, csrfCookie, csrf, { isHidden: false })
  return { id, csrf }
}

export function clearCookies(ctx: Context): void {
  setCookie(ctx, sessionCookie, '', { isHidden: true, seconds: 0 })
  setCookie(ctx, csrfCookie, '', { isHidden: false, seconds: 0 })
}

// `csrfOf` derives the value of the cookie `XSRF-TOKEN` from the session. If a sibling subdomain
// overwrites the cookie, its value does not match the session. `visitorMac` signs the value for a
// visitor who has not signed in.
const csrfOf = ({ encryption }: Services, hash: string): string => encryption.hmac(`csrf:session:${hash}`)
const visitorMac = ({ encryption }: Services, nonce: string): string => encryption.hmac(`csrf:visitor:${nonce}`)
const csrfMismatch = (): Problem => new Problem('csrf_mismatch')

const sentCsrf = (headers: Context['headers']): string =>
  one(headers['x-xsrf-token']) ?? one(headers['x-csrf-token']) ?? ''

/** Throws 403 when a call with a session does not send the CSRF value of the session. */
export function checkCsrf({ csrf }: CallingSession, headers: Context['headers']): void {
  if (!constantTimeEquals(sentCsrf(headers), csrf)) throw csrfMismatch()
}

/**
 * Sets the CSRF cookie, which scripts can read. Its value belongs to the session; without a
 * session, it is a new value for the sign-in. Sets nothing when a page of an untrusted domain sends
 * a session cookie: a new value would overwrite that of the signed-in user.
 */
export async function offerCsrf(ctx: Context): Promise<void> {
  if (cookieOf(ctx, sessionCookie) !== undefined && !isTrustedOrigin(ctx.services, callingOf(ctx))) return
  const nonce = randomBytes(16).toString('base64url')
  const session = await sessionOf(ctx.services, callingOf(ctx))
  const value = session?.csrf ?? `${nonce}.${visitorMac(ctx.services, nonce)}`
  setCookie(ctx, csrfCookie, value, { isHidden: false })
}

/** Throws 403 for a sign-in that does not send the CSRF value set by `offerCsrf`. */
export async function checkVisitorCsrf(ctx: Context): Promise<void> {
  const { headers, services } = ctx
  const session = await sessionOf(services, callingOf(ctx))
  if (session) return checkCsrf(session, headers)
  const kept = cookieOf(ctx, csrfCookie) ?? ''
  const [nonce = '', mac = ''] = kept.split('.')
  const isOwn = constantTimeEquals(mac, visitorMac(services, nonce))
  if (!isOwn || !constantTimeEquals(sentCsrf(headers), kept) || one(headers.origin) === 'null') throw csrfMismatch()
}

export const callingOf = ({ headers, ip, requestOrigin }: Context): Calling => ({
  headers,
  ip: ip ?? '',
  requestOrigin,
})
