// Replaces the inventories of a product. `planStock` computes which rows to change,
// add and delete, and `applyStockPlan` stores the plan within one write.
import type { Schema } from '../../contract/types.ts'
import { type Context, now } from '../../kernel/context.ts'
import { Problem, ValidationErrors } from '../../kernel/errors.ts'

type Inventory = Schema<'Inventory'>
type Input = Schema<'InventoryInput'>

interface Planned {
  row: Inventory | undefined
  warehouse_id: number
  warehouse_location_id: number
  in_stock: number
  allocated: number
}

/**
 * Returns the rows to store for a request body. `present` are the stored rows that the body
 * replaces. Throws 422 for invalid rows. Throws 409 when a stored stock differs from
 * `expected_in_stock`.
 */
export async function planStock(
  ctx: Context,
  present: readonly Inventory[],
  { inventories, warehouse_id: scope }: Schema<'InventoriesUpdate'>,
): Promise<Planned[]> {
  const errors = new ValidationErrors(ctx.refused)
  const warehouseOf = await locationsOf(ctx, inventories)
  const known = await warehousesOf(ctx, [scope, ...inventories.map(({ warehouse_id: id }) => id)])
  const isUnknown = (id: number | undefined): boolean => id !== undefined && !known.has(id)
  if (isUnknown(scope)) errors.invalid('warehouse_id', `No warehouse has id ${scope}.`)
  const taken = new Set<number>()
  const plan = inventories.map((input, index) => {
    const below = errors.nested(`inventories.${index}`)
    const row =
      input.id === undefined
        ? present.find((each) => each.warehouse_location_id === input.warehouse_location_id)
        : present.find(({ id }) => id === input.id)
    if (input.id !== undefined && !row) below.invalid('id', `This product has no such inventory with id ${input.id}.`)
    const locationId = input.warehouse_location_id ?? row?.warehouse_location_id
    if (locationId === undefined) below.invalid('warehouse_location_id', 'The field is required.')
    const warehouseId = warehouseOf.get(locationId ?? 0) ?? row?.warehouse_id
    const named = [input.warehouse_id ?? warehouseId, isUnknown(scope) ? warehouseId : (scope ?? warehouseId)]
    if (locationId !== undefined && warehouseId === undefined)
      below.invalid('warehouse_location_id', `No location has id ${locationId}.`)
    if (isUnknown(input.warehouse_id)) below.invalid('warehouse_id', `No warehouse has id ${input.warehouse_id}.`)
    else if (warehouseId !== undefined && named.some((id) => id !== warehouseId))
      below.invalid('warehouse_id', 'The location belongs to another warehouse.')
    if (locationId !== undefined && taken.has(locationId))
      below.invalid('warehouse_location_id', 'This location occurs twice.')
    taken.add(locationId ?? 0)
    const in_stock = input.in_stock ?? row?.in_stock ?? 0
    const allocated = input.allocated ?? row?.allocated ?? 0
    if (allocated > in_stock && !below.isRefused('in_stock'))
      below.invalid('allocated', 'Must not be more than in_stock.')
    return { row, warehouse_id: warehouseId ?? 0, warehouse_location_id: locationId ?? 0, in_stock, allocated }
  })
  errors.throwIfAny()
  for (const [index, { expected_in_stock: expected }] of inventories.entries()) {
    const is = plan[index]?.row?.in_stock ?? 0
    if (expected !== undefined && expected !== is)
      throw new Problem('state_conflict', `inventories.${index} now has ${is} in stock, not ${expected}.`)
  }
  return plan
}

/** Stores the planned rows, and deletes the rows of `present` that the plan does not contain. */
export async function applyStockPlan(
  ctx: Context,
  productId: number,
  present: readonly Inventory[],
  plan: readonly Planned[],
): Promise<void> {
  const kept = new Set(plan.map(({ row }) => row?.id))
  const gone = present.filter(({ id }) => !kept.has(id)).map(({ id }) => id)
  if (gone.length > 0) await ctx.db.deleteFrom('product_inventories').where('id', 'in', gone).execute()
  const at = now(ctx)
  // A product has at most one row per location, and a request may swap the locations of two rows.
  // To avoid a conflict, all moved rows are deleted before any of them is inserted again.
  const moving = plan.filter(({ row, ...to }) => row && row.warehouse_location_id !== to.warehouse_location_id)
  if (moving.length > 0)
    await ctx.db
      .deleteFrom('product_inventories')
      .where(
        'id',
        'in',
        moving.map(({ row }) => row?.id ?? 0),
      )
      .execute()
  for (const { row, ...values } of plan) {
    const isMoved = row && row.warehouse_location_id !== values.warehouse_location_id
    if (!row || isMoved) {
      await ctx.db
        .insertInto('product_inventories')
        .values({
          ...(row && { id: row.id }),
          ...values,
          product_id: productId,
          created_at: row?.created_at ?? at,
          updated_at: at,
        })
        .execute()
    } else if (row.in_stock !== values.in_stock || row.allocated !== values.allocated) {
      await ctx.db
        .updateTable('product_inventories')
        .set({ ...values, updated_at: at })
        .where('id', '=', row.id)
        .execute()
    }
  }
}

/** Returns a map from location id to warehouse id for the locations of the given rows. */
async function locationsOf(ctx: Context, inventories: readonly Input[]): Promise<Map<number, number>> {
  const ids = inventories.flatMap(({ warehouse_location_id: id }) => id ?? [])
  if (ids.length === 0) return new Map()
  const rows = await ctx.db
    .selectFrom('warehouse_locations')
    .select(['id', 'warehouse_id'])
    .where('id', 'in', [...new Set(ids)])
    .execute()
  return new Map(rows.map(({ id, warehouse_id }) => [id, warehouse_id]))
}

/** Returns the given warehouse ids that exist. */
async function warehousesOf(ctx: Context, ids: readonly (number | undefined)[]): Promise<ReadonlySet<number>> {
  const wanted = [...new Set(ids.flatMap((id) => id ?? []))]
  if (wanted.length === 0) return new Set()
  const rows = await ctx.db.selectFrom('warehouses').select('id').where('id', 'in', wanted).execute()
  return new Set(rows.map(({ id }) => id))
}
