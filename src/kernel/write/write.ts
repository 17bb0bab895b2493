// The only place in src that opens transactions and emits events. The order of a write is:
// `before` event, work, event log, commit, `after` event. Veto, rollback and dry run are
// implemented here, so they apply to every write.
import { CompiledQuery } from 'kysely'
import type { Db, RecordRef } from '../../../db/store.ts'
import type { EventBase } from '../../contract/types.ts'
import { author, type Context, now, warn } from '../context.ts'
import { Problem } from '../errors.ts'
import { sightOf } from '../query/event-visibility.ts'
import { toUnavailableProblem } from '../runtime/unavailable.ts'
import { changedKeys, derivedKeysOf, record, withoutSecretKeys } from './event-log.ts'
import { type AccordEvent, ListenerFailed, type Snapshot, Veto } from './events.ts'

/** The state of a transaction in progress. */
export interface UnitOfWork {
  /** The events to emit after the commit. */
  readonly after: AccordEvent[]
  /**
   * The id of the first event that the transaction logged. Later events of the transaction store
   * this id, too.
   */
  firstEventId?: number | undefined
  /** The records that the transaction has archived so far, in order (archive.ts). */
  readonly archived: { entity: string; id: number; event: number }[]
  /** The records whose search documents must be updated before the commit. */
  readonly stale: RecordRef[]
  /** Whether the transaction enqueued a job, so that the worker must be notified. */
  wakes: boolean
  /** Called after the commit, for effects outside the database such as counters. */
  readonly onCommit: (() => void)[]
}

/** The context inside a transaction. */
export type InTransaction = Context & { unit: UnitOfWork }

export interface About {
  /** The type of the record, as in paths: `leads`, `persons` … */
  entity: string
  input: unknown
  id?: number
  /** The record before the change; undefined on creation. */
  before?: Snapshot
  related?: { type: string; id: number }
  /** Set when the change restores a deleted record. */
  restored?: true
  /**
   * Whether the change emits a second event without the suffix `.after`. The event
   * log then stores only the second event.
   */
  isAlsoBare?: boolean
}

export interface Outcome<Id extends number | null = number> {
  /** The id of the record. Null for a singleton, such as the configuration, which has no id. */
  id: Id
  /** The record after the change; null after a deletion. */
  entity: Snapshot | null
  /** The names of changed fields that no reply contains, such as a password. */
  hidden?: string[]
  /** The owners of the leads that showed a deleted record; null without such leads. */
  leadOwners?: readonly (number | null)[] | null
}

class DryRun extends Error {
  readonly result: unknown
  constructor(result: unknown) {
    super('dry run')
    this.result = result
  }
}

/**
 * Runs `work` in a transaction, or in the transaction of `ctx` if there is one. Events are emitted
 * after the outermost commit. A dry run is rolled back but returns its result. Concurrent
 * transactions may share one commit; with `isLong`, other writers do not wait for this commit.
 * `inParts` declares that `work` splits large changes into savepoints with few changes each. With
 * `isAlone`, no other writer runs at the same time.
 */
export async function transaction<T>(
  ctx: Context,
  work: (ctx: InTransaction) => Promise<T>,
  { isLong = false, inParts = false, isAlone = false } = {},
): Promise<T> {
  if (ctx.unit) return work(ctx as InTransaction)
  let unit = newUnitOfWork()
  const said = { cookies: ctx.cookies.length, warnings: ctx.warnings.length }
  let isAgain = false
  let result: T
  try {
    result = await ctx.services.store.transaction(
      async (db) => {
        // The work runs again after a conflict. The results of the failed run are discarded first.
        if (isAgain) {
          unit = newUnitOfWork()
          ctx.cookies.length = said.cookies
          ctx.warnings.length = said.warnings
        }
        isAgain = true
        const done = await work({ ...ctx, db, unit })
        if (ctx.dryRun) throw new DryRun(done)
        await updateSearchIndex(ctx, db, unit.stale, isLong)
        return done
      },
      { isLong, inParts, isAlone },
    )
  } catch (error) {
    if (error instanceof DryRun) return error.result as T
    throw translate(ctx, error)
  }
  for (const listener of unit.onCommit) listener()
  for (const event of unit.after) ctx.services.events.emit(event)
  if (unit.wakes || unit.after.length > 0) ctx.services.wake()
  return result
}

const newUnitOfWork = (): UnitOfWork => ({ after: [], archived: [], stale: [], wakes: false, onCommit: [] })

/**
 * The maximum number of search documents in one update of the index. Larger batches leave fewer
 * index segments to merge.
 */
const freshAtOnce = 100

