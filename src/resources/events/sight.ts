// Who may know of an event (DOMAIN 7.4, 17.4): whoever may list the type of its record and sees the record; of a deleted one, whoever
// saw it last. What is no resource is guarded by the operation that shows it. A type that nothing here knows is shown to nobody.
import type { Selectable } from 'kysely'
import type { DB } from '../../../db/tables.gen.ts'
import { type OperationFact, operations } from '../../contract/operations.gen.ts'
import type { OperationId } from '../../contract/types.ts'
import { type Context, holds, may } from '../../kernel/context.ts'
import type { Snapshot } from '../../kernel/events.ts'
import type { Resource } from '../../kernel/resource.ts'
import { seesOwner } from '../../kernel/visibility.ts'
import { rowsOf, visibleOf } from '../files/rows.ts'

export type EventRow = Selectable<DB['events']>
type AnyResource = Resource<unknown, never>

/** What has events without being a resource, and the operation that shows it. */
const shownBy: Readonly<Record<string, OperationId>> = {
  tokens: 'listTokens',
  files: 'getFile',
  configuration: 'getConfiguration',
  suppressions: 'listSuppressions',
  sends: 'listCampaignSends',
}

/**
 * Types whose records have owners: a link to one tells of it, so it must be seen as well. Of all others the record shows as much as
 * the link does.
 */
const owned: ReadonlySet<string> = new Set(['leads', 'persons', 'organizations', 'quotes', 'activities', 'emails'])

function guardOf({ services }: Context, type: string): OperationFact | undefined {
  const operation = Object.hasOwn(shownBy, type) ? shownBy[type] : undefined
  return services.resources.get(type)?.lists ?? (operation && operations[operation])
}

const opens = (ctx: Context, type: string): boolean => {
  const guard = guardOf(ctx, type)
  return guard !== undefined && may(ctx, guard)
}

/** The types of records whose events the caller may read. */
export const openTypes = (ctx: Context): string[] =>
  [...ctx.services.resources.keys(), ...Object.keys(shownBy)].filter((type) => opens(ctx, type))

const last = (row: EventRow): Snapshot => JSON.parse(row.after ?? row.before ?? '{}') as Snapshot

interface Place {
  row: EventRow
  type: string
  id: number
  isRelated: boolean
}

/** Those events that the caller may know of, with a few questions for each type of record and none for each event. */
export async function seenOf(ctx: Context, rows: readonly EventRow[]): Promise<EventRow[]> {
  const places = rows.flatMap((row): Place[] => {
    const own = { row, type: row.entity_type, id: row.entity_id ?? 0, isRelated: false }
    const { related_type: type, related_id: id } = row
    return type === null || id === null || !owned.has(type) ? [own] : [own, { row, type, id, isRelated: true }]
  })
  const hidden = new Set<EventRow>()
  for (const type of new Set(places.map((place) => place.type))) {
    const ofType = places.filter((place) => place.type === type)
    const isSeen = opens(ctx, type) ? await sightOf(ctx, type, ofType) : () => false
    for (const place of ofType) if (!isSeen(place)) hidden.add(place.row)
  }
  return rows.filter((row) => !hidden.has(row))
}

async function sightOf(ctx: Context, type: string, places: readonly Place[]): Promise<(place: Place) => boolean> {
  const resource = ctx.services.resources.get(type)
  if (resource) return sightOfRecords(ctx, resource, places)
  if (type === 'tokens') return ({ row }) => seesToken(ctx, last(row).user_id)
  if (type !== 'files') return () => true
  const files = await rowsOf(ctx, idsOf(places))
  const present = new Set(files.map(({ id }) => id))
  const seen = new Set((await visibleOf(ctx, files)).map(({ id }) => id))
  // A file that is gone was the uploader's.
  return ({ row, id }) => (present.has(id) ? seen.has(id) : last(row).user_id === ctx.user?.id)
}

const idsOf = (places: readonly Place[]): number[] => [...new Set(places.map(({ id }) => id))]

/** As in the list of tokens: the own ones, with the permission those of users in sight. */
const seesToken = (ctx: Context, userId: unknown): boolean =>
  userId === ctx.user?.id ||
  (holds(ctx, 'settings.user.tokens') && seesOwner(ctx, typeof userId === 'number' ? userId : null))

async function sightOfRecords(
  ctx: Context,
  resource: AnyResource,
  places: readonly Place[],
): Promise<(place: Place) => boolean> {
  const seen = await resource.seen(ctx, idsOf(places))
  const missing = idsOf(places).filter((id) => !seen.has(id))
  if (missing.length === 0) return () => true
  const there = await ctx.db
    .selectFrom(resource.table as 'leads')
    .select('id')
    .where('id', 'in', missing)
    .execute()
  const present = new Set(there.map(({ id }) => id))
  const gone = missing.filter((id) => !present.has(id))
  const deletions = await lastSeen(ctx, resource, gone)
  const sees = new Map(gone.map((id) => [id, deletions.has(id) && resource.seesDeleted(ctx, deletions.get(id) ?? {})]))
  return ({ row, id, isRelated }) => {
    if (seen.has(id) || present.has(id)) return seen.has(id)
    // What went without an event of its own leaves the owner that this event knew.
    return deletions.has(id) ? (sees.get(id) ?? false) : seesOwner(ctx, isRelated ? null : row.owner_id)
  }
}

/** Deleted records as they were when they went. */
async function lastSeen(
  ctx: Context,
  { entity, events }: AnyResource,
  ids: readonly number[],
): Promise<Map<number, Snapshot>> {
  if (ids.length === 0) return new Map()
  const rows = await ctx.db
    .selectFrom('events')
    .select(['entity_id', 'before'])
    .where('entity_type', '=', entity)
    .where('entity_id', 'in', ids)
    .where('name', '=', `${events.delete}.after`)
    .orderBy('id')
    .execute()
  return new Map(rows.map((row) => [row.entity_id ?? 0, JSON.parse(row.before ?? '{}') as Snapshot]))
}
