// Decides which events a caller sees. Each type of record has one rule: a caller
// sees the events of the records that the caller can list, and of deleted records that the caller
// could list until their deletion. The event feed, streams, histories, webhook deliveries and
// workflow runs use this rule.
import { type RawBuilder, type SqlBool, sql } from 'kysely'
import { isIn } from '../../../db/long-lists.ts'
import type { DB as Tables } from '../../../db/tables.gen.ts'
import type { EventBase, OperationFact, Schema } from '../../contract/types.ts'
import type { Context } from '../context.ts'
import type { Snapshot } from '../write/events.ts'
import type { Rows } from './page.ts'

/** The type of the record that an event is about (schema EventEntity). */
export type EventEntity = Schema<'EventEntity'>

export interface Sight {
  /**
   * The operation that lists the records of the type. A caller needs the permission and the ability
   * of this operation to see events of the type.
   */
  lists: OperationFact
  /**
   * The visibility rules for single records. Null for a singleton, such as the configuration, which
   * has no id.
   */
  records: Records | null
  /** Returns a stored snapshot reduced to the fields that the caller would get in a reply. */
  asRead?: (ctx: Context, snapshot: Snapshot) => Snapshot
  /**
   * The maximum number of characters of a text in stored snapshots. Longer texts are omitted.
   */
  maxLoggedTextLength?: number | undefined
}

export interface Records {
  table: keyof Tables
  /**
   * The name, without a suffix, of the event that deletes a record. Null when records of this type
   * are never deleted.
   */
  deleted: EventBase | null
  /** Returns a query of the ids of all existing records that the caller may see. */
  inSight(ctx: Context): Rows<{ id: number }> | Promise<Rows<{ id: number }>>
  /** Returns those of `ids` that the caller may see. If absent, `inSight` is queried instead. */
  seen?: (ctx: Context, ids: readonly number[]) => Promise<ReadonlySet<number>>
  /**
   * Returns the SQL condition under which the caller could see a record when it was deleted. The
   * condition refers to the deletion event by the alias `known`. A record that can be restored uses
   * only `owner_id`, `lead_owners` and `before`, which its archive has too.
   */
  wasInSight(ctx: Context): RawBuilder<SqlBool>
}

export const always = sql<SqlBool>`1 = 1`
export const never = sql<SqlBool>`1 = 0`

/**
 * Throws when a type in the contract has no rule, or a rule has no type in the contract. The server
 * must not start while the visibility of a type is undefined.
 */
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
 * Returns the visibility rule of a type. Throws for a type without a rule, so that its events are
 * neither written nor returned.
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
  const rows = await (await records.inSight(ctx)).where(isIn(id, wanted)).execute()
  return new Set(rows.map((row) => row.id))
}

/**
 * Returns a query of the ids that the caller may see; null when the caller may see all records of
 * the type.
 */
export async function scopeOf(ctx: Context, records: Records): Promise<Rows<{ id: number }> | null> {
  const [own, all] = [await records.inSight(ctx), await records.inSight({ ...ctx, user: null, token: null })]
  return own.compile().sql === all.compile().sql ? null : own
}

/** Returns an SQL expression for the id of the newest deletion event of a record. */
export const deletionOf = (type: string, { deleted }: Records, id: RawBuilder<unknown>): RawBuilder<number | null> =>
  sql`(select max(gone.id) from events as gone where gone.entity_type = ${type} and gone.entity_id = ${id}
    and gone.name = ${`${deleted}.after`})`

/**
 * Returns whether the caller may see the events of a deleted record. Returns false once the
 * deletion event has been removed from the log.
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