/**
 * Updates the search index for changed records. Up to `freshAtOnce` records are deferred to the
 * commit, so that transactions that share a commit also share the update.
 */
async function updateSearchIndex(
  { services }: Pick<Context, 'services'>,
  db: Db,
  stale: readonly RecordRef[],
  isLong: boolean,
): Promise<void> {
  const each = [...new Map(stale.map((one) => [`${one.entity} ${one.id}`, one])).values()]
  if (!isLong && each.length <= freshAtOnce) return services.store.deferToCommit(db, each)
  for (let from = 0; from < each.length; from += freshAtOnce) {
    await services.searchIndex.update(db, each.slice(from, from + freshAtOnce))
  }
}

const part = {
  begin: CompiledQuery.raw('savepoint part'),
  release: CompiledQuery.raw('release savepoint part'),
  undo: CompiledQuery.raw('rollback to savepoint part'),
}

/**
 * Runs a part of a transaction that may fail without failing the transaction. On an error, undoes
 * the rows and pending events of the part and rethrows the error; the transaction can continue.
 * Savepoints must not be nested.
 */
export async function savepoint<T>({ db, unit, services }: InTransaction, work: () => Promise<T>): Promise<T> {
  const waiting = [unit.after, unit.archived, unit.stale, unit.onCommit] as const
  const lengths = waiting.map(({ length }) => length)
  const { firstEventId } = unit
  await db.executeQuery(part.begin)
  try {
    const result = await work()
    await db.executeQuery(part.release)
    return result
  } catch (error) {
    await db.executeQuery(part.undo)
    await db.executeQuery(part.release)
    for (const [index, list] of waiting.entries()) list.length = lengths[index] ?? 0
    // PostgreSQL has released a lock that the part took, so the next event must take it again.
    unit.firstEventId = firstEventId
    throw translate({ services }, error)
  }
}

/**
 * Like `savepoint`, for a part that stands for a transaction of its own: its events have their own
 * first event, and a record that it archives is restored alone.
 */
export async function wholePart<T>(ctx: InTransaction, work: (ctx: InTransaction) => Promise<T>): Promise<T> {
  const unit: UnitOfWork = { ...ctx.unit, archived: [], firstEventId: undefined, wakes: false }
  const inner = { ...ctx, unit }
  const result = await savepoint(inner, () => work(inner))
  ctx.unit.wakes ||= unit.wakes
  return result
}

/**
 * Makes one change and emits its `before` and `after` events. `work` changes the rows and returns
 * the record after the change. When nothing changed, no event is logged and `eventId` is null.
 * Throws 403 `event_vetoed` when a listener refuses the change, and 500 when a listener fails.
 */
export async function write<Id extends number | null = number>(
  ctx: Context,
  name: EventBase,
  about: About,
  work: (ctx: InTransaction) => Promise<Outcome<Id>>,
): Promise<Outcome<Id> & { eventId: number | null }> {
  return transaction(ctx, async (ctx) => {
    if (!ctx.dryRun && ctx.services.events.isHeard(`${name}.before`)) {
      const event = eventOf(ctx, `${name}.before`, about.id ?? null, about)
      // Listeners get copies, because a listener may refuse a change but must not alter it.
      event.input = structuredClone(withoutSecretKeys(about.input))
      if (about.before) event.entity = structuredClone(about.before)
      offer(ctx, event)
    }
    const outcome = await work(ctx)
    if (about.before) warnOfIgnored(ctx, name, [about.before, outcome.entity])
    if (outcome.id !== null) ctx.unit.stale.push({ entity: about.entity, id: outcome.id })
    const deleted = outcome.entity === null
    const keys = deleted ? [] : changedKeys(about.before, outcome.entity ?? {}, derivedKeysOf(ctx, about.entity))
    const changed = !deleted && outcome.hidden ? [...new Set([...keys, ...outcome.hidden])] : keys
    const after = eventOf(ctx, `${name}.after`, outcome.id, about)
    after.entity = outcome.entity ?? about.before ?? null
    after.changed = changed
    if (about.before) after.before = about.before
    const isChange = deleted || about.before === undefined || changed.length > 0
    const logged = about.isAlsoBare ? { ...after, name } : after
    // A dry run logs only deletions, because the archive needs the id of the deletion event.
    const isRecorded = isChange && (deleted || !ctx.dryRun)
    const eventId = isRecorded
      ? await record(ctx, logged, about.before ?? null, outcome.entity, outcome.leadOwners)
      : null
    ctx.unit.after.push(after)
    if (logged !== after) ctx.unit.after.push(logged)
    return { ...outcome, eventId }
  })
}

