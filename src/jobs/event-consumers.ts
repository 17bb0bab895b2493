// Passes events of the event log to consumers. A consumer handles events in the
// transaction that stores its position, so it handles each event exactly once, even after a crash.
// Each consumer has its own position and reads a limited number of events in one transaction.
import { type Selectable, type SqlBool, sql } from 'kysely'
import type { DB } from '../../db/tables.gen.ts'
import { type Context, type Services, systemContext } from '../kernel/context.ts'
import { adaptiveBatches, type Portions, yieldToEventLoop } from '../kernel/runtime/cooperative.ts'
import { newestEvent } from '../kernel/write/event-log.ts'
import type { Snapshot } from '../kernel/write/events.ts'
import { transaction } from '../kernel/write/write.ts'
import { createStorageRetry } from './storage-retry.ts'

type Row = Selectable<DB['events']>

/** A row of the event log with its JSON parsed. */
export interface StoredEvent extends Omit<Row, 'before' | 'after' | 'changed' | 'restored'> {
  before: Snapshot | null
  after: Snapshot | null
  changed: string[]
  restored: boolean
}

/** An event without its snapshots. Snapshots are large, and few consumers need them. */
export type EventSummary = Pick<
  StoredEvent,
  'id' | 'name' | 'entity_type' | 'entity_id' | 'changed' | 'workflow_run_id' | 'restored' | 'created_at'
>

export interface EventConsumer {
  /**
   * The key of the consumer's row in `event_readers`. A migration must insert the row, with the end
   * of the log as the position.
   */
  name: string
  /**
   * Returns the entity types whose events the consumer wants now, or null for all types. Events of
   * other types are skipped and never passed later.
   */
  entityTypes(ctx: Context): Promise<readonly string[] | null>
  /**
   * Handles events in order, inside a transaction. May write rows and jobs, but must not call other
   * systems. Returns the id of the last handled event. Later events are passed again.
   */
  consume(ctx: Context, events: readonly EventSummary[]): Promise<number>
}

/**
 * The minimum and maximum number of events in one step. The number adapts to the time that a step
 * takes. With fewer events, the commit would take longer than the events.
 */
const minEvents = 25
const maxEvents = 100
const maxRows = 200

/**
 * Collects the items that `askedBy` returns for the events, up to `maxRows` items. The first event
 * is always included, even if it has more items. `last` is the id of the last included event.
 */
export function takeWithinLimit<Asked>(
  events: readonly EventSummary[],
  askedBy: (event: EventSummary) => readonly Asked[],
): { asked: Asked[]; last: number } {
  const asked: Asked[] = []
  let last = 0
  for (const event of events) {
    const more = askedBy(event)
    if (last > 0 && asked.length + more.length > maxRows) break
    asked.push(...more)
    last = event.id
  }
  return { asked, last }
}

export function parseEvent(row: Row): StoredEvent {
  const snapshot = (text: string | null) => (text === null ? null : (JSON.parse(text) as Snapshot))
  return {
    ...row,
    before: snapshot(row.before),
    after: snapshot(row.after),
    changed: JSON.parse(row.changed) as string[],
    restored: row.restored === 1,
  }
}

export interface EventDispatcher {
  /** Lets every consumer take one step. Returns whether another call may find more events. */
  dispatch(): Promise<boolean>
}

/**
 * The time in milliseconds after which a consumer without events stores its position. Because of
 * this delay, an event that no consumer wants does not cause another write.
 */
const idleMs = 5000
/**
 * The number of skipped events after which a position is stored at the latest. One query scans at
 * most this many events.
 */
const maxPassed = 1000

/**
 * The events with ids above `after` and up to `to`, of the given entity types. Null means all
 * types.
 */
interface EventRange {
  after: number
  to: number
  types: readonly string[] | null
}

