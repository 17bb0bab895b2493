// Loads the product values that product lines of leads and items of quotes copy: name, SKU and
// price.
import type { Context } from '../../kernel/context.ts'
import type { ValidationErrors } from '../../kernel/errors.ts'

export interface PricedProduct {
  id: number
  name: string
  sku: string
  price: number
  discontinued: number
}

/**
 * Returns a map from product id to product for the given lines, with one query. Permission is not
 * checked, because a caller who may edit leads or quotes may use any product.
 */
export async function loadPricedProducts(
  ctx: Context,
  lines: readonly { product_id?: number | null | undefined }[],
): Promise<Map<number, PricedProduct>> {
  const wanted = [...new Set(lines.flatMap(({ product_id }) => product_id ?? []))]
  if (wanted.length === 0) return new Map()
  const rows = await ctx.db
    .selectFrom('products')
    .select(['id', 'name', 'sku', 'price', 'discontinued'])
    .where('id', 'in', wanted)
    .execute()
  return new Map(rows.map((row) => [row.id, row]))
}

/** Adds an error unless a new line can name the product. */
export function refuseUnlessOffered(
  product: PricedProduct | undefined,
  id: number | null,
  errors: ValidationErrors,
): void {
  if (!product) errors.invalid('product_id', `No product has id ${id}.`)
  else if (product.discontinued === 1) errors.invalid('product_id', `The product ${product.name} is discontinued.`)
}
