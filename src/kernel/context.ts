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
  /** The user's permission keys; `all` stands for every key. */
  permissions: 'all' | ReadonlySet<string>
  viewPermission: 'global' | 'group' | 'individual'
  /** Ids of the owners whose records the user sees; null for all (DOMAIN 7.4). */
  visibleOwners: readonly number[] | null
}

export interface CallingToken {
  id: number
  abilities: readonly string[]
  /** Networks from which the token may be used; an empty list allows all. */
  allowedIps: readonly string[]
  /** When the token expires; null for never. */
  expiresAt: string | null
}

export interface CallingSession {
  id: number
  /** The CSRF value that every writing call must send. */
  csrf: string
}

/**
 * Changes the rows that a job works on when its retries are exhausted or a user retries it
 * (jobs/queue.ts).
 */
export interface JobHooks {
  isMail: boolean
  onBuried?: (ctx: Context, payload: object, cause: string) => Promise<void>
  revive?: (ctx: Context, payload: object) => Promise<object | undefined>
}

/** Self-checks that tests supply (test/support/verifier.ts). A production server has none. */
export interface Verifier {
  /**
   * Runs `save`, which saves the links of a record. Throws when `save` changed the record but
   * returned false.
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
  /** The delete hooks of each entity. */
  releases: Releases
  /** All resources by entity (`leads`, `persons` …). */
  resources: ReadonlyMap<string, Resource<unknown, never>>
  /** The visibility rule for the events of each entity. */
  sights: ReadonlyMap<string, Sight>
  /** The bytes of files. */
  files: FileStore
  /** Removes bytes that no file refers to. */
  sweepFiles: (ctx: Context, sha256s: readonly string[]) => Promise<void>
  /** The generated contract of this program version. */
  contract: object
  clock: { now(): Date }
  log: Log
  /** Encrypts secrets that are stored and read again. */
  seal: Encryption
  statefulDomains: () => readonly string[]
  /** The counters of `/metrics`. */
  metrics: Metrics
  /** Reports whether the disks have free space. */
  disk: Disk
  /** Functions of slices, for other slices that may not import them. */
  slices: SliceFunctions
  /** Returns the display names of an entity's fields, by attribute code. */
  fieldLabels: (ctx: Context, entity: string) => Promise<ReadonlyMap<string, string>>
  /** Sends mail. */
  mailer: Mailer
  /** Runs work in subprocesses, because it would block the event loop. */
  offload: Offload
  /** Sends requests to URLs that users entered. */
  outbound: Outbound
  /**
   * The hooks of each kind of job. app.ts supplies them, because the slice that retries jobs may
   * not import the slices that define them.
   */
  jobs: ReadonlyMap<string, JobHooks>
  /** Notifies the worker of this process that a job may be due. */
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
  /** The session of the caller; null for a token. A session has all permissions of its user. */
  readonly session: CallingSession | null
  readonly origin: Origin
  readonly requestId: string
  readonly ip: string | null
  readonly dryRun: boolean
  /** Fields that were removed from the body because its schema refuses them. */
  readonly refused?: readonly string[]
  /** The value of If-Match, which refers to the record in the path. */
  readonly ifMatch: string | null
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  /** Scheme and host under which callers reach this server, without a trailing slash. */
  readonly baseUrl: string
  /**
   * Scheme and host to which the request was sent, whatever ACCORD_APP_URL says. A forwarded host
   * counts only from a trusted proxy.
   */
  readonly requestOrigin: string
  readonly path: string
  readonly query: string
  readonly time: Date
  readonly unit: Unit | null
  /** Ids of required attributes that a record may omit in this call. */
  readonly excused?: ReadonlySet<number>
  /**
   * The id of the workflow run that makes this call. Its changes carry this id, so that workflows
   * cannot loop.
   */
  readonly workflowRun?: number
  /** Cookies that the reply sets (cookies.ts). */
  readonly cookies: string[]
  /**
   * Warnings about accepted input that may be a mistake. The reply lists them in `meta.warnings`.
   */
  readonly warnings: Warning[]
  /** The files that came with the body. */
  readonly uploads?: Uploads
  /** The record just written. The caller may see it, even if its owner is not visible. */
  readonly visibleRecord?: { table: string; id: number }
  /**
   * Set for a request with an Idempotency-Key whose handler opens its own transactions
   * (idempotency.ts).
   */
  readonly keyed: KeyedRequest | null
  /**
   * Ids of records found visible in this transaction, by entity. References to them are not checked
   * again.
   */
  readonly sighted?: ReadonlyMap<string, ReadonlySet<number>>
  /** Set while one transaction writes many records of a type (`oncePerBatch`). */
  readonly batch?: BatchReads
}

