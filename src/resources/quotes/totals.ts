// Computes the totals of a quote without reading the database. Amounts are integers in
// ten-thousandths. Each printed amount is rounded once, half away from zero, to the decimals of the
// currency. Sums add rounded amounts, so a printed quote adds up.
import type { Config } from '../../config/config.ts'
import { dividedTo, smallestUnit } from '../../kernel/values/money.ts'

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
export type Totals = Record<'subtotal' | 'discount_amount' | 'tax_amount' | 'adjustment_amount' | 'grand_total', bigint>

export interface QuoteRules {
  /** The smallest printed amount of the currency in ten-thousandths. */
  unit: bigint
  /** Whether the discount of the whole quote lowers the tax base of each line. */
  taxAfterDiscount: boolean
  /** The discount of the whole quote. */
  discountPercent: bigint
}

const one = 10_000n
const whole = 100n * one

/** Returns the rules of the installation for a quote with this discount. */
export const quoteRules = (
  { currency, taxAfterDiscount }: Pick<Config, 'currency' | 'taxAfterDiscount'>,
  discountPercent: number,
): QuoteRules => ({ unit: smallestUnit(currency), taxAfterDiscount, discountPercent: BigInt(discountPercent) })

export function lineTotals(line: QuoteLine, { unit, taxAfterDiscount, discountPercent }: QuoteRules): LineTotals {
  const rounded = (dividend: bigint, divisor = 1n): bigint => dividedTo(unit, dividend, divisor)
  const total = rounded(line.price * line.quantity, one)
  const discount =
    line.discount_percent > 0n ? rounded(total * line.discount_percent, whole) : rounded(line.discount_amount)
  const taxed = taxAfterDiscount ? whole - discountPercent : whole
  const tax =
    line.tax_percent > 0n
      ? rounded((total - discount) * taxed * line.tax_percent, whole * whole)
      : rounded(line.tax_amount)
  return { total, discount_amount: discount, tax_amount: tax }
}

export interface RateTotals {
  /** The rate; null for lines with a fixed amount of tax. */
  percent: bigint | null
  taxable: bigint
  tax: bigint
}

/**
 * Returns the tax of the lines by rate, the highest rate first. The taxes add up to the tax of the
 * quote. Each taxable amount gets its share of the discount of the whole quote, such that the
 * shares add up to that discount.
 */
export function taxesByRate(
  lines: readonly (LineTotals & { tax_percent: bigint })[],
  { unit, taxAfterDiscount, discountPercent }: QuoteRules,
): RateTotals[] {
  const rates = new Map<bigint | null, RateTotals>()
  for (const { total, discount_amount, tax_amount, tax_percent } of lines) {
    const percent = tax_percent === 0n && tax_amount > 0n ? null : tax_percent
    const rate = rates.get(percent) ?? { percent, taxable: 0n, tax: 0n }
    rates.set(percent, { percent, taxable: rate.taxable + total - discount_amount, tax: rate.tax + tax_amount })
  }
  const sorted = [...rates.values()].sort((one, other) => Number((other.percent ?? -1n) - (one.percent ?? -1n)))
  if (!taxAfterDiscount) return sorted
  let [net, discount] = [0n, 0n]
  return sorted.map((rate) => {
    net += rate.taxable
    const all = dividedTo(unit, net * discountPercent, whole)
    const taxable = rate.taxable - (all - discount)
    discount = all
    return { ...rate, taxable }
  })
}

/**
 * Returns the totals of a quote. The discount of the whole quote applies to the subtotal after the
 * line discounts.
 */
export function quoteTotals(
  lines: readonly LineTotals[],
  adjustment: bigint,
  { unit, discountPercent }: QuoteRules,
): Totals {
  const sum = (name: keyof LineTotals): bigint => lines.reduce((all, line) => all + line[name], 0n)
  const subtotal = sum('total')
  const lineDiscount = sum('discount_amount')
  const discount = lineDiscount + dividedTo(unit, (subtotal - lineDiscount) * discountPercent, whole)
  const tax = sum('tax_amount')
  const adjusted = dividedTo(unit, adjustment, 1n)
  return {
    subtotal,
    discount_amount: discount,
    tax_amount: tax,
    adjustment_amount: adjusted,
    grand_total: subtotal - discount + tax + adjusted,
  }
}
