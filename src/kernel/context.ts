// What every handler receives first: who is calling, through which database, at what time. Plain data and functions;
// inside a transaction the context is a copy whose `db` is that transaction (house rule 4).
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
  /** Networks it may be used from; none for everywhere. */
  allowedIps: readonly string[]
  /** Null for never. */
  expiresAt: string | null
}

export interface CallingSession {
  id: number
  /** What a call that writes must carry. */
  csrf: string
}

/** What it means for the rows that a job works on when the job is given up, or somebody wants it done after all (jobs/queue.ts). */
export interface JobHooks {
  isMail: boolean
  onBuried?: (ctx: Context, payload: object, cause: string) => Promise<void>
  revive?: (ctx: Context, payload: object) => Promise<object | undefined>
}

/** Self-checks that tests hand in (test/support/verifier.ts). A server has none. */
export interface Verifier {
  /** Runs `save`, which saves the links of a record, and throws when it changed the record without saying so. */
  checkLinks(
    record: { noun: string; readStored: () => Promise<unknown>; readShown: () => Promise<unknown> },
    save: () => Promise<boolean>,
  ): Promise<boolean>
}

/**
 * Functions that a slice needs from one further right in the order of src/README.md. The slice on the left
 * declares each with `declare module`; app.ts hands them in.
 */
// biome-ignore lint/suspicious/noEmptyInterface: the slices declare its members
export interface SliceFunctions {}

/** What is the same for every request of a server. */
export interface Services {
  config: Config
  store: Store
  searchIndex: SearchIndex
  events: Emitter
  /** What goes with a deleted record, by entity. */
  releases: Releases
  /** All resources by entity (`leads`, `persons` …), for what is the same for all of them. */
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
  /** Encrypts what must be kept but not be readable in the file. */
  seal: Encryption
  statefulDomains: () => readonly string[]
  /** What the server counts of itself. */
  metrics: Metrics
  /** Whether there is room for what is to be stored. */
  disk: Disk
  /** Functions of slices for slices that may not import them. */
  slices: SliceFunctions
  /** The names of an entity's fields for people, by code. */
  fieldLabels: (ctx: Context, entity: string) => Promise<ReadonlyMap<string, string>>
  /** Mail going out. */
  mailer: Mailer
  /** Work that would hold the event loop up. */
  offload: Offload
  /** Requests to addresses that others have chosen. */
  outbound: Outbound
  /** By the kind of the job; handed in because the slices that define them come after what people decide about jobs. */
  jobs: ReadonlyMap<string, JobHooks>
  /** Something may be due for the worker of this process. */
  wake: () => void
  /** Checks each use of a cached statement. */
  checkStatement?: StatementCheck | undefined
  /** Whether the published contract is there and current. */
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
  /** Instead of a token, which then is null; it can do all that its user can. */
  readonly session: CallingSession | null
  readonly origin: Origin
  readonly requestId: string
  readonly ip: string | null
  readonly dryRun: boolean
  /** Fields that a body tried on lacks, because its schema refuses them. */
  readonly refused?: readonly string[]
  /** Value of If-Match, for the record in the path. */
  readonly ifMatch: string | null
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  /** Scheme and host of this server as the caller sees it, without a trailing slash. */
  readonly baseUrl: string
  /** Scheme and host the request was sent to, whatever ACCORD_APP_URL says; a forwarded host counts from a trusted proxy only. */
  readonly requestOrigin: string
  readonly path: string
  readonly query: string
  readonly time: Date
  readonly unit: Unit | null
  /** Attributes that records may lack here although they are required: by id. */
  readonly excused?: ReadonlySet<number>
  /** The run of a workflow on whose behalf this happens; what it changes is marked with it, so that no chain runs in a circle. */
  readonly workflowRun?: number
  /** Set with the answer (cookies.ts). */
  readonly cookies: string[]
  /** What was taken although something speaks against it; told in `meta.warnings` of the reply. */
  readonly warnings: Warning[]
  /** The files that came with the body. */
  readonly uploads?: Uploads
  /** One record the caller may see whoever owns it: the one just written. */
  readonly visibleRecord?: { table: string; id: number }
  /** Set for a request with an Idempotency-Key whose handler opens its own transactions (idempotency.ts). */
  readonly keyed: KeyedRequest | null
  /** Records that the caller was found to see in this transaction, by entity: it is not looked again when one is referred to. */
  readonly sighted?: ReadonlyMap<string, ReadonlySet<number>>
}

/** Whoever acts when nobody has called: commands and jobs. No user, every permission. */
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

/** Says in the reply that something was taken which may be a mistake; once. */
export function warn({ warnings }: Context, field: string, message: string): void {
  if (!warnings.some((each) => each.field === field && each.message === message)) warnings.push({ field, message })
}

/** The part of a reply that tells of warnings, if there are any. */
export const warned = ({ warnings }: Context): { meta?: { warnings: Warning[] } } =>
  warnings.length === 0 ? {} : { meta: { warnings } }

/** For what is written beside the work of a call, whatever becomes of that: never rehearsed, never part of an idempotent answer. */
export const apart = (ctx: Context): Context => ({ ...ctx, dryRun: false, unit: null, keyed: null })

/** Time of the request, as stored. One request sees one time. */
export const now = (ctx: Context): string => textOf(ctx.time)

let last = { time: Number.NaN, text: '' }

/** A write asks for it again and again, and writing it out takes as long as a simple query. */
function textOf(at: Date): string {
  const time = at.getTime()
  if (time !== last.time) last = { time, text: at.toISOString() }
  return last.text
}

/** The signed-in user; only operations behind a token reach code that asks. */
export function requireUser(ctx: Context): CurrentUser {
  if (!ctx.user) throw new Error('This needs a signed-in user: the operation must not be public.')
  return ctx.user
}

/** In whose name something is written. A workflow has the rights of a user and writes in the name of the system (DOMAIN 18.3). */
export const author = ({ user, workflowRun }: Pick<Context, 'user' | 'workflowRun'>): CurrentUser | null =>
  workflowRun === undefined ? user : null

/** Whether the caller's role has a permission. Where an operation asks, `may` asks about its ability as well. */
export const hasPermission = (ctx: Pick<Context, 'user'>, key: string): boolean =>
  ctx.user === null || ctx.user.permissions === 'all' || ctx.user.permissions.has(key)

const hasAbility = ({ token }: Pick<Context, 'token'>, ability: string | null): boolean =>
  ability === null || token === null || covers(token.abilities, ability)

type Needs = Pick<OperationFact, 'permission' | 'ability'>

/** Whether the caller could call an operation that needs this: the role has the permission, the token the ability. */
export const canCall = (ctx: Pick<Context, 'user' | 'token'>, { permission, ability }: Needs): boolean =>
  hasAbility(ctx, ability) && (permission === null || hasPermission(ctx, permission))

/** For a write that does on the way what another operation does. Throws 403 with what is missing for that one. */
export function assertCanCall(ctx: Context, operation: OperationId | Needs): void {
  const { permission, ability }: Needs = typeof operation === 'string' ? operations[operation] : operation
  if (ability !== null && !hasAbility(ctx, ability))
    throw new Problem('forbidden', `This token lacks the ability ${ability}.`, { required: ability })
  if (permission !== null && !hasPermission(ctx, permission)) throw forbidden(permission)
}
