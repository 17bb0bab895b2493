// Consumers of the event log (DESIGN 6): what follows an event is decided here, in the transaction that moves the reader on, so each
// event is seen exactly once by each reader, whatever ends the process.
import type { Selectable } from 'kysely'
import type { DB } from '../../db/tables.gen.ts'
import { type Context, type Services, systemContext } from '../kernel/context.ts'
import type { Snapshot } from '../kernel/events.ts'
import { transaction } from '../kernel/write.ts'

type Row = Selectable<DB['events']>

/** A row of the event log, read. */
export interface StoredEvent extends Omit<Row, 'before' | 'after' | 'changed' | 'restored'> {
  before: Snapshot | null
  after: Snapshot | null
  changed: string[]
  restored: boolean
}

export interface EventReader {
  /** How its place is stored; a migration begins it, at the end of the log. */
  name: string
  /** Whether no event means anything to it now; what it passes over then it never sees. */
  isIdle(ctx: Context): Promise<boolean>
  /** Events in their order. Writes rows and jobs, and calls nobody: it runs in a transaction. */
  take(ctx: Context, events: readonly StoredEvent[]): Promise<void>
}

const atOnce = 100

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
  /** Gives all readers what has happened since, in one transaction. True when there was something. */
  feed(): Promise<boolean>
}

/** How long readers that want nothing may stay behind, so that a server nobody listens to does not write twice. */
const idleMs = 5000

export function createFeeder(services: Services, readers: readonly EventReader[]): Feeder {
  /** The newest event when nobody wanted any, and since when that is not written down. */
  let passed = { id: 0, since: 0 }

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
    passed = { id: 0, since: 0 }
    return transaction(ctx, async (ctx) => {
      let found = false
      await moveOn(ctx, readers, id)
      for (const reader of readers) found = (await give(ctx, reader)) || found
      return found
    })
  }

  async function areIdle(ctx: Context): Promise<boolean> {
    for (const reader of readers) if (!(await reader.isIdle(ctx))) return false
    return true
  }

  return { feed }
}

const mostPassed = 1000

async function give(ctx: Context, reader: EventReader): Promise<boolean> {
  const from = await placeOf(ctx, reader)
  const rows = await ctx.db
    .selectFrom('events')
    .selectAll()
    .where('id', '>', from)
    .orderBy('id')
    .limit(atOnce)
    .execute()
  const last = rows.at(-1)
  if (!last) return false
  await reader.take(ctx, rows.map(readEvent))
  await moveOn(ctx, [reader], last.id)
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

async function newestEvent({ db }: Context): Promise<number> {
  const row = await db.selectFrom('events').select('id').orderBy('id', 'desc').limit(1).executeTakeFirst()
  return row?.id ?? 0
}
