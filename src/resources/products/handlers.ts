// Handlers of products besides list, get, create, update and delete: mass deletion, export, tags,
// and inventories.
import { type SqlBool, sql } from 'kysely'
import type { Schema } from '../../contract/types.ts'
import type { Handler, Handlers } from '../../kernel/handler.ts'
import { exportOf } from '../../kernel/resource/export.ts'
import { massDelete } from '../../kernel/resource/mass.ts'
import { transaction } from '../../kernel/write/write.ts'
import { createTagHandlers } from '../tags/tag-handlers.ts'
import { warehouses } from '../warehouses/resource.ts'
import { productColumns } from './columns.ts'
import { loadInventories, stockByWarehouse, writeInventories } from './inventories.ts'
import { products } from './resource.ts'
import { applyStockPlan, planStock } from './stock-plan.ts'

const tags = createTagHandlers('products', products)

const listProductInventories: Handler<'listProductInventories'> = (ctx, { params, query }) =>
  products.withVersionOf(ctx, params.id, async () => {
    const wanted = query.warehouse_id
    return { data: await loadInventories(ctx, { productIds: [params.id], ...(wanted && { warehouseIds: wanted }) }) }
  })

const updateProductInventories: Handler<'updateProductInventories'> = (ctx, { params, body }) =>
  transaction(ctx, async (ctx) => {
    await products.assertVisible(ctx, params.id)
    const scope = { productIds: [params.id], ...(body.warehouse_id && { warehouseId: body.warehouse_id }) }
    const present = await loadInventories(ctx, scope)
    const plan = await planStock(ctx, present, body)
    await writeInventories(ctx, params.id, body, (ctx) => applyStockPlan(ctx, params.id, present, plan))
    return { data: await loadInventories(ctx, scope), message: 'Inventories updated.' }
  })

/**
 * Lists the products of a warehouse. The quantities of each product are its quantities in this
 * warehouse, not its totals.
 */
const listWarehouseProducts: Handler<'listWarehouseProducts'> = async (ctx, { params, query }) => {
  await warehouses.assertVisible(ctx, params.id)
  const list = await products.list(ctx, query, (rows) =>
    rows.where(
      sql<SqlBool>`products.id in (select product_id from product_inventories where warehouse_id = ${params.id})`,
    ),
  )
  const shown = list.data as Schema<'Product'>[]
  const inventories = await loadInventories(ctx, { productIds: shown.map(({ id }) => id), warehouseId: params.id })
  for (const product of shown) {
    const [stock] = stockByWarehouse(inventories.filter(({ product_id }) => product_id === product.id))
    if (stock)
      Object.assign(product, { in_stock: stock.in_stock, allocated: stock.allocated, available: stock.available })
  }
  return list
}

export const handlers = {
  massDeleteProducts: massDelete(products),
  exportProducts: exportOf(products, productColumns),
  listProductTags: tags.list,
  attachProductTag: tags.attach,
  detachProductTag: tags.detach,
  listProductInventories,
  updateProductInventories,
  listProductWarehouses: async (ctx, { params }) => {
    await products.assertVisible(ctx, params.id)
    return { data: stockByWarehouse(await loadInventories(ctx, { productIds: [params.id] })) }
  },
  listWarehouseProducts,
} satisfies Partial<Handlers>
