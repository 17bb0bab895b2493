// Warns of lines that sell more of a product than is in stock. A warning refuses nothing.
import { operations } from '../../contract/operations.gen.ts'
import { type Context, canCall, warn } from '../../kernel/context.ts'
import { fromScaled, toScaled } from '../../kernel/values/money.ts'

interface SoldLine {
  product_id: number | null
  /** In ten-thousandths. */
  quantity: number
}

/**
 * Adds a warning for each product of which the lines together sell more than is in stock. `fieldOf`
 * names the field of a line. Products without stock anywhere, such as services, are not counted,
 * and callers who may not read products get no warning.
 */
export async function warnOfStock(
  ctx: Context,
  lines: readonly SoldLine[],
  fieldOf: (line: number) => string,
): Promise<void> {
  const ids = [...new Set(lines.flatMap(({ product_id: id }) => id ?? []))]
  if (ids.length === 0 || !canCall(ctx, operations.getProduct)) return
  const products = await ctx.db
    .selectFrom('products')
    .select(['id', 'name', 'in_stock'])
    .where('id', 'in', ids)
    .where(({ exists, selectFrom }) =>
      exists(selectFrom('product_inventories').select('id').whereRef('product_id', '=', 'products.id')),
    )
    .execute()
  for (const { id, name, in_stock: stock } of products) {
    const sold = lines.reduce((sum, line) => sum + (line.product_id === id ? line.quantity : 0), 0)
    if (sold <= toScaled(stock)) continue
    const field = fieldOf(lines.findIndex(({ product_id }) => product_id === id))
    warn(ctx, field, `Sells ${fromScaled(sold)} of ${name}, of which ${stock} are in stock.`)
  }
}
