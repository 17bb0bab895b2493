// The context of a call: the first argument of every handler. It contains the caller, the database,
// the time and the services, as plain data and functions. Inside a transaction, handlers get a copy
// whose `db` is that transaction.

import { randomUUID } from 'node:crypto'
import type { Db } from '../../db/store.ts'
import type { IgnoredKey } from '../contract/input/normalize.ts'
import { operations } from '../contract/operations.gen.ts'
import type { EventBase, OperationFact, OperationId, Schema } from '../contract/types.ts'
import { covers } from './auth/abilities.ts'
import { forbidden, Problem } from './errors.ts'

export type Origin = Schema<'EventOrigin'>

export interface CurrentUser {
  id: number
  name: string
  email: string
  roleId: number
  /** The user's permission keys; `all` means every key. */
  permissions: 'all' | ReadonlySet<string>
  viewPermission: 'global' | 'group' | 'individual'
  /**
   * The ids of the owners whose records the user sees; null when the user sees all.
   */
  visibleOwners: readonly number[] | null
  /** Whether a limited view includes leads, persons, organizations and quotes without an owner. */
  seesOwnerless: boolean
}

export interface CallingToken {
  id: number
  abilities: readonly string[]
  /** The networks from which the token may be used; an empty list allows all networks. */
  allowedIps: readonly string[]
  /** The time when the token expires; null for a token that never expires. */
  expiresAt: string | null
}

export interface CallingSession {
  id: number
  /** The CSRF token. Every request that changes data must send it. */
  csrf: string
}

/**
 * The hooks of one kind of job. `onBuried` runs when the retries of a job are exhausted. `revive`
 * runs when a user retries such a job. See `JobKind` in jobs/queue.ts.
 */
export interface JobHooks {
  isMail: boolean
  onBuried?: (ctx: Context, payload: object, cause: string) => Promise<void>
  revive?: (ctx: Context, payload: object) => Promise<object | undefined>
}

/**
 * Functions that a slice calls in a later slice. A slice may import only earlier slices (the order
 * is in src/README.md). The calling slice declares the function with `declare module`, and app.ts
 * supplies it.
 */
// biome-ignore lint/suspicious/noEmptyInterface: the slices declare its members
export interface SliceFunctions {}

/** The services of a server, shared by all its requests. services.ts lists them. */
// biome-ignore lint/suspicious/noEmptyInterface: services.ts declares its members
export interface Services {}

export interface Log {
  error(about: object, message: string): void
  warn(about: object, message: string): void
  info(about: object, message: string): void
}

export interface Warning {
  field: string
  message: string
}

export interface Context {
  readonly services: Services
  readonly db: Db
  readonly operation: OperationId | null
  readonly user: CurrentUser | null
  readonly token: CallingToken | null
  /**
   * The session of the caller; null when the caller sent a token. A session has all permissions of
   * its user.
   */
  readonly session: CallingSession | null
  readonly origin: Origin
  readonly requestId: string
  readonly ip: string | null
  readonly dryRun: boolean
  /** The names of body fields that were removed because the schema refuses their values. */
  readonly refused?: readonly string[]
  /** The value of the If-Match header. It applies to the record in the path. */
  readonly ifMatch: string | null
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  /** The scheme and host under which callers reach this server, without a trailing slash. */
  readonly baseUrl: string
  /**
   * The scheme and host that the client used for this request. ACCORD_APP_URL does not change them.
   * A forwarding header is used only if a trusted proxy sent it.
   */
  readonly requestOrigin: string
  readonly path: string
  readonly query: string
  readonly time: Date
  /** The ids of required attributes that a record may omit in this call. */
  readonly excused?: ReadonlySet<number>
  /**
   * The id of the workflow run that makes this call. Events of this call store the id, so that a
   * workflow cannot trigger itself endlessly.
   */
  readonly workflowRun?: number
  /** The cookies that the reply sets (auth/cookies.ts). */
  readonly cookies: string[]
  /**
   * Warnings about accepted input that may be a mistake. The reply lists them in `meta.warnings`.
   */
  readonly warnings: Warning[]
  /** The version that the body of a PUT without If-Match repeats from a reply. */
  readonly bodyVersion?: number
  /** The read-only keys that the body had, and the event of the change to which they belong. */
  readonly ignored?: { event: EventBase | undefined; keys: readonly IgnoredKey[] }
  /**
   * The record that was just written. The caller may see this record even if the record's owner is
   * not visible to the caller.
   */
  readonly visibleRecord?: { table: string; id: number }
}

