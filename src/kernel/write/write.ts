// The only function that opens a transaction and the only one that emits (DESIGN 6): before → work → event log → commit →
// after. Veto, rollback, dry run and the order of events are right for every write because they are decided here.
import { textOnly } from '../../../db/compiled-queries.ts'
import type { Db, RecordRef } from '../../../db/store.ts'
import type { EventBase } from '../../contract/types.ts'
import { author, type Context, now } from '../context.ts'
import { Problem } from '../errors.ts'
import { sightOf } from '../query/event-visibility.ts'
import { yieldIfDue } from '../runtime/cooperative.ts'
import { toUnavailableProblem } from '../runtime/unavailable.ts'
import { changedKeys, derivedKeysOf, record, withoutSecretKeys } from './event-log.ts'
import { type AccordEvent, ListenerFailed, type Snapshot, Veto } from './events.ts'

/** One transaction in progress. */
export interface Unit {
  /** The events that wait for its commit. */
  readonly after: AccordEvent[]
  /** The first that it wrote into the log, by which the others say that they belong together. */
  firstEventId?: number
  /** The records archived in it so far (archive.ts), in their order. */
  readonly archived: { entity: string; id: number; event: number }[]
  /** The records whose words for search may have changed. */
  readonly stale: RecordRef[]
  /** Whether work for the background was enqueued in it. */
  wakes: boolean
}

export interface About {
  /** Resource name as in paths: `leads`, `persons` … */
  entity: string
  input: unknown
  id?: number
  /** The record before the change; left out on creation. */
  before?: Snapshot
  related?: { type: string; id: number }
  /** The record was there before and comes back as it was. */
  restored?: true
  /** The event is emitted once more without a suffix, and logged without one (DOMAIN 17.2). */
  isAlsoBare?: boolean
}

export interface Outcome<Id extends number | null = number> {
  /** Null for what is one record without an id, such as the configuration. */
  id: Id
  /** The record after the change; null after a deletion. */
  entity: Snapshot | null
  /** Changes that no reply shows, such as a password. */
  hidden?: string[]
}

class DryRun extends Error {
  readonly result: unknown
  constructor(result: unknown) {
    super('dry run')
    this.result = result
  }
}

/**
 * Runs `work` in a transaction, or joins the one `ctx` is in. Events wait for the outermost commit. With a dry run
 * everything is rolled back and the result is returned all the same. Writers at the same time may share its commit, unless
 * `isLong`: then earlier writers do not wait for it. `inParts`: all that changes much of it stands in savepoints that change little each.
 */
export async function transaction<T>(
  ctx: Context,
  work: (ctx: Context & { unit: Unit }) => Promise<T>,
  { isLong = false, inParts = false } = {},
): Promise<T> {
  if (ctx.unit) return work(ctx as Context & { unit: Unit })
  const unit: Unit = { after: [], archived: [], stale: [], wakes: false }
  let result: T
  try {
    const begun = isLong
      ? ctx.db.transaction().setIsolationLevel(inParts ? 'snapshot' : 'serializable')
      : ctx.db.transaction()
    result = await begun.execute(async (db) => {
      const done = await work({ ...ctx, db: db as Db, unit })
      if (ctx.dryRun) throw new DryRun(done)
      await updateSearchIndex(ctx, db as Db, unit.stale, isLong)
      return done
    })
  } catch (error) {
    if (error instanceof DryRun) return error.result as T
    throw translate(ctx, error)
  }
  for (const event of unit.after) ctx.services.events.emit(event)
  if (unit.wakes || unit.after.length > 0) ctx.services.wake()
  return result
}

/** For a long transaction in which all that changes much stands in savepoints that change little each. */
export const inParts = { inParts: true } as const

/** For work that lets others go on in the middle of it. */
export const longTransaction = <T>(
  ctx: Context,
  work: (ctx: Context & { unit: Unit }) => Promise<T>,
  { inParts = false } = {},
): Promise<T> => transaction(ctx, work, { isLong: true, inParts })

/** Records whose words are looked at in one piece: the more, the less is put together later. */
const freshAtOnce = 100

