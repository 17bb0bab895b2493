// Consumers of the event log (DESIGN 6): what follows an event is decided here, in the transaction that moves the reader on, so each
// event is seen exactly once by each reader, whatever ends the process. Each reader goes on by itself, in steps of a bounded number
// of rows, between which others may write.
import { type Selectable, type SqlBool, sql } from 'kysely'
import type { DB } from '../../db/tables.gen.ts'
import { type Context, type Services, systemContext } from '../kernel/context.ts'
import { adaptiveBatches, type Portions, yieldToEventLoop } from '../kernel/runtime/cooperative.ts'
import { newestEvent } from '../kernel/write/event-log.ts'
import type { Snapshot } from '../kernel/write/events.ts'
import { transaction } from '../kernel/write/write.ts'
import { createStorageRetry } from './storage-retry.ts'

type Row = Selectable<DB['events']>

/** A row of the event log, read. */
export interface StoredEvent extends Omit<Row, 'before' | 'after' | 'changed' | 'restored'> {
  before: Snapshot | null
  after: Snapshot | null
  changed: string[]
  restored: boolean
}

/** An event as readers hear of it: without its snapshots, which are large and which only few of them need. */
export type EventSummary = Pick<
  StoredEvent,
  'id' | 'name' | 'entity_type' | 'entity_id' | 'changed' | 'workflow_run_id' | 'restored' | 'created_at'
>

export interface EventConsumer {
  /** How its place is stored; a migration begins it, at the end of the log. */
  name: string
  /** Types of records whose events mean something to it now; null for all of them. What it passes over it never sees. */
  entityTypes(ctx: Context): Promise<readonly string[] | null>
  /**
   * Events in their order. Writes rows and jobs, and calls nobody: it runs in a transaction. Answers the last event it is through
   * with; those behind it come again.
   */
  consume(ctx: Context, events: readonly EventSummary[]): Promise<number>
}

/** As many events at a time as take a moment; of fewer than that the commit would cost more. */
const fewest = 25
const most = 100
const maxRows = 200

/** What the first events ask for, as many as fit into one transaction, the first one in any case; and the last of these events. */
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
  /** Takes every reader one step on. True when there was something. */
  dispatch(): Promise<boolean>
}

/** How long a reader that wants nothing may stay behind, so that a server unhandled rejection to does not write twice. */
const idleMs = 5000
/** And by how much. No more events than these are looked through at once for those that mean something. */
const maxPassed = 1000

/** Events behind `after`, up to `to`, of those that a reader hears of. */
interface Stretch {
  after: number
  to: number
  types: readonly string[] | null
}

export function createEventDispatcher(services: Services, readers: readonly EventConsumer[]): EventDispatcher {
  /** How far there was nothing for a reader, and since when that is not written down. */
  const passed = new Map<EventConsumer, { id: number; since: number }>()
  let known = services.store.db
  /** They wait until the others are through. */
  const failing = new Set<EventConsumer>()
  const steps = new Map(readers.map((reader) => [reader, adaptiveBatches(fewest, most, most)]))
  const { isTransient: isPassing } = createStorageRetry(services, () => false)

  async function feed(): Promise<boolean> {
    const ctx = systemContext(services, 'api')
    // Another database has another log.
    if (ctx.db !== known) passed.clear()
    known = ctx.db
    // Before it is asked what readers hear of: who begins to listen later wants nothing of what there was by then.
    const newest = await newestEvent(ctx)
    let found = false
    let isDue = false
    for (const [reader, step] of steps) {
      const place = await placeOf(ctx, reader)
      if (failing.has(reader) || place >= newest) continue
      const after = Math.max(place, passed.get(reader)?.id ?? 0)
      const to = Math.min(newest, after + maxPassed)
      const types = after < to ? await attempt(reader, () => reader.entityTypes(ctx)) : []
      if (types === undefined) continue
      const stretch = { after, to, types }
      if (await isHeard(ctx, stretch)) {
        const taken = await attempt(reader, () => transaction(ctx, (ctx) => give(ctx, reader, stretch, step)))
        found = taken === true || found
        // Who waits for the database, or for an answer, is not kept waiting by all of the log.
        await yieldToEventLoop()
      } else {
        isDue = pass(ctx, reader, place, to) || isDue
        found = to < newest || found
      }
    }
    if (isDue) await writeDown(ctx)
    if (!found) failing.clear()
    return found
  }

  /** Nothing up to there means anything to a reader. Answers whether that is to be written down now. */
  function pass({ time }: Context, reader: EventConsumer, place: number, to: number): boolean {
    const earlier = passed.get(reader)
    const since = earlier && earlier.id > place ? earlier.since : time.getTime()
    passed.set(reader, { id: to, since })
    return time.getTime() - since >= idleMs || to - place >= maxPassed
  }

  async function writeDown(ctx: Context): Promise<void> {
    await transaction(ctx, async (ctx) => {
      for (const [reader, { id }] of passed) await moveOn(ctx, reader, id)
    })
    passed.clear()
  }

  /** One reader that fails stays where it is, and does not hold up the others: undefined. */
  async function attempt<T>(reader: EventConsumer, work: () => Promise<T>): Promise<T | undefined> {
    try {
      return await work()
    } catch (cause) {
      failing.add(reader)
      if (!isPassing(cause))
        services.log.error({ err: cause, reader: reader.name }, 'A reader of the event log failed.')
      return undefined
    }
  }

  return { dispatch: feed }
}

async function give(ctx: Context, reader: EventConsumer, stretch: Stretch, step: Portions): Promise<boolean> {
  // Another process may have been here.
  const after = Math.max(stretch.after, await placeOf(ctx, reader))
  const size = step.size()
  const rows = await eventsOf(ctx, { ...stretch, after })
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
  const place = last === undefined ? stretch.to : await step.taking(events.length, () => reader.consume(ctx, events))
  const isThrough = place === last && events.length < size
  // What has come since then is not passed over: it may be of a type that the reader hears of by now.
  await moveOn(ctx, reader, isThrough ? stretch.to : place)
  return last !== undefined
}

async function isHeard(ctx: Context, stretch: Stretch): Promise<boolean> {
  if (stretch.types === null) return true
  if (stretch.types.length === 0) return false
  return (await eventsOf(ctx, stretch).select('id').limit(1).executeTakeFirst()) !== undefined
}

function eventsOf({ db }: Context, { after, to, types }: Stretch) {
  const events = db.selectFrom('events').where('id', '>', after).where('id', '<=', to).orderBy('id')
  // An expression, so that SQLite goes on from a place in the log instead of sorting all events of these types by the index.
  return types === null ? events : events.where(sql<SqlBool>`(entity_type || '') in (${sql.join([...types])})`)
}

async function moveOn({ db }: Context, { name }: EventConsumer, to: number): Promise<void> {
  await db
    .updateTable('event_readers')
    .set({ last_event_id: to })
    .where('name', '=', name)
    .where('last_event_id', '<', to)
    .execute()
}

async function placeOf({ db }: Context, { name }: EventConsumer): Promise<number> {
  const row = await db.selectFrom('event_readers').select('last_event_id').where('name', '=', name).executeTakeFirst()
  if (!row) throw new Error(`No migration begins the reader ${name}.`)
  return row.last_event_id
}