/**
 * Results of reads that one batch reuses. They concern other entities than the one that the batch
 * writes.
 */
export interface BatchReads {
  readonly entity: string
  readonly results: Map<string, unknown>
}

/** Returns the context of commands and jobs: no user, every permission. */
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

/** Adds a warning to the reply, unless it is already there. */
export function warn({ warnings }: Context, field: string, message: string): void {
  if (!warnings.some((each) => each.field === field && each.message === message)) warnings.push({ field, message })
}

/** Returns the part of a reply that lists the warnings; empty without warnings. */
export const warned = ({ warnings }: Context): { meta?: { warnings: Warning[] } } =>
  warnings.length === 0 ? {} : { meta: { warnings } }

/**
 * Returns a context for writes that persist even if the call fails: no dry run, no Idempotency-Key,
 * a transaction of its own.
 */
export const apart = (ctx: Context): Context => ({ ...ctx, dryRun: false, unit: null, keyed: null })

/** Returns the time of the request in stored form. It stays the same during the whole request. */
export const now = (ctx: Context): string => textOf(ctx.time)

let last = { time: Number.NaN, text: '' }

/**
 * The last text is cached, because one write needs it many times and formatting it takes as long as
 * a simple query.
 */
function textOf(at: Date): string {
  const time = at.getTime()
  if (time !== last.time) last = { time, text: at.toISOString() }
  return last.text
}

/** Returns the signed-in user. Throws in a public operation, where calling it is a bug. */
export function requireUser(ctx: Context): CurrentUser {
  if (!ctx.user) throw new Error('This needs a signed-in user: the operation must not be public.')
  return ctx.user
}

/**
 * Returns the author of a write, or null for the system. A workflow acts with a user's rights, but
 * the system is the author of its writes (DOMAIN 18.3).
 */
export const author = ({ user, workflowRun }: Pick<Context, 'user' | 'workflowRun'>): CurrentUser | null =>
  workflowRun === undefined ? user : null

/**
 * Returns whether the caller's role has a permission. `canCall` checks the token's ability, too.
 */
export const hasPermission = (ctx: Pick<Context, 'user'>, key: string): boolean =>
  ctx.user === null || ctx.user.permissions === 'all' || ctx.user.permissions.has(key)

const hasAbility = ({ token }: Pick<Context, 'token'>, ability: string | null): boolean =>
  ability === null || token === null || covers(token.abilities, ability)

type Needs = Pick<OperationFact, 'permission' | 'ability'>

/**
 * Returns whether the caller may call an operation: the role has its permission and the token its
 * ability.
 */
export const canCall = (ctx: Pick<Context, 'user' | 'token'>, { permission, ability }: Needs): boolean =>
  hasAbility(ctx, ability) && (permission === null || hasPermission(ctx, permission))

/**
 * Throws 403 with the missing permission or ability. For a write that includes the work of another
 * operation.
 */
export function assertCanCall(ctx: Context, operation: OperationId | Needs): void {
  const { permission, ability }: Needs = typeof operation === 'string' ? operations[operation] : operation
  if (ability !== null && !hasAbility(ctx, ability))
    throw new Problem('forbidden', `This token lacks the ability ${ability}.`, { required: ability })
  if (permission !== null && !hasPermission(ctx, permission)) throw forbidden(permission)
}
