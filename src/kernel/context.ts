// The first argument of every handler: the caller, the database, the time and the services. Plain
// data and functions; inside a transaction the context is a copy whose `db` is that transaction
// (house rule 4).
import { randomUUID } from 'node:crypto'
import type { StatementCheck } from '../../db/compiled-queries.ts'
import type { SearchIndex } from '../../db/search/search-index.ts'
import type { Db, Store } from '../../db/store.ts'
import type { Config } from '../config/config.ts'
import { operations } from '../contract/operations.gen.ts'
import type { OperationFact, OperationId } from '../contract/types.ts'
import type { Mailer } from '../mail/outbound.ts'
import { covers } from './auth/abilities.ts'
import type { Encryption } from './auth/encryption.ts'
import { forbidden, Problem } from './errors.ts'
import type { FileStore } from './files/file-store.ts'
import type { Uploads } from './files/multipart.ts'
import type { Releases } from './history/delete-hooks.ts'
import type { Outbound } from './outbound/client.ts'
import type { Sight } from './query/event-visibility.ts'
import type { Resource } from './resource/definition.ts'
import type { Disk } from './runtime/disk-space.ts'
import type { Metrics } from './runtime/metrics.ts'
import type { Offload } from './runtime/offload.ts'
import type { Emitter } from './write/events.ts'
import type { KeyedRequest } from './write/idempotency.ts'
import type { Unit } from './write/write.ts'

export type Origin = 'api' | 'session' | 'import' | 'web_form' | 'inbound_mail' | 'workflow' | 'campaign' | 'cli'

export interface CurrentUser {
  id: number
  name: string
  email: string
  roleId: number
  /** Permission keys in force; `all` for every one. */
  permissions: 'all' | ReadonlySet<string>
  viewPermission: 'global' | 'group' | 'individual'
  /** Owners whose records the user sees; null for all (DOMAIN 7.4). */
  visibleOwners: readonly number[] | null
}

export interface CallingToken {
  id: number
  abilities: readonly string[]
  /** Networks it may be used from; an empty list means everywhere. */
  allowedIps: readonly string[]
  /** Null for never. */
  expiresAt: string | null
}

export interface CallingSession {
  id: number
  /** The value that every writing call must send. */
  csrf: string
}

/**
 * What a job does to the rows it works on when it is given up or retried by a user (jobs/queue.ts).
 */
export interface JobHooks {
  isMail: boolean
  onBuried?: (ctx: Context, payload: object, cause: string) => Promise<void>
  revive?: (ctx: Context, payload: object) => Promise<object | undefined>
}

/** Self-checks that tests hand in (test/support/verifier.ts). A server has none. */
export interface Verifier {
  /**
   * Runs `save`, which saves the links of a record, and throws when it changed the record without
   * saying so.
   */
  checkLinks(
    record: { noun: string; readStored: () => Promise<unknown>; readShown: () => Promise<unknown> },
    save: () => Promise<boolean>,
  ): Promise<boolean>
}

/**
 * Functions that a slice needs from one further right in the order of src/README.md. The slice on
 * the left declares each with `declare module`; app.ts hands them in.
 */
// biome-ignore lint/suspicious/noEmptyInterface: the slices declare its members
export interface SliceFunctions {}

