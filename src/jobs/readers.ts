// Consumers of the event log (DESIGN 6): what follows an event is decided here, in the transaction that moves the reader on, so each
// event is seen exactly once by each reader, whatever ends the process. Each reader goes on by itself, in steps of a bounded number
// of rows, between which others may write.
import type { Selectable } from 'kysely'
import type { DB } from '../../db/tables.gen.ts'
import { type Context, type Services, systemContext } from '../kernel/context.ts'
import { newestEvent } from '../kernel/eventlog.ts'
import type { Snapshot } from '../kernel/events.ts'
import { giveWay, type Portions, portions } from '../kernel/pace.ts'
import { transaction } from '../kernel/write.ts'
import { patience } from './patience.ts'

type Row = Selectable<DB['events']>

/** A row of the event log, read. */
export interface StoredEvent extends Omit<Row, 'before' | 'after' | 'changed' | 'restored'> {
  before: Snapshot | null
  after: Snapshot | null
  changed: string[]
  restored: boolean
}

/** An event as readers hear of it: without its snapshots, which are large and which only few of them need. */
export type Heard = Pick<
  StoredEvent,
  'id' | 'name' | 'entity_type' | 'entity_id' | 'changed' | 'workflow_run_id' | 'created_at'
>

export interface EventReader {
  /** How its place is stored; a migration begins it, at the end of the log. */
  name: string
  /** Whether no event means anything to it now; what it passes over then it never sees. */
  isIdle(ctx: Context): Promise<boolean>
  /**
   * Events in their order. Writes rows and jobs, and calls nobody: it runs in a transaction. Answers the last event it is through
   * with; those behind it come again.
   */
  take(ctx: Context, events: readonly Heard[]): Promise<number>
}

/** As many events at a time as take a moment; of fewer than that the commit would cost more. */
const fewest = 25
const most = 100
const mostRows = 200

/** What the first events ask for, as many as fit into one transaction, the first one in any case; and the last of these events. */
export function firstOf<Asked>(
  events: readonly Heard[],
  askedBy: (event: Heard) => readonly Asked[],
): { asked: Asked[]; last: number } {
  const asked: Asked[] = []
  let last = 0
  for (const event of events) {
    const more = askedBy(event)
    if (last > 0 && asked.length + more.length > mostRows) break
    asked.push(...more)
    last = event.id
  }
  return { asked, last }
}

export function readEvent(row: Row): StoredEvent {
  const snapshot = (text: string | null) => (text === null ? null : (JSON.parse(text) as Snapshot))
  return {
    ...row,
    before: snapshot(row.before),
    after: snapshot(row.after),
    changed: JSON.parse(row.changed) as string[],
    restored: row.restored === 1,
  }
}

export interface Feeder {
  /** Takes every reader one step on. True when there was something. */
  feed(): Promise<boolean>
}

/** How long readers that want nothing may stay behind, so that a server nobody listens to does not write twice. */
const idleMs = 5000

export function createFeeder(services: Services, readers: readonly EventReader[]): Feeder {
  /** The newest event when nobody wanted any, and since when that is not written down. */
  let passed = { id: 0, since: 0 }
  /** They wait until the others are through. */
  const failing = new Set<EventReader>()
  const steps = new Map(readers.map((reader) => [reader, portions(fewest, most, most)]))
  const { isPassing } = patience(services, () => false)

  async function feed(): Promise<boolean> {
    const ctx = systemContext(services, 'api')
    const newest = await newestEvent(ctx)
    const places = await Promise.all(readers.map((reader) => placeOf(ctx, reader)))
    if (places.every((place) => place >= newest)) return false
    if (await areIdle(ctx)) {
      passed = { id: newest, since: passed.since || ctx.time.getTime() }
      if (ctx.time.getTime() - passed.since < idleMs && newest - Math.min(...places) < mostPassed) return false
      passed = { id: 0, since: 0 }
      await transaction(ctx, (ctx) => moveOn(ctx, readers, newest))
      return false
    }
    const { id } = passed
    if (id > 0) await transaction(ctx, (ctx) => moveOn(ctx, readers, id))
    passed = { id: 0, since: 0 }
    let found = false
    for (const [reader, step] of steps) {
      if (failing.has(reader) || (await placeOf(ctx, reader)) >= newest) continue
      found = (await attempt(ctx, reader, step)) || found
      // Who waits for the database, or for an answer, is not kept waiting by all of the log.
      await giveWay()
    }
    if (!found) failing.clear()
    return found
  }

  /** One reader that fails stays where it is, and does not hold up the others. */
  async function attempt(ctx: Context, reader: EventReader, step: Portions): Promise<boolean> {
    try {
      return await transaction(ctx, (ctx) => give(ctx, reader, step))
    } catch (cause) {
      failing.add(reader)
      if (!isPassing(cause))
        services.log.error({ err: cause, reader: reader.name }, 'A reader of the event log failed.')
      return false
    }
  }

  async function areIdle(ctx: Context): Promise<boolean> {
    for (const reader of readers) if (!(await reader.isIdle(ctx))) return false
    return true
  }

  return { feed }
}

const mostPassed = 1000

async function give(ctx: Context, reader: EventReader, step: Portions): Promise<boolean> {
  const from = await placeOf(ctx, reader)
  const rows = await ctx.db
    .selectFrom('events')
    .select(['id', 'name', 'entity_type', 'entity_id', 'changed', 'workflow_run_id', 'created_at'])
    .where('id', '>', from)
    .orderBy('id')
    .limit(step.size())
    .execute()
  if (rows.length === 0) return false
  const events = rows.map((row): Heard => ({ ...row, changed: JSON.parse(row.changed) as string[] }))
  await moveOn(ctx, [reader], await step.taking(events.length, () => reader.take(ctx, events)))
  return true
}

async function moveOn({ db }: Context, readers: readonly EventReader[], to: number): Promise<void> {
  for (const { name } of readers)
    await db
      .updateTable('event_readers')
      .set({ last_event_id: to })
      .where('name', '=', name)
      .where('last_event_id', '<', to)
      .execute()
}

async function placeOf({ db }: Context, { name }: EventReader): Promise<number> {
  const row = await db.selectFrom('event_readers').select('last_event_id').where('name', '=', name).executeTakeFirst()
  if (!row) throw new Error(`No migration begins the reader ${name}.`)
  return row.last_event_id
}
