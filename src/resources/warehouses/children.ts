// What a warehouse shows beside itself: its locations, and with `include=activities` the activities about it.
import type { Schema } from '../../contract/types.ts'
import { type Context, may } from '../../kernel/context.ts'
import type { Include, Resource } from '../../kernel/resource.ts'

type Warehouse = Schema<'Warehouse'>

/** How many activities of a warehouse `include` shows, the newest first; the timeline has all of them. */
const mostActivities = 100

/** The locations by name; in full with `include=locations`, for those who may read them. */
export async function gatherLocations(ctx: Context, replies: readonly Warehouse[], include: Include): Promise<void> {
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
  const resource = shown<Schema<'Location'>>(ctx, 'locations')
  const full =
    resource && include.includes('locations')
      ? await resource.many(
          ctx,
          rows.map(({ id }) => id),
        )
      : undefined
  for (const reply of replies) {
    const own = rows.filter(({ warehouse_id }) => warehouse_id === reply.id)
    reply.locations = own.map(({ id, name, warehouse_id }) => full?.get(id) ?? { id, name, warehouse_id })
  }
}

export async function gatherActivities(ctx: Context, replies: readonly Warehouse[]): Promise<void> {
  const resource = shown<Schema<'Activity'>>(ctx, 'activities')
  if (!resource) return
  const links = await ctx.db
    .selectFrom('warehouse_activities')
    .select(['warehouse_id', 'activity_id'])
    .where(
      'warehouse_id',
      'in',
      replies.map(({ id }) => id),
    )
    .orderBy('activity_id', 'desc')
    .execute()
  const own = (id: number) => links.filter(({ warehouse_id }) => warehouse_id === id).slice(0, mostActivities)
  const full = await resource.many(
    ctx,
    replies.flatMap(({ id }) => own(id).map(({ activity_id }) => activity_id)),
  )
  for (const reply of replies)
    reply.activities = own(reply.id).flatMap(({ activity_id }) => full.get(activity_id) ?? [])
}

/** A resource of a slice to the right, where the caller may read its records. */
function shown<Reply>(ctx: Context, entity: string): Resource<Reply, never> | undefined {
  const resource = ctx.services.resources.get(entity)
  return resource && may(ctx, resource.shows) ? (resource as Resource<Reply, never>) : undefined
}
