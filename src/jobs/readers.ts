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

/** Gives a reader what has happened since. True when there was something. */
export async function feed(services: Services, reader: EventReader): Promise<boolean> {
  const ctx = systemContext(services, 'api')
  const place = await placeOf(ctx, reader)
  const newest = await newestEvent(ctx)
  if (newest <= place) return false
  return transaction(ctx, async (ctx) => {
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
    await ctx.db.updateTable('event_readers').set({ last_event_id: last.id }).where('name', '=', reader.name).execute()
    return true
  })
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
