// The product lines of a lead: at most one line per product. A line keeps
// the name and SKU that the product had when the line was added. The functions that plan lines
// write nothing. `saveProductLines` stores the plan in the transaction of the lead.

import { sql } from 'kysely'
import { type Bound, cachedQuery } from '../../../db/cached-query.ts'
import type { Db } from '../../../db/store.ts'
import type { Schema } from '../../contract/types.ts'
import { type Context, now } from '../../kernel/context.ts'
import { ValidationErrors } from '../../kernel/errors.ts'
import type { SqlCaller } from '../../kernel/query/caller-query.ts'
import { dividedTo, fromScaled, isAmount, scaled, smallestUnit, toScaled } from '../../kernel/values/money.ts'
import { loadPricedProducts, type PricedProduct, refuseUnlessOffered } from '../products/prices.ts'

export interface ProductLine {
  id: number
  product_id: number | null
  name: string
  sku: string
  quantity: number
  price: number
  amount: number
  created_at: string
  updated_at: string
}

/** A line with the current name and SKU of its product. */
export type ProductLineWithProduct = ProductLine & { product_name: string | null; product_sku: string | null }

type Input = Schema<'LeadProductInput'>
export type PlannedProductLine = Pick<ProductLine, 'product_id' | 'name' | 'sku' | 'quantity' | 'price' | 'amount'> & {
  id: number | null
}

const lines = (db: Db) =>
  db
    .selectFrom('lead_products')
    .leftJoin('products', 'products.id', 'lead_products.product_id')
    .select(['lead_products.id', 'lead_products.product_id', 'lead_products.name'])
    .select(['lead_products.sku', 'lead_products.quantity', 'lead_products.price', 'lead_products.amount'])
    .select(['lead_products.created_at', 'lead_products.updated_at'])
    .select(['products.name as product_name', 'products.sku as product_sku'])
    .orderBy('lead_products.id')

export const loadProductLines = (ctx: Context, leadIds: readonly number[]) => linesOfLeads(ctx.db, leadIds)

const linesOfLeads = cachedQuery((db: Db, leadIds: Bound<number[]>) =>
  lines(db).where('lead_products.lead_id', 'in', leadIds),
)

/**
 * Returns a column for queries of leads: the product lines as JSON text, which `parseProductLines`
 * reads.
 */
export const productLinesColumn = ({ services }: SqlCaller, db: Db) =>
  services.store.dialect
    .jsonRows(lines(db).whereRef('lead_products.lead_id', '=', sql.ref('leads.id')), ['created_at', 'updated_at'])
    .as('lines')

export const parseProductLines = (stored: string): ProductLineWithProduct[] => JSON.parse(stored)

/** What the planning of product lines needs: the current products, and the currency (ISO 4217). */
export interface Pricing {
  products: Map<number, PricedProduct>
  currency: string
}

export const pricingOf = async (ctx: Context, inputs: readonly Input[]): Promise<Pricing> => ({
  products: await loadPricedProducts(ctx, inputs),
  currency: ctx.services.config.currency,
})

/**
 * Returns the product line to store. `present` is the stored line, or undefined for a new line. The
 * amount is rounded to the decimals of the currency. Adds an error for an unknown product and for
 * an amount that is too large.
 */
export function planProductLine(
  present: ProductLine | undefined,
  input: Input,
  { products, currency }: Pricing,
  errors: ValidationErrors,
): PlannedProductLine {
  const productId = input.product_id ?? present?.product_id ?? null
  const product = productId === null ? undefined : products.get(productId)
  const isNewProduct = productId !== (present?.product_id ?? null)
  if (isNewProduct) refuseUnlessOffered(product, productId, errors)
  const quantity = scaled(input.quantity) ?? present?.quantity ?? toScaled(1)
  const price =
    input.price !== undefined ? toScaled(input.price) : present && !isNewProduct ? present.price : (product?.price ?? 0)
  const amount = dividedTo(smallestUnit(currency), BigInt(price) * BigInt(quantity), BigInt(toScaled(1)))
  if (!isAmount(amount)) errors.invalid('quantity', 'Price times quantity exceeds the largest amount.')
  const naming = isNewProduct ? product : present
  return {
    id: present?.id ?? null,
    product_id: productId,
    name: naming?.name ?? '',
    sku: naming?.sku ?? '',
    quantity,
    price,
    amount: isAmount(amount) ? Number(amount) : 0,
  }
}

/**
 * Returns the product lines to store for a request body. `saveProductLines` deletes the stored
 * lines that the body omits.
 */
export async function planProductLines(
  ctx: Context,
  present: readonly ProductLine[],
  inputs: readonly Input[],
  errors: ValidationErrors,
): Promise<PlannedProductLine[]> {
  const pricing = await pricingOf(ctx, inputs)
  const taken = new Set<number>()
  return inputs.map((input, index) => {
    const below = errors.nested(`products.${index}`)
    const row =
      input.id === undefined
        ? present.find(({ product_id }) => product_id !== null && product_id === input.product_id)
        : present.find(({ id }) => id === input.id)
    if (input.id !== undefined && !row) below.invalid('id', `This lead has no product line with id ${input.id}.`)
    if (!row && (input.product_id === undefined || input.product_id === null)) {
      below.invalid('product_id', 'The field is required.')
      return planProductLine(undefined, { ...input, product_id: null }, pricing, new ValidationErrors())
    }
    const line = planProductLine(row, input, pricing, below)
    if (line.product_id !== null) {
      if (taken.has(line.product_id)) below.invalid('product_id', 'This product occurs twice.')
      taken.add(line.product_id)
    }
    return line
  })
}

/** Inserts or updates one planned line. An unchanged line keeps its `updated_at`. */
export async function saveProductLine(
  ctx: Context,
  leadId: number,
  was: ProductLine | undefined,
  { id, ...columns }: PlannedProductLine,
): Promise<void> {
  const at = now(ctx)
  if (id === null) {
    await ctx.db
      .insertInto('lead_products')
      .values({ ...columns, lead_id: leadId, created_at: at, updated_at: at })
      .execute()
  } else if (was && Object.entries(columns).some(([column, value]) => was[column as keyof typeof columns] !== value)) {
    await ctx.db
      .updateTable('lead_products')
      .set({ ...columns, updated_at: at })
      .where('id', '=', id)
      .execute()
  }
}

export async function saveProductLines(
  ctx: Context,
  leadId: number,
  present: readonly ProductLine[],
  planned: readonly PlannedProductLine[],
): Promise<void> {
  const kept = new Set(planned.map(({ id }) => id))
  const gone = present.map(({ id }) => id).filter((id) => !kept.has(id))
  if (gone.length > 0) await ctx.db.deleteFrom('lead_products').where('id', 'in', gone).execute()
  for (const line of planned) {
    const was = present.find(({ id }) => id === line.id)
    await saveProductLine(ctx, leadId, was, line)
  }
}

export const presentProductLine = (line: ProductLineWithProduct): Schema<'LeadProduct'> => ({
  id: line.id,
  product_id: line.product_id,
  name: line.name,
  sku: line.sku,
  quantity: fromScaled(line.quantity),
  price: fromScaled(line.price),
  amount: fromScaled(line.amount),
  product:
    line.product_id === null
      ? null
      : { id: line.product_id, sku: line.product_sku ?? '', name: line.product_name ?? '' },
  created_at: line.created_at,
  updated_at: line.updated_at,
})
