// Adds related records to replies of warehouses: the locations always, and the activities with
// `include=activities`.
import { sql } from 'kysely'
import type { Schema } from '../../contract/types.ts'
import { type Context, canCall } from '../../kernel/context.ts'
import type { Include, Resource } from '../../kernel/resource/define-resource.ts'

type Warehouse = Schema<'Warehouse'>

/**
 * The maximum number of activities per warehouse with `include=activities`, newest first. The
 * timeline of the warehouse has all activities.
 */
const maxActivities = 100

/**
 * Adds the locations of each warehouse, sorted by name. With `include=locations`, callers who may
 * read locations get all fields of a location; otherwise a location has an id, a name and a
 * warehouse.
 */
export async function loadLocations(ctx: Context, replies: readonly Warehouse[], include: Include): Promise<void> {
  const rows = await ctx.db
    .selectFrom('warehouse_locations')
    .select(['id', 'name', 'warehouse_id'])
    .where(
      'warehouse_id',
      'in',
      replies.map(({ id }) => id),
    )
    .orderBy('name_key')
    .execute()
  const resource = readableResource<Schema<'IncludedStorageLocation'>>(ctx, 'locations')
  const full =
    resource && include.includes('locations')
      ? await resource.getMany(
          ctx,
          rows.map(({ id }) => id),
        )
      : undefined
  for (const reply of replies) {
    const own = rows.filter(({ warehouse_id }) => warehouse_id === reply.id)
    reply.locations = own.map(({ id, name, warehouse_id }) => full?.get(id) ?? { id, name, warehouse_id })
  }
}

export async function loadActivities(ctx: Context, replies: readonly Warehouse[]): Promise<void> {
  const resource = readableResource<Schema<'IncludedActivity'>>(ctx, 'activities')
  if (!resource) return
  const ids = replies.map(({ id }) => id)
  // The query returns only visible activities, so the limit does not count hidden ones.
  const ranked = (await resource.query(ctx, {}))
    .clearSelect()
    .clearOrderBy()
    .innerJoin('warehouse_activities as link', 'link.activity_id', 'activities.id')
    .where('link.warehouse_id', 'in', ids)
    .select(['link.warehouse_id', 'link.activity_id'])
    .select(sql<number>`row_number() over (partition by link.warehouse_id order by link.activity_id desc)`.as('place'))
  const links = await ctx.db
    .selectFrom(ranked.as('ranked'))
    .select(['ranked.warehouse_id', 'ranked.activity_id'])
    .where('ranked.place', '<=', maxActivities)
    .orderBy('ranked.activity_id', 'desc')
    .execute()
  const full = await resource.getMany(
    ctx,
    links.map(({ activity_id }) => activity_id),
  )
  const own = new Map<number, Schema<'IncludedActivity'>[]>(ids.map((id) => [id, []]))
  for (const { warehouse_id, activity_id } of links)
    own.get(warehouse_id)?.push(...[full.get(activity_id) ?? []].flat())
  for (const reply of replies) reply.activities = own.get(reply.id) ?? []
}

/**
 * Returns the resource of `entity` if the caller may read its records. The resource comes from the
 * registry, because an import would be circular.
 */
function readableResource<Reply>(ctx: Context, entity: string): Resource<Reply, never> | undefined {
  const resource = ctx.services.resources.get(entity)
  return resource && canCall(ctx, resource.getOperation) ? (resource as Resource<Reply, never>) : undefined
}
