// Which events a caller may know of: those about records that the rule of their type shows (kernel/query/event-visibility.ts). The rules are asked a few
// questions for each type of record and none for each event.
import { type Selectable, sql } from 'kysely'
import type { DB } from '../../../db/tables.gen.ts'
import { type Context, canCall } from '../../kernel/context.ts'
import { type Records, seenOf } from '../../kernel/query/event-visibility.ts'
import { canSeeOwner } from '../../kernel/query/visibility.ts'

export type EventRow = Selectable<DB['events']>
/** What says which records an event is about. */
export type Placed = Pick<EventRow, 'id' | 'entity_type' | 'entity_id' | 'related_type' | 'related_id'>

/**
 * Types whose records have owners: a link to one tells of it, so it must be seen as well. Of all others the record shows as much as
 * the link does.
 */
const owned: ReadonlySet<string> = new Set(['leads', 'persons', 'organizations', 'quotes', 'activities', 'emails'])

/** The types of records whose events the caller may read. */
export const openTypes = (ctx: Context): string[] =>
  [...ctx.services.sights].flatMap(([type, { lists }]) => (canCall(ctx, lists) ? [type] : []))

interface Place {
  row: Placed
  type: string
  id: number
  isRelated: boolean
}

/** Those events that the caller may know of. */
export async function knownOf<Row extends Placed>(ctx: Context, rows: readonly Row[]): Promise<Row[]> {
  const places = rows.flatMap((row): Place[] => {
    const own = { row, type: row.entity_type, id: row.entity_id ?? 0, isRelated: false }
    const { related_type: type, related_id: id } = row
    return type === null || id === null || !owned.has(type) ? [own] : [own, { row, type, id, isRelated: true }]
  })
  const hidden = new Set<Placed>()
  for (const type of new Set(places.map((place) => place.type))) {
    const ofType = places.filter((place) => place.type === type)
    const isKnown = await knownOfType(ctx, type, ofType)
    for (const place of ofType) if (!isKnown(place)) hidden.add(place.row)
  }
  return rows.filter((row) => !hidden.has(row))
}

async function knownOfType(ctx: Context, type: string, places: readonly Place[]): Promise<(place: Place) => boolean> {
  const sight = ctx.services.sights.get(type)
  // The log may hold a type of an earlier version.
  if (!sight || !canCall(ctx, sight.lists)) return () => false
  const { records } = sight
  if (!records) return () => true
  const ids = [...new Set(places.map(({ id }) => id))]
  const seen = await seenOf(ctx, records, ids)
  const gone = await goneOf(
    ctx,
    records,
    ids.filter((id) => !seen.has(id)),
  )
  if (gone.size === 0) return ({ id }) => seen.has(id)
  const deletions = await deletionsOf(ctx, type, records, [...gone])
  const orphans = places.flatMap(({ row, id, isRelated }) =>
    gone.has(id) && !isRelated && !deletions.has(id) ? [row.id] : [],
  )
  const known = await wereInSight(ctx, records, [...deletions.values(), ...orphans])
  return ({ row, id, isRelated }) => {
    if (!gone.has(id)) return seen.has(id)
    const deletion = deletions.get(id)
    if (deletion !== undefined) return known.has(deletion)
    // What went without an event of its own was last known by this event, which of a link says nothing of the other record.
    return isRelated ? canSeeOwner(ctx, null) : known.has(row.id)
  }
}

/** Which of the ids are those of no record any more. */
async function goneOf({ db }: Context, { table }: Records, ids: readonly number[]): Promise<Set<number>> {
  if (ids.length === 0) return new Set()
  const rows = await db
    .selectFrom(table as 'leads')
    .select('id')
    .where('id', 'in', ids)
    .execute()
  const present = new Set(rows.map(({ id }) => id))
  return new Set(ids.filter((id) => !present.has(id)))
}

/** The newest events by which records went: a record can be deleted, restored and deleted again. */
async function deletionsOf(
  { db }: Context,
  type: string,
  { deleted }: Records,
  ids: readonly number[],
): Promise<Map<number, number>> {
  if (deleted === null) return new Map()
  const rows = await db
    .selectFrom('events')
    .select(['entity_id', sql<number>`max(id)`.as('last')])
    .where('entity_type', '=', type)
    .where('entity_id', 'in', ids)
    .where('name', '=', `${deleted}.after`)
    .groupBy('entity_id')
    .execute()
  return new Map(rows.map((row) => [row.entity_id ?? 0, row.last]))
}

/** Those of the events that knew a record last whose record was in sight then. */
async function wereInSight(ctx: Context, records: Records, ids: readonly number[]): Promise<Set<number>> {
  if (ids.length === 0) return new Set()
  const rows = await ctx.db
    .selectFrom('events as known')
    .select('known.id')
    .where('known.id', 'in', [...new Set(ids)])
    .where(records.wasInSight(ctx))
    .execute()
  return new Set(rows.map(({ id }) => id))
}
