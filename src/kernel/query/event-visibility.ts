// Visibility of events (DOMAIN 7.4, 17.3). Each type of record has one rule, defined beside its
// list: a caller sees the events of records in that list, and of deleted records that were in it at
// the end. The feed, its streams, histories, deliveries and runs use this rule.
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
   * The operation that lists the records. A caller without its permission and ability sees no event
   * of this type.
   */
  lists: OperationFact
  /**
   * The rules for single records. Null for a singleton without an id, such as the configuration.
   */
  records: Records | null
  /** Returns a stored snapshot reduced to the fields that the caller's own reply would have. */
  asRead?: (ctx: Context, snapshot: Snapshot) => Snapshot
  /** The maximum length of texts in stored snapshots; longer ones are omitted (DOMAIN 17.3). */
  maxLoggedTextLength?: number | undefined
}

export interface Records {
  table: keyof Tables
  /**
   * The base name of the event that deletes a record; null when records of this type are not
   * deleted.
   */
  deleted: EventBase | null
  /** Returns a query of the ids of the existing visible records. */
  inSight(ctx: Context): Rows<{ id: number }> | Promise<Rows<{ id: number }>>
  /** Returns the visible ids among `ids`. By default they are read through `inSight`. */
  seen?: (ctx: Context, ids: readonly number[]) => Promise<ReadonlySet<number>>
  /**
   * Returns the SQL condition under which a deleted record was visible. It reads the alias `known`:
   * the record's last row in `events`.
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

/**
 * Returns the rule of a type. Throws for a type without a rule, so its events are neither written
 * nor shown.
 */
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
 * Returns a query of the ids of the visible records; null when the caller sees all records of the
 * type.
 */
export async function scopeOf(ctx: Context, records: Records): Promise<Rows<{ id: number }> | null> {
  const [own, all] = [await records.inSight(ctx), await records.inSight({ ...ctx, user: null, token: null })]
  return own.compile().sql === all.compile().sql ? null : own
}

/** Returns a query of the id of the newest deletion event of a record. */
export const deletionOf = (type: string, { deleted }: Records, id: RawBuilder<unknown>): RawBuilder<number | null> =>
  sql`(select max(gone.id) from events as gone where gone.entity_type = ${type} and gone.entity_id = ${id}
    and gone.name = ${`${deleted}.after`})`

/**
 * Returns whether the caller may see events of a deleted record. After its deletion event has been
 * removed from the log, no caller may.
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