export function createEventDispatcher(services: Services, consumers: readonly EventConsumer[]): EventDispatcher {
  /**
   * The unstored positions of consumers without new events. Up to `id`, the log has no event for
   * the consumer. `since` is the time in milliseconds of the first skip that is not stored.
   */
  const passed = new Map<EventConsumer, { id: number; since: number }>()
  let known = services.store.db
  /**
   * The consumers that have failed. A failed consumer waits until no other consumer has events
   * left.
   */
  const failing = new Set<EventConsumer>()
  const steps = new Map(consumers.map((consumer) => [consumer, adaptiveBatches(minEvents, maxEvents, maxEvents)]))
  const { isTransient } = createStorageRetry(services, () => false)

  async function dispatch(): Promise<boolean> {
    const ctx = systemContext(services, 'api')
    // The store may have a new database, which has another event log.
    if (ctx.db !== known) passed.clear()
    known = ctx.db
    // Read before `entityTypes` is called. An event logged after that call may have a type that the
    // consumer has just begun to want, so this step must not skip it.
    const newest = await newestEvent(ctx)
    let found = false
    let isDue = false
    for (const [consumer, step] of steps) {
      const position = await positionOf(ctx, consumer)
      if (failing.has(consumer) || position >= newest) continue
      const after = Math.max(position, passed.get(consumer)?.id ?? 0)
      const to = Math.min(newest, after + maxPassed)
      const types = after < to ? await attempt(consumer, () => consumer.entityTypes(ctx)) : []
      if (types === undefined) continue
      const range = { after, to, types }
      if (await hasEvents(ctx, range)) {
        const taken = await attempt(consumer, () => transaction(ctx, (ctx) => consumeStep(ctx, consumer, range, step)))
        found = taken === true || found
        // Lets HTTP requests run between two steps of a long backlog.
        await yieldToEventLoop()
      } else {
        isDue = skip(ctx, consumer, position, to) || isDue
        found = to < newest || found
      }
    }
    if (isDue) await storePositions(ctx)
    if (!found) failing.clear()
    return found
  }

  /**
   * Notes that the consumer has no event up to `to`. Returns whether this position must be stored
   * now.
   */
  function skip({ time }: Context, consumer: EventConsumer, position: number, to: number): boolean {
    const earlier = passed.get(consumer)
    const since = earlier && earlier.id > position ? earlier.since : time.getTime()
    passed.set(consumer, { id: to, since })
    return time.getTime() - since >= idleMs || to - position >= maxPassed
  }

  async function storePositions(ctx: Context): Promise<void> {
    await transaction(ctx, async (ctx) => {
      for (const [consumer, { id }] of passed) await storePosition(ctx, consumer, id)
    })
    passed.clear()
  }

  /**
   * Runs the work of a consumer. Returns undefined when the work fails. A failing consumer keeps
   * its position and does not block other consumers.
   */
  async function attempt<T>(consumer: EventConsumer, work: () => Promise<T>): Promise<T | undefined> {
    try {
      return await work()
    } catch (cause) {
      failing.add(consumer)
      if (!isTransient(cause))
        services.log.error({ err: cause, consumer: consumer.name }, 'A consumer of the event log failed.')
      return undefined
    }
  }

  return { dispatch }
}

async function consumeStep(ctx: Context, consumer: EventConsumer, range: EventRange, step: Portions): Promise<boolean> {
  // Another process may have advanced the position.
  const after = Math.max(range.after, await positionOf(ctx, consumer))
  const size = step.size()
  const rows = await eventsOf(ctx, { ...range, after })
    .select(['id', 'name', 'entity_type', 'entity_id', 'changed', 'workflow_run_id', 'restored', 'created_at'])
    .limit(size)
    .execute()
  const events = rows.map(
    (row): EventSummary => ({
      ...row,
      changed: JSON.parse(row.changed) as string[],
      restored: row.restored === 1,
    }),
  )
  const last = events.at(-1)?.id
  const handled = last === undefined ? range.to : await step.run(events.length, () => consumer.consume(ctx, events))
  const isThrough = handled === last && events.length < size
  // Events after `range.to` are not skipped, because the consumer may want their type by now.
  await storePosition(ctx, consumer, isThrough ? range.to : handled)
  return last !== undefined
}

async function hasEvents(ctx: Context, range: EventRange): Promise<boolean> {
  if (range.types === null) return true
  if (range.types.length === 0) return false
  return (await eventsOf(ctx, range).select('id').limit(1).executeTakeFirst()) !== undefined
}

function eventsOf({ db }: Context, { after, to, types }: EventRange) {
  const events = db.selectFrom('events').where('id', '>', after).where('id', '<=', to).orderBy('id')
  // `entity_type || ''` keeps SQLite from using the index on types. With that index, SQLite would
  // have to sort all events of these types.
  return types === null ? events : events.where(sql<SqlBool>`(entity_type || '') in (${sql.join([...types])})`)
}

async function storePosition({ db }: Context, { name }: EventConsumer, to: number): Promise<void> {
  await db
    .updateTable('event_readers')
    .set({ last_event_id: to })
    .where('name', '=', name)
    .where('last_event_id', '<', to)
    .execute()
}

async function positionOf({ db }: Context, { name }: EventConsumer): Promise<number> {
  const row = await db.selectFrom('event_readers').select('last_event_id').where('name', '=', name).executeTakeFirst()
  if (!row) throw new Error(`No migration inserts the consumer ${name}.`)
  return row.last_event_id
}
