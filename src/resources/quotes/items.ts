// The items of a quote. An item stores the SKU, name and price that its product had
// when the item was written. An item without a product has a name and a price of its own.
import type { Schema } from '../../contract/types.ts'
import { type Context, now } from '../../kernel/context.ts'
import type { ValidationErrors } from '../../kernel/errors.ts'
import { fromScaled, isAmount, scaled, toScaled } from '../../kernel/values/money.ts'
import { loadPricedProducts, type PricedProduct, refuseUnlessOffered } from '../products/prices.ts'
import { lineTotals, type QuoteRules } from './totals.ts'

type Input = Schema<'QuoteItemInput'>

export interface PlannedItem {
  /** The id of a stored item; null for a new item. */
  id: number | null
  product_id: number | null
  sku: string
  name: string
  quantity: number
  price: number
  coupon_code: string | null
  discount_percent: number
  discount_amount: number
  tax_percent: number
  tax_amount: number
  total: number
  sort_order: number
}

export type Item = PlannedItem & { id: number; created_at: string; updated_at: string }

/** Returns the items of the given quotes in display order. */
export const loadItems = (ctx: Context, quoteIds: readonly number[]) =>
  ctx.db
    .selectFrom('quote_items')
    .leftJoin('products', 'products.id', 'quote_items.product_id')
    .selectAll('quote_items')
    .select(['products.name as product_name', 'products.sku as product_sku'])
    .where('quote_items.quote_id', 'in', [...quoteIds])
    .orderBy('quote_items.sort_order')
    .orderBy('quote_items.id')
    .execute()

/**
 * Returns the items to store for a request body. `saveItems` deletes the stored items that the body
 * omits. Adds all errors to `errors`.
 */
export async function planItems(
  ctx: Context,
  present: readonly Item[],
  inputs: readonly Input[],
  rules: QuoteRules,
  errors: ValidationErrors,
): Promise<PlannedItem[]> {
  const products = await loadPricedProducts(ctx, inputs)
  const taken = new Set<number>()
  return inputs.map((input, index) => {
    const below = errors.nested(`items.${index}`)
    const row = present.find(({ id }) => id === input.id)
    if (input.id !== undefined && !row) below.invalid('id', `This quote has no item with id ${input.id}.`)
    if (row && taken.has(row.id)) below.invalid('id', 'This item occurs twice.')
    if (row) taken.add(row.id)
    return planItem(row, input, { products, index, rules }, below)
  })
}

function planItem(
  row: Item | undefined,
  input: Input,
  { products, index, rules }: { products: Map<number, PricedProduct>; index: number; rules: QuoteRules },
  errors: ValidationErrors,
): PlannedItem {
  const productId = input.product_id === undefined ? (row?.product_id ?? null) : input.product_id
  const isNewProduct = productId !== null && productId !== row?.product_id
  const product = isNewProduct ? products.get(productId) : undefined
  if (productId === null && !row && input.id === undefined && !errors.isRefused('product_id'))
    for (const field of ['name', 'price'] as const)
      if (input[field] === undefined) errors.invalid(field, 'The field is required for an item without a product.')
  if (isNewProduct) refuseUnlessOffered(product, productId, errors)
  const kept = product ?? row
  const planned = {
    id: row?.id ?? null,
    product_id: productId,
    sku: kept?.sku ?? '',
    name: input.name ?? kept?.name ?? '',
    quantity: scaled(input.quantity) ?? row?.quantity ?? toScaled(1),
    price: scaled(input.price) ?? kept?.price ?? 0,
    coupon_code: input.coupon_code === undefined ? (row?.coupon_code ?? null) : input.coupon_code,
    discount_percent: scaled(input.discount_percent) ?? row?.discount_percent ?? 0,
    discount_amount: scaled(input.discount_amount) ?? fixedAmount(row, 'discount'),
    tax_percent: scaled(input.tax_percent) ?? row?.tax_percent ?? 0,
    tax_amount: scaled(input.tax_amount) ?? fixedAmount(row, 'tax'),
    sort_order: input.sort_order ?? index + 1,
  }
  return { ...planned, ...totalsOf(planned, rules, errors) }
}

