// Computes the totals of a quote (DOMAIN 12.2) without reading the database. Amounts are integers
// in ten-thousandths. Each step is exact and rounded once to an integer, half away from zero.
import { divided } from '../../kernel/values/money.ts'

/**
 * One line of a quote, with all values in ten-thousandths. A fixed discount or tax amount is used
 * only when the corresponding percentage is zero.
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

/** Returns `percent` percent of an amount. Both arguments and the result are in ten-thousandths. */
const share = (amount: bigint, percent: bigint): bigint => divided(amount * percent, 100n * one)

export function lineTotals(line: QuoteLine): LineTotals {
  const total = divided(line.price * line.quantity, one)
  const discount = line.discount_percent > 0n ? share(total, line.discount_percent) : line.discount_amount
  const tax = line.tax_percent > 0n ? share(total - discount, line.tax_percent) : line.tax_amount
  return { total, discount_amount: discount, tax_amount: tax }
}

/**
 * Returns the totals of a quote. `discountPercent` applies to the subtotal after the line
 * discounts, and does not reduce the tax.
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
