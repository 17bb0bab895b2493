// Filters events by the caller's visibility. The rule of an entity
// (kernel/query/event-visibility.ts) decides which records of that entity the caller may see. The
// number of queries depends on the number of entities, not on the number of events.
import { type Selectable, sql } from 'kysely'
import type { DB } from '../../../db/tables.gen.ts'
import { type Context, canCall } from '../../kernel/context.ts'
import { type Records, seenOf } from '../../kernel/query/event-visibility.ts'
import { canSeeOwner } from '../../kernel/query/visibility.ts'

export type EventRow = Selectable<DB['events']>
/** The columns that identify the record and the related record of an event. */
export type EventReference = Pick<EventRow, 'id' | 'entity_type' | 'entity_id' | 'related_type' | 'related_id'>

/**
 * Entities whose records have an owner. An event reveals its related record, so the caller must
 * also see a related record of these entities. Related records of other entities need no check.
 */
const ownedTypes: ReadonlySet<string> = new Set(['leads', 'persons', 'organizations', 'quotes', 'activities', 'emails'])

/** Returns the entities whose events the caller may read. */
export const listableTypes = (ctx: Context): string[] =>
  [...ctx.services.sights].flatMap(([type, { lists }]) => (canCall(ctx, lists) ? [type] : []))

interface RecordReference {
  row: EventReference
  type: string
  id: number
  isRelated: boolean
}

/** Returns the subset of `rows` whose events the caller may see. */
export async function filterVisible<Row extends EventReference>(ctx: Context, rows: readonly Row[]): Promise<Row[]> {
  const places = rows.flatMap((row): RecordReference[] => {
    const own = { row, type: row.entity_type, id: row.entity_id ?? 0, isRelated: false }
    const { related_type: type, related_id: id } = row
    return type === null || id === null || !ownedTypes.has(type) ? [own] : [own, { row, type, id, isRelated: true }]
  })
  const hidden = new Set<EventReference>()
  for (const type of new Set(places.map((place) => place.type))) {
    const ofType = places.filter((place) => place.type === type)
    const isKnown = await visibilityOfType(ctx, type, ofType)
    for (const place of ofType) if (!isKnown(place)) hidden.add(place.row)
  }
  return rows.filter((row) => !hidden.has(row))
}

async function visibilityOfType(
  ctx: Context,
  type: string,
  places: readonly RecordReference[],
): Promise<(place: RecordReference) => boolean> {
  const sight = ctx.services.sights.get(type)
  // The log may contain events of an entity that only an earlier version had. Such an entity has no
  // rule, so its events stay hidden.
  if (!sight || !canCall(ctx, sight.lists)) return () => false
  const { records } = sight
  if (!records) return () => true
  const ids = [...new Set(places.map(({ id }) => id))]
  const seen = await seenOf(ctx, records, ids)
  const gone = await findMissing(
    ctx,
    records,
    ids.filter((id) => !seen.has(id)),
  )
  if (gone.size === 0) return ({ id }) => seen.has(id)
  const deletions = await findDeletions(ctx, type, records, [...gone])
  const orphans = places.flatMap(({ row, id, isRelated }) =>
    gone.has(id) && !isRelated && !deletions.has(id) ? [row.id] : [],
  )
  const known = await wereInSight(ctx, records, [...deletions.values(), ...orphans])
  return ({ row, id, isRelated }) => {
    if (!gone.has(id)) return seen.has(id)
    const deletion = deletions.get(id)
    if (deletion !== undefined) return known.has(deletion)
    // The record was deleted, but the log has no deletion event. For an event about this record,
    // the owner stored in the event decides. The owner of a related record is not stored, so only
    // callers who see all records may see the event.
    return isRelated ? canSeeOwner(ctx, null) : known.has(row.id)
  }
}

/** Returns the subset of `ids` whose records no longer exist. */
async function findMissing({ db }: Context, { table }: Records, ids: readonly number[]): Promise<Set<number>> {
  if (ids.length === 0) return new Set()
  const rows = await db
    .selectFrom(table as 'leads')
    .select('id')
    .where('id', 'in', ids)
    .execute()
  const present = new Set(rows.map(({ id }) => id))
  return new Set(ids.filter((id) => !present.has(id)))
}

/**
 * Returns a map from record id to the id of the latest event that deleted the record. A record can
 * have several deletion events, because a deleted record can be restored.
 */
async function findDeletions(
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

/**
 * Returns the subset of event `ids` whose record was visible to the caller at the time of the
 * event.
 */
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
