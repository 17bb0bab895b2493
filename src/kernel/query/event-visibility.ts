// Who may know of what happened to a record (DOMAIN 7.4, 17.3). Each type of the event log has one rule, which stands beside its list:
// the caller knows of the records that the list shows, and of a record that is gone when the caller saw it last. The feed, its streams,
// histories, deliveries and runs ask this rule and no other.
import { type RawBuilder, type SqlBool, sql } from 'kysely'
import type { DB as Tables } from '../../../db/tables.gen.ts'
import type { EventBase, OperationFact, Schema } from '../../contract/types.ts'
import type { Context } from '../context.ts'
import type { Snapshot } from '../write/events.ts'
import type { Rows } from './page.ts'

/** A type of record that events are about: the contract has the list (schema EventEntity). */
export type EventEntity = Schema<'EventEntity'>

export interface Sight {
  /** The operation that lists the records: without its permission and ability the caller knows of none. */
  lists: OperationFact
  /** Null for one whole without an id, such as the configuration. */
  records: Records | null
  /** A stored snapshot as the caller may read it, where the caller's own reply would hold less than the writer's. */
  asRead?: (ctx: Context, snapshot: Snapshot) => Snapshot
  /** Longer texts are left out of stored snapshots (DOMAIN 17.3). */
  maxLoggedTextLength?: number | undefined
}

export interface Records {
  table: keyof Tables
  /** The event by which a record goes; null when a record goes without one. */
  deleted: EventBase | null
  /** The records that exist and are in sight, as a query of their ids. */
  inSight(ctx: Context): Rows<{ id: number }> | Promise<Rows<{ id: number }>>
  /** Which of the ids are among them; asked of `inSight` when left out. */
  seen?: (ctx: Context, ids: readonly number[]) => Promise<ReadonlySet<number>>
  /** Whether a record that is gone was in sight: a condition on `known`, the row of `events` that knew it last. */
  wasInSight(ctx: Context): RawBuilder<SqlBool>
}

export const always = sql<SqlBool>`1 = 1`
export const never = sql<SqlBool>`1 = 0`

/** Throws unless there is a rule for each type of the contract: a server must not guess who sees a type. */
export function checkSights(sights: ReadonlyMap<string, Sight>, contract: object): void {
  const { components } = contract as { components?: { schemas?: Record<string, { enum?: string[] }> } }
  const types = components?.schemas?.EventEntity?.enum ?? []
  const unruled = types.filter((type) => !sights.has(type))
  const unknown = [...sights.keys()].filter((type) => !types.includes(type))
  if (unruled.length > 0)
    throw new Error(
      `The server does not start: events may be about ${unruled.join(', ')}, and no rule says who sees those. Add one in src/operations.ts.`,
    )
  if (unknown.length > 0)
    throw new Error(
      `The server does not start: there are rules for events about ${unknown.join(', ')}, which the schema EventEntity of the contract lacks.`,
    )
}

/** The rule of a type. Throws for a type without one: nothing is written or shown of it. */
export function sightOf({ services }: Pick<Context, 'services'>, type: string): Sight {
  const sight = services.sights.get(type)
  if (!sight) throw new Error(`No rule says who sees events about ${type}.`)
  return sight
}

export async function seenOf(ctx: Context, records: Records, ids: readonly number[]): Promise<ReadonlySet<number>> {
  const wanted = [...new Set(ids)]
  if (wanted.length === 0) return new Set()
  if (records.seen) return records.seen(ctx, wanted)
  const id = sql.ref(`${records.table}.id`)
  const rows = await (await records.inSight(ctx)).where(sql<SqlBool>`${id} in (${sql.join(wanted)})`).execute()
  return new Set(rows.map((row) => row.id))
}

/** The records that are in sight, as a query of their ids; null when the type hides none of its records from the caller. */
export async function scopeOf(ctx: Context, records: Records): Promise<Rows<{ id: number }> | null> {
  const [own, all] = [await records.inSight(ctx), await records.inSight({ ...ctx, user: null, token: null })]
  return own.compile().sql === all.compile().sql ? null : own
}

/** The newest event by which the record with this id went, as a query of one number. */
export const deletionOf = (type: string, { deleted }: Records, id: RawBuilder<unknown>): RawBuilder<number | null> =>
  sql`(select max(gone.id) from events as gone where gone.entity_type = ${type} and gone.entity_id = ${id}
    and gone.name = ${`${deleted}.after`})`

/** Whether the caller may know of a record that is gone. One whose deletion is no longer in the log is known to nobody. */
export async function wasSeen(ctx: Context, type: string, records: Records, id: number): Promise<boolean> {
  const deletion = await ctx.db
    .selectFrom('events as known')
    .select('known.id')
    .where('known.id', '=', deletionOf(type, records, sql`${id}`))
    .where(records.wasInSight(ctx))
    .executeTakeFirst()
  return deletion !== undefined
}
