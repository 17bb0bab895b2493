// Inventories: the stock of a product at a storage location, one row per product and
// location. The product row stores the sums, so that lists can filter and sort by stock. Only the
// functions here and in stock-plan.ts write inventories.
import { sql } from 'kysely'
import type { Schema } from '../../contract/types.ts'
import { type Context, now } from '../../kernel/context.ts'
import { inUse } from '../../kernel/errors.ts'
import { write } from '../../kernel/write/write.ts'

type Inventory = Schema<'Inventory'>

interface Where {
  productIds?: readonly number[]
  warehouseIds?: readonly number[]
  warehouseId?: number
  locationId?: number
}

/**
 * Returns inventories with their warehouse and location, sorted by warehouse name and then by
 * location name.
 */
export async function loadInventories(ctx: Context, where: Where): Promise<Inventory[]> {
  if (where.productIds?.length === 0 || where.warehouseIds?.length === 0) return []
  let rows = ctx.db
    .selectFrom('product_inventories as row')
    .innerJoin('warehouses', 'warehouses.id', 'row.warehouse_id')
    .innerJoin('warehouse_locations as location', 'location.id', 'row.warehouse_location_id')
    .selectAll('row')
    .select(['warehouses.name as warehouse_name', 'location.name as location_name'])
  if (where.productIds) rows = rows.where('row.product_id', 'in', [...where.productIds])
  if (where.warehouseIds) rows = rows.where('row.warehouse_id', 'in', [...where.warehouseIds])
  if (where.warehouseId !== undefined) rows = rows.where('row.warehouse_id', '=', where.warehouseId)
  if (where.locationId !== undefined) rows = rows.where('row.warehouse_location_id', '=', where.locationId)
  const found = await rows.orderBy('warehouses.name_key').orderBy('location.name_key').orderBy('row.id').execute()
  return found.map(
    (row): Inventory => ({
      id: row.id,
      product_id: row.product_id,
      warehouse_id: row.warehouse_id,
      warehouse: { id: row.warehouse_id, name: row.warehouse_name },
      warehouse_location_id: row.warehouse_location_id,
      location: { id: row.warehouse_location_id, name: row.location_name },
      in_stock: row.in_stock,
      allocated: row.allocated,
      available: row.in_stock - row.allocated,
      created_at: row.created_at,
      updated_at: row.updated_at,
    }),
  )
}

export function stockByWarehouse(inventories: readonly Inventory[]): Schema<'ProductStock'>[] {
  const found = new Map<number, Schema<'ProductStock'>>()
  for (const { warehouse, location, in_stock, allocated, available } of inventories) {
    const stock = found.get(warehouse.id) ?? { ...warehouse, in_stock: 0, allocated: 0, available: 0, locations: [] }
    stock.in_stock += in_stock
    stock.allocated += allocated
    stock.available += available
    stock.locations.push({ ...location, in_stock, allocated, available })
    found.set(warehouse.id, stock)
  }
  return [...found.values()]
}

/**
 * Runs `work`, which changes the inventories of a product, and writes one pair of events. Writes no
 * event when nothing changed.
 */
export async function writeInventories(
  ctx: Context,
  productId: number,
  input: unknown,
  work: (ctx: Context) => Promise<void>,
): Promise<void> {
  const snapshot = async (ctx: Context) => ({
    product_id: productId,
    inventories: (await loadInventories(ctx, { productIds: [productId] })).map(({ updated_at: _, ...row }) => row),
  })
  const before = await snapshot(ctx)
  const about = { entity: 'products', input, id: productId, before }
  await write(ctx, 'product.inventory.update', about, async (ctx) => {
    await work(ctx)
    const after = await snapshot(ctx)
    if (JSON.stringify(after) !== JSON.stringify(before)) await recount(ctx, productId)
    return { id: productId, entity: after }
  })
}

/** Updates the inventory sums in the product row, and raises the version of the product. */
async function recount(ctx: Context, productId: number): Promise<void> {
  const sum = (column: string) =>
    sql<number>`(select coalesce(sum(${sql.raw(column)}), 0) from product_inventories where product_id = ${productId})`
  await ctx.db
    .updateTable('products')
    .set({
      in_stock: sum('in_stock'),
      allocated: sum('allocated'),
      available: sum('in_stock - allocated'),
      version: sql`version + 1`,
      updated_at: now(ctx),
    })
    .where('id', '=', productId)
    .execute()
}

/**
 * Deletes the inventories of a location or warehouse that is being deleted. Each affected product
 * gets its own pair of events.
 */
export async function clearInventories(
  ctx: Context,
  where: { locationId: number } | { warehouseId: number },
): Promise<void> {
  const products = new Set((await loadInventories(ctx, where)).map(({ product_id }) => product_id))
  const [column, id] =
    'locationId' in where
      ? (['warehouse_location_id', where.locationId] as const)
      : (['warehouse_id', where.warehouseId] as const)
  for (const productId of [...products].sort((a, b) => a - b)) {
    await writeInventories(ctx, productId, { [column]: id, inventories: [] }, async (ctx) => {
      await ctx.db
        .deleteFrom('product_inventories')
        .where('product_id', '=', productId)
        .where(column, '=', id)
        .execute()
    })
  }
}

/** Throws 409 `in_use` while the location or warehouse has products in stock. */
export async function refuseIfStocked(
  ctx: Context,
  column: 'warehouse_location_id' | 'warehouse_id',
  { id, name }: { id: number; name: string },
): Promise<void> {
  const rows = await ctx.db
    .selectFrom('product_inventories')
    .select('product_id')
    .distinct()
    .where(column, '=', id)
    .where('in_stock', '>', 0)
    .orderBy('product_id')
    .limit(20)
    .execute()
  if (rows.length === 0) return
  throw inUse(
    `${name} has products in stock.`,
    rows.map(({ product_id }) => ({ entity_type: 'products', id: product_id, field: 'inventories' })),
  )
}