/** Returns the context of commands and jobs. It has no user and therefore every permission. */
export function systemContext(services: Services, origin: Origin): Context {
  const { config, store, clock } = services
  const base = config.appUrl ?? `http://localhost:${config.port}`
  return {
    services,
    db: store.db,
    operation: null,
    user: null,
    token: null,
    session: null,
    origin,
    requestId: randomUUID(),
    ip: null,
    dryRun: false,
    ifMatch: null,
    headers: {},
    baseUrl: base,
    requestOrigin: base,
    path: '',
    query: '',
    time: clock.now(),
    unit: null,
    cookies: [],
    warnings: [],
    keyed: null,
  }
}

/** Adds a warning to the reply, unless the reply already contains the same warning. */
export function warn({ warnings }: Context, field: string, message: string): void {
  if (!warnings.some((each) => each.field === field && each.message === message)) warnings.push({ field, message })
}

/**
 * Returns a context for writes that must persist even if the call fails. Such a write gets a
 * transaction of its own and ignores dry run and Idempotency-Key.
 */
export const apart = (ctx: Context): Context => ({ ...ctx, dryRun: false, unit: null, keyed: null })

/**
 * Returns the time of the request in stored form. All calls during one request return the same
 * time.
 */
export const now = (ctx: Context): string => textOf(ctx.time)

let last = { time: Number.NaN, text: '' }

/**
 * Returns a time in stored form. The last result is cached, because one write needs the same text
 * many times and formatting takes as long as a simple query.
 */
function textOf(at: Date): string {
  const time = at.getTime()
  if (time !== last.time) last = { time, text: at.toISOString() }
  return last.text
}

/**
 * Returns the signed-in user. Throws when there is none: only operations that require sign-in may
 * call this function.
 */
export function requireUser(ctx: Context): CurrentUser {
  if (!ctx.user) throw new Error('This needs a signed-in user: the operation must not be public.')
  return ctx.user
}

/**
 * Returns the author of a write; null when the author is the system. A workflow acts with a user's
 * rights, but the system counts as the author of its writes.
 */
export const author = ({ user, workflowRun }: Pick<Context, 'user' | 'workflowRun'>): CurrentUser | null =>
  workflowRun === undefined ? user : null

/**
 * Returns whether the caller's role has a permission. `canCall` also checks the ability of the
 * caller's token.
 */
export const hasPermission = (ctx: { readonly user: Pick<CurrentUser, 'permissions'> | null }, key: string): boolean =>
  ctx.user === null || ctx.user.permissions === 'all' || ctx.user.permissions.has(key)

const hasAbility = ({ token }: Pick<Context, 'token'>, ability: string | null): boolean =>
  ability === null || token === null || covers(token.abilities, ability)

type Needs = Pick<OperationFact, 'permission' | 'ability'>

/**
 * Returns whether the caller may call an operation: the role must have the operation's permission,
 * and the token must have the operation's ability.
 */
export const canCall = (ctx: Pick<Context, 'user' | 'token'>, { permission, ability }: Needs): boolean =>
  hasAbility(ctx, ability) && (permission === null || hasPermission(ctx, permission))

/**
 * Throws 403 with the missing permission or ability when the caller may not call an operation. A
 * handler that also does the work of another operation calls this function for that operation.
 */
export function assertCanCall(ctx: Context, operation: OperationId | Needs): void {
  const { permission, ability }: Needs = typeof operation === 'string' ? operations[operation] : operation
  if (ability !== null && !hasAbility(ctx, ability))
    throw new Problem('forbidden', `This token lacks the ability ${ability}.`, { required: ability })
  if (permission !== null && !hasPermission(ctx, permission)) throw forbidden(permission)
}
