// Computes the totals of a quote (DOMAIN 12.2). Pure. Amounts are integers in ten-thousandths. Each
// step is exact and rounded once to 4 decimals, half away from zero.
import { divided } from '../../kernel/values/money.ts'

/**
 * All values in ten-thousandths, as stored. A fixed amount counts only while the percentage beside
 * it is zero.
 */
export interface QuoteLine {
  price: bigint
  quantity: bigint
  discount_percent: bigint
  discount_amount: bigint
  tax_percent: bigint
  tax_amount: bigint
}

export type LineTotals = Record<'total' | 'discount_amount' | 'tax_amount', bigint>
export type Totals = Record<'sub_total' | 'discount_amount' | 'tax_amount' | 'grand_total', bigint>

const one = 10_000n

/** Returns the percentage of an amount. */
const share = (amount: bigint, percent: bigint): bigint => divided(amount * percent, 100n * one)

export function lineTotals(line: QuoteLine): LineTotals {
  const total = divided(line.price * line.quantity, one)
  const discount = line.discount_percent > 0n ? share(total, line.discount_percent) : line.discount_amount
  const tax = line.tax_percent > 0n ? share(total - discount, line.tax_percent) : line.tax_amount
  return { total, discount_amount: discount, tax_amount: tax }
}

/**
 * Returns the totals of a quote. The quote's discount applies to the subtotal after the line
 * discounts. It does not reduce the tax.
 */
export function quoteTotals(lines: readonly LineTotals[], discountPercent: bigint, adjustment: bigint): Totals {
  const sum = (name: keyof LineTotals): bigint => lines.reduce((all, line) => all + line[name], 0n)
  const subTotal = sum('total')
  const lineDiscount = sum('discount_amount')
  const discount = lineDiscount + share(subTotal - lineDiscount, discountPercent)
  const tax = sum('tax_amount')
  return {
    sub_total: subTotal,
    discount_amount: discount,
    tax_amount: tax,
    grand_total: subTotal - discount + tax + adjustment,
  }
}