/** The services of a server, shared by all its requests. */
export interface Services {
  config: Config
  store: Store
  searchIndex: SearchIndex
  events: Emitter
  /** The delete hooks, by entity. */
  releases: Releases
  /** All resources by entity (`leads`, `persons` …). */
  resources: ReadonlyMap<string, Resource<unknown, never>>
  /** The rule that says who may see events, for each type of record. */
  sights: ReadonlyMap<string, Sight>
  /** The bytes of files. */
  files: FileStore
  /** Removes bytes that no file refers to. */
  sweepFiles: (ctx: Context, sha256s: readonly string[]) => Promise<void>
  /** The generated contract this program runs. */
  contract: object
  clock: { now(): Date }
  log: Log
  /** Encrypts secrets that are stored and read again. */
  seal: Encryption
  statefulDomains: () => readonly string[]
  /** The counters of `/metrics`. */
  metrics: Metrics
  /** Whether the disks have free space. */
  disk: Disk
  /** Functions of slices for slices that may not import them. */
  slices: SliceFunctions
  /** The names of an entity's fields for people, by code. */
  fieldLabels: (ctx: Context, entity: string) => Promise<ReadonlyMap<string, string>>
  /** Sends mail. */
  mailer: Mailer
  /** Runs work that would block the event loop in subprocesses. */
  offload: Offload
  /** Sends requests to addresses that users entered. */
  outbound: Outbound
  /**
   * By kind of job; handed in because the slices that define jobs stand right of the slice that
   * retries them.
   */
  jobs: ReadonlyMap<string, JobHooks>
  /** Tells the worker of this process that a job may be due. */
  wake: () => void
  /** Checks each use of a cached statement. */
  checkStatement?: StatementCheck | undefined
  /** Whether the published contract exists and is current. */
  readiness: () => 'ok' | 'missing' | 'outdated'
  verifier?: Verifier | undefined
}

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
  /** Set instead of a token. A session may do everything its user may do. */
  readonly session: CallingSession | null
  readonly origin: Origin
  readonly requestId: string
  readonly ip: string | null
  readonly dryRun: boolean
  /** Fields that were removed from the body because its schema refuses them. */
  readonly refused?: readonly string[]
  /** The value of If-Match, which is about the record in the path. */
  readonly ifMatch: string | null
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  /** Scheme and host of this server as the caller sees it, without a trailing slash. */
  readonly baseUrl: string
  /**
   * Scheme and host the request was sent to, whatever ACCORD_APP_URL says; a forwarded host counts
   * from a trusted proxy only.
   */
  readonly requestOrigin: string
  readonly path: string
  readonly query: string
  readonly time: Date
  readonly unit: Unit | null
  /** Ids of required attributes that records may lack in this call. */
  readonly excused?: ReadonlySet<number>
  /**
   * The workflow run that makes this call. Its changes are marked with it, so that workflows cannot
   * loop.
   */
  readonly workflowRun?: number
  /** Cookies that the reply sets (cookies.ts). */
  readonly cookies: string[]
  /** Accepted input that may be a mistake; `meta.warnings` of the reply lists it. */
  readonly warnings: Warning[]
  /** The files that came with the body. */
  readonly uploads?: Uploads
  /** The record just written: the caller may see it whatever its owner. */
  readonly visibleRecord?: { table: string; id: number }
  /**
   * Set for a request with an Idempotency-Key whose handler opens its own transactions
   * (idempotency.ts).
   */
  readonly keyed: KeyedRequest | null
  /**
   * Records found visible in this transaction, by entity: references to them are not checked again.
   */
  readonly sighted?: ReadonlyMap<string, ReadonlySet<number>>
  /** Set while one transaction writes many records of a type (`oncePerBatch`). */
  readonly batch?: BatchReads
}

/** Results of reads about other types than the one that the batch writes. */
export interface BatchReads {
  readonly entity: string
  readonly results: Map<string, unknown>
}

/** The context of commands and jobs: no user, every permission. */
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

/** Adds a warning to the reply, once. */
export function warn({ warnings }: Context, field: string, message: string): void {
  if (!warnings.some((each) => each.field === field && each.message === message)) warnings.push({ field, message })
}

/** The part of a reply that lists the warnings, if there are any. */
export const warned = ({ warnings }: Context): { meta?: { warnings: Warning[] } } =>
  warnings.length === 0 ? {} : { meta: { warnings } }

/**
 * A context for writes that do not depend on the outcome of the call: no dry run, no idempotent
 * answer.
 */
export const apart = (ctx: Context): Context => ({ ...ctx, dryRun: false, unit: null, keyed: null })

/** The time of the request in stored form. One request has one time. */
export const now = (ctx: Context): string => textOf(ctx.time)

let last = { time: Number.NaN, text: '' }

/** Cached: one write needs it many times, and formatting it takes as long as a simple query. */
function textOf(at: Date): string {
  const time = at.getTime()
  if (time !== last.time) last = { time, text: at.toISOString() }
  return last.text
}

/** The signed-in user. Throws in a public operation, which is a bug. */
export function requireUser(ctx: Context): CurrentUser {
  if (!ctx.user) throw new Error('This needs a signed-in user: the operation must not be public.')
  return ctx.user
}

/**
 * The author of a write. A workflow has the rights of a user, but the system is its author (DOMAIN
 * 18.3).
 */
export const author = ({ user, workflowRun }: Pick<Context, 'user' | 'workflowRun'>): CurrentUser | null =>
  workflowRun === undefined ? user : null

/** Whether the caller's role has a permission. `canCall` checks the token's ability too. */
export const hasPermission = (ctx: Pick<Context, 'user'>, key: string): boolean =>
  ctx.user === null || ctx.user.permissions === 'all' || ctx.user.permissions.has(key)

const hasAbility = ({ token }: Pick<Context, 'token'>, ability: string | null): boolean =>
  ability === null || token === null || covers(token.abilities, ability)

type Needs = Pick<OperationFact, 'permission' | 'ability'>

/**
 * Whether the caller may call an operation: the role has its permission and the token its ability.
 */
export const canCall = (ctx: Pick<Context, 'user' | 'token'>, { permission, ability }: Needs): boolean =>
  hasAbility(ctx, ability) && (permission === null || hasPermission(ctx, permission))

/**
 * For a write that includes the work of another operation. Throws 403 with the permission or
 * ability it lacks.
 */
export function assertCanCall(ctx: Context, operation: OperationId | Needs): void {
  const { permission, ability }: Needs = typeof operation === 'string' ? operations[operation] : operation
  if (ability !== null && !hasAbility(ctx, ability))
    throw new Problem('forbidden', `This token lacks the ability ${ability}.`, { required: ability })
  if (permission !== null && !hasPermission(ctx, permission)) throw forbidden(permission)
}
