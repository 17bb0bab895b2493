// Visibility of events (DOMAIN 7.4, 17.3). Each type of the event log has one rule, kept beside its
// list: a caller sees events of the records that the list shows, and of a deleted record that the
// caller saw last. The feed, its streams, histories, deliveries and runs use this rule.
import { type RawBuilder, type SqlBool, sql } from 'kysely'
import type { DB as Tables } from '../../../db/tables.gen.ts'
import type { EventBase, OperationFact, Schema } from '../../contract/types.ts'
import type { Context } from '../context.ts'
import type { Snapshot } from '../write/events.ts'
import type { Rows } from './page.ts'

/** A type of record that events are about (schema EventEntity). */
export type EventEntity = Schema<'EventEntity'>

export interface Sight {
  /**
   * The operation that lists the records: a caller without its permission and ability sees no event
   * of the type.
   */
  lists: OperationFact
  /** Null for a single record without an id, such as the configuration. */
  records: Records | null
  /** A stored snapshot reduced to the fields that the caller's own reply would hold. */
  asRead?: (ctx: Context, snapshot: Snapshot) => Snapshot
  /** Longer texts are left out of stored snapshots (DOMAIN 17.3). */
  maxLoggedTextLength?: number | undefined
}

export interface Records {
  table: keyof Tables
  /** The event that deletes a record; null when records of this type are not deleted. */
  deleted: EventBase | null
  /** The existing visible records, as a query of their ids. */
  inSight(ctx: Context): Rows<{ id: number }> | Promise<Rows<{ id: number }>>
  /** The visible ids among these; by default read through `inSight`. */
  seen?: (ctx: Context, ids: readonly number[]) => Promise<ReadonlySet<number>>
  /**
   * Whether a deleted record was visible: a condition on `known`, the last row of `events` about
   * it.
   */
  wasInSight(ctx: Context): RawBuilder<SqlBool>
}

export const always = sql<SqlBool>`1 = 1`
export const never = sql<SqlBool>`1 = 0`

/** Throws unless each type of the contract has a rule: a server must not guess who sees a type. */
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

/** The rule of a type. Throws for a type without one, so none of its events is written or shown. */
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

/**
 * The visible records, as a query of their ids; null when the caller sees all records of the type.
 */
export async function scopeOf(ctx: Context, records: Records): Promise<Rows<{ id: number }> | null> {
  const [own, all] = [await records.inSight(ctx), await records.inSight({ ...ctx, user: null, token: null })]
  return own.compile().sql === all.compile().sql ? null : own
}

/** The newest deletion event of this id, as a query of one number. */
export const deletionOf = (type: string, { deleted }: Records, id: RawBuilder<unknown>): RawBuilder<number | null> =>
  sql`(select max(gone.id) from events as gone where gone.entity_type = ${type} and gone.entity_id = ${id}
    and gone.name = ${`${deleted}.after`})`

/**
 * Whether the caller may see events of a deleted record. Once its deletion has left the log, no
 * caller may.
 */
export async function wasSeen(ctx: Context, type: string, records: Records, id: number): Promise<boolean> {
  const deletion = await ctx.db
    .selectFrom('events as known')
    .select('known.id')
    .where('known.id', '=', deletionOf(type, records, sql`${id}`))
    .where(records.wasInSight(ctx))
    .executeTakeFirst()
  return deletion !== undefined
}