/** The index of the search will be as the records are by now. A few are put off until the commit, and shared with those of others. */
async function updateSearchIndex(
  { services }: Pick<Context, 'services'>,
  db: Db,
  stale: readonly RecordRef[],
  isLong: boolean,
): Promise<void> {
  const each = [...new Map(stale.map((one) => [`${one.entity} ${one.id}`, one])).values()]
  if (!isLong && each.length <= freshAtOnce) return services.store.deferToCommit(each)
  for (let from = 0; from < each.length; from += freshAtOnce) {
    await services.searchIndex.update(db, each.slice(from, from + freshAtOnce), isLong ? yieldIfDue : undefined)
    if (isLong) await yieldIfDue()
  }
}

const part = {
  begin: textOnly('savepoint part'),
  release: textOnly('release savepoint part'),
  undo: textOnly('rollback to savepoint part'),
}

/**
 * A part of a transaction that may fail alone: then all of it is undone, the events that waited for the commit with the rows, and
 * the error is thrown; the transaction goes on. Parts do not stand inside each other.
 */
export async function savepoint<T>(
  { db, unit, services }: Context & { unit: Unit },
  work: () => Promise<T>,
): Promise<T> {
  const waiting = [unit.after, unit.archived, unit.stale] as const
  const lengths = waiting.map(({ length }) => length)
  await db.executeQuery(part.begin)
  try {
    const result = await work()
    await db.executeQuery(part.release)
    return result
  } catch (error) {
    await db.executeQuery(part.undo)
    await db.executeQuery(part.release)
    for (const [index, list] of waiting.entries()) list.length = lengths[index] ?? 0
    throw translate({ services }, error)
  }
}

/**
 * One change with its pair of events. `work` changes the rows and returns the record as it is then; a change of nothing
 * leaves no row in the event log, and its `eventId` is null. Throws 403 `event_vetoed` when a listener refuses, 500 when one fails.
 */
export async function write<Id extends number | null = number>(
  ctx: Context,
  name: EventBase,
  about: About,
  work: (ctx: Context & { unit: Unit }) => Promise<Outcome<Id>>,
): Promise<Outcome<Id> & { eventId: number | null }> {
  return transaction(ctx, async (ctx) => {
    if (!ctx.dryRun && ctx.services.events.isHeard(`${name}.before`)) {
      const event = eventOf(ctx, `${name}.before`, about.id ?? null, about)
      // Copies: a listener may refuse a change, not make one (DOMAIN 17.1).
      event.input = structuredClone(withoutSecretKeys(about.input))
      if (about.before) event.entity = structuredClone(about.before)
      offer(ctx, event)
    }
    const outcome = await work(ctx)
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
    // What a rehearsal deletes is archived, for which its event must have an id; of all else nobody ever sees a row.
    const isRecorded = isChange && (deleted || !ctx.dryRun)
    const eventId = isRecorded ? await record(ctx, logged, about.before ?? null, outcome.entity) : null
    ctx.unit.after.push(after)
    if (logged !== after) ctx.unit.after.push(logged)
    return { ...outcome, eventId }
  })
}

/** Tells of something that is no change of a record and has no pair: one bare event, logged under its bare name (DOMAIN 17.2). */
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
    // Nobody ever sees a row of a rehearsal.
    if (!ctx.dryRun) await record(ctx, event, before ?? null, shown)
    ctx.unit.after.push(event)
  })

interface Announced extends Pick<About, 'entity' | 'before' | 'restored'> {
  id: number | null
  shown: Snapshot
  changed?: string[]
}

/** What every event of a write says. */
function eventOf(
  ctx: Context,
  name: string,
  entityId: number | null,
  about: Pick<About, 'entity' | 'related' | 'restored'>,
): AccordEvent {
  // Nothing is written of a type that would be shown by guess.
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

/** Whether a listener refused the write. A listener that failed has refused nothing: asked again, it may agree. */
export const isVeto = (error: unknown): error is Problem => error instanceof Problem && error.code === 'event_vetoed'

/** Whether a listener refused the write or failed. For changes that describe what has already happened elsewhere. */
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

/** What the database refused, for the caller. Rules are checked before; this is what a race or a lock leaves. */
function translate({ services }: Pick<Context, 'services'>, error: unknown): unknown {
  const { dialect } = services.store
  if (dialect.isUniqueViolation(error)) return new Problem('unique_violation', undefined, { cause: error })
  if (dialect.isForeignKeyViolation(error))
    return new Problem('in_use', 'Another record refers to this one.', { cause: error })
  return toUnavailableProblem(error) ?? error
}