/**
 * Returns the stored discount or tax amount if it is a fixed amount. Returns 0 when the stored
 * amount was computed from a percentage.
 */
const fixedAmount = (row: Item | undefined, what: 'discount' | 'tax'): number =>
  row && row[`${what}_percent`] === 0 ? row[`${what}_amount`] : 0

function totalsOf(
  item: Omit<PlannedItem, 'total'>,
  rules: QuoteRules,
  errors: ValidationErrors,
): Pick<PlannedItem, 'total' | 'discount_amount' | 'tax_amount'> {
  const line = {
    price: BigInt(item.price),
    quantity: BigInt(item.quantity),
    discount_percent: BigInt(item.discount_percent),
    discount_amount: BigInt(item.discount_amount),
    tax_percent: BigInt(item.tax_percent),
    tax_amount: BigInt(item.tax_amount),
  }
  const { total, discount_amount, tax_amount } = lineTotals(line, rules)
  if (!isAmount(total)) {
    errors.invalid('quantity', 'Price times quantity exceeds the largest amount.')
    return { total: 0, discount_amount: 0, tax_amount: 0 }
  }
  if (discount_amount > total) errors.invalid('discount_amount', 'Must not be more than price times quantity.')
  return { total: Number(total), discount_amount: Number(discount_amount), tax_amount: Number(tax_amount) }
}

const amounts = ['quantity', 'price', 'discount_percent', 'discount_amount', 'tax_percent', 'tax_amount'] as const
const others = ['product_id', 'name', 'coupon_code', 'sort_order'] as const

/** Returns whether a body repeats the stored items, so that the quote keeps them. */
export const isSameItems = (present: readonly Item[], inputs: readonly Input[]): boolean =>
  inputs.length === present.length &&
  present.every((row) => {
    const input = inputs.find(({ id }) => id === row.id)
    const isSame = (field: (typeof amounts | typeof others)[number], value: unknown): boolean =>
      value === undefined || value === row[field]
    return (
      input !== undefined &&
      amounts.every((field) => isSame(field, scaled(input[field]))) &&
      others.every((field) => isSame(field, input[field]))
    )
  })

/**
 * Replaces the stored items of a quote by the planned items. An unchanged item keeps its
 * `updated_at`.
 */
export async function saveItems(
  ctx: Context,
  quoteId: number,
  present: readonly Item[],
  planned: readonly PlannedItem[],
): Promise<void> {
  const gone = present.map(({ id }) => id).filter((id) => !planned.some((item) => item.id === id))
  if (gone.length > 0) await ctx.db.deleteFrom('quote_items').where('id', 'in', gone).execute()
  const at = now(ctx)
  for (const { id, ...columns } of planned) {
    const was = present.find((item) => item.id === id)
    if (!was || Object.entries(columns).every(([name, value]) => was[name as keyof typeof columns] === value)) continue
    await ctx.db
      .updateTable('quote_items')
      .set({ ...columns, updated_at: at })
      .where('id', '=', was.id)
      .execute()
  }
  const added = planned
    .filter(({ id }) => id === null)
    .map(({ id: _id, ...columns }) => ({ ...columns, quote_id: quoteId, created_at: at, updated_at: at }))
  if (added.length > 0) await ctx.db.insertInto('quote_items').values(added).execute()
}

export const presentItem = (
  item: Item & { product_name: string | null; product_sku: string | null },
): Schema<'QuoteItem'> => ({
  id: item.id,
  product_id: item.product_id,
  product:
    item.product_id === null
      ? null
      : { id: item.product_id, sku: item.product_sku ?? '', name: item.product_name ?? '' },
  sku: item.sku,
  name: item.name,
  quantity: fromScaled(item.quantity),
  price: fromScaled(item.price),
  coupon_code: item.coupon_code,
  discount_percent: fromScaled(item.discount_percent),
  discount_amount: fromScaled(item.discount_amount),
  tax_percent: fromScaled(item.tax_percent),
  tax_amount: fromScaled(item.tax_amount),
  total: fromScaled(item.total),
  sort_order: item.sort_order,
  created_at: item.created_at,
  updated_at: item.updated_at,
})