/**
 * Warns of read-only keys in the body whose values are neither those before the change nor those
 * after it: the client may have wanted to change them. The version and a body of an older version
 * have a warning of their own (resource/write-records.ts).
 */
function warnOfIgnored(ctx: Context, name: EventBase, shown: readonly (Snapshot | null | undefined)[]): void {
  const { event, keys } = ctx.ignored ?? {}
  const [before] = shown
  const isOld = ctx.bodyVersion !== undefined && ctx.bodyVersion !== before?.version
  if (event !== name || keys === undefined || isOld) return
  for (const { path, value, sentence } of keys) {
    if (path[0] === 'version') continue
    const stored = shown.map((each) => path.reduce<unknown>((inner, key) => (inner as Snapshot | null)?.[key], each))
    if (stored[0] === undefined || stored.some((each) => isSame(each, value))) continue
    warn(ctx, path.join('.'), `${sentence} The value in the body was ignored.`)
  }
}

/** Returns whether two values of a reply are equal, in any notation of a timestamp or number. */
function isSame(one: unknown, other: unknown): boolean {
  if (typeof one !== 'object' || one === null || typeof other !== 'object' || other === null)
    return String(one ?? '') === String(other ?? '') || Date.parse(String(one)) === Date.parse(String(other))
  const [mine, theirs] = [one as Snapshot, other as Snapshot]
  const isShorter = Array.isArray(one) && one.length !== Object.keys(theirs).length
  return !isShorter && Object.keys(theirs).every((key) => isSame(mine[key], theirs[key]))
}

/** Emits and logs one event whose name has no suffix `.before` or `.after`. */
export const emitOnly = (
  ctx: Context,
  name: EventBase,
  { entity, id, shown, before, changed = [], restored }: Announced,
): Promise<void> =>
  transaction(ctx, async (ctx) => {
    const event = eventOf(ctx, name, id, { entity, ...(restored && { restored }) })
    event.entity = shown
    event.changed = changed
    if (before) event.before = before
    // A dry run is rolled back, so a logged row would never be read.
    if (!ctx.dryRun) await record(ctx, event, before ?? null, shown)
    ctx.unit.after.push(event)
  })

interface Announced extends Pick<About, 'entity' | 'before' | 'restored'> {
  id: number | null
  shown: Snapshot
  changed?: string[]
}

/** Returns an event with the fields that every event has. */
function eventOf(
  ctx: Context,
  name: string,
  entityId: number | null,
  about: Pick<About, 'entity' | 'related' | 'restored'>,
): AccordEvent {
  // Throws for a type of record without a visibility rule, before anything is written.
  sightOf(ctx, about.entity)
  const event: AccordEvent = {
    name,
    entityType: about.entity,
    entityId,
    actor: actorOf(ctx),
    tokenId: ctx.token?.id ?? null,
    requestId: ctx.requestId,
    origin: ctx.origin,
    timestamp: now(ctx),
  }
  if (about.related) event.related = about.related
  if (about.restored) event.restored = about.restored
  return event
}

export function actorOf(ctx: Context): AccordEvent['actor'] {
  const user = author(ctx)
  return user ? { type: 'user', id: user.id, name: user.name } : { type: 'system', id: null, name: 'system' }
}

/**
 * Returns whether a listener refused the write by a veto. A listener that failed with another error
 * does not count, because a retry may succeed.
 */
export const isVeto = (error: unknown): error is Problem => error instanceof Problem && error.code === 'event_vetoed'

/**
 * Returns whether the error comes from a listener that refused the write or failed. Used for
 * changes that record an external fact, such as a sent mail.
 */
export const isOfListener = (error: unknown): error is Problem =>
  isVeto(error) || (error instanceof Problem && error.cause instanceof ListenerFailed)

function offer(ctx: Context, event: AccordEvent): void {
  try {
    ctx.services.events.emit(event)
  } catch (cause) {
    if (cause instanceof Veto) throw new Problem('event_vetoed', cause.message || undefined, { cause })
    const failed = new ListenerFailed(`A listener of ${event.name} failed.`, { cause })
    throw new Problem('internal_error', undefined, { cause: failed })
  }
}

/**
 * Converts a database error to a problem. The rules check for conflicts before a write, so these
 * errors occur only when concurrent writes conflict or the database is locked.
 */
function translate({ services }: Pick<Context, 'services'>, error: unknown): unknown {
  const { dialect } = services.store
  if (dialect.isUniqueViolation(error)) return new Problem('unique_violation', undefined, { cause: error })
  if (dialect.isForeignKeyViolation(error))
    return new Problem('in_use', 'Another record refers to this one.', { cause: error })
  return toUnavailableProblem(error) ?? error
}
