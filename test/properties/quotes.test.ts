// The totals of a quote: for any prices, quantities, percentages and currencies they equal the
// result of a decimal library, add up, and do not depend on the order of the lines.
import { Decimal } from 'decimal.js'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { lineTotals, type QuoteRules, quoteTotals } from '../../src/resources/quotes/totals.ts'
import { given } from '../support/given.ts'
import { useSharedServer } from '../support/using.ts'

/** Computes with 80 digits and rounds halves away from zero. */
const Exact = Decimal.clone({ precision: 80, rounding: Decimal.ROUND_HALF_UP })
const largest = 999_999_999_999_999

/** All amounts are in ten-thousandths, as stored. */
interface Line {
  price: number
  quantity: number
  discount_percent: number
  discount_amount: number
  tax_percent: number
  tax_amount: number
}

interface Sent {
  lines: Line[]
  percent: number
  adjustment: number
}

const upTo = (max: number) => fc.integer({ min: 0, max })
/** Mostly typical amounts, sometimes very large ones. */
const amount = fc.oneof({ weight: 4, arbitrary: upTo(99_999_999) }, { weight: 1, arbitrary: upTo(largest) })
const percent = fc.oneof(fc.constant(0), fc.constantFrom(5_000, 70_000, 190_000, 1_000_000), upTo(1_000_000))

const line = fc.record<Line>({
  price: amount,
  quantity: fc.oneof(
    upTo(99_999).map((each) => each + 1),
    fc.constantFrom(1, 5_000, 10_000, 25_000),
  ),
  discount_percent: percent,
  discount_amount: upTo(9_999),
  tax_percent: percent,
  tax_amount: upTo(99_999),
})

const quote = (longest: number) =>
  fc.record<Sent>({
    lines: fc.array(line, { maxLength: longest }),
    percent,
    adjustment: fc.integer({ min: -largest, max: largest }).map((each) => (each % 3 === 0 ? each : each % 1_000_000)),
  })

/** The decimals of a currency, and whether the discount of the quote lowers the tax. */
interface Money {
  decimals: number
  taxAfterDiscount: boolean
}

const usual: Money = { decimals: 2, taxAfterDiscount: true }
const money = fc.record<Money>({ decimals: fc.constantFrom(0, 2, 3, 4), taxAfterDiscount: fc.boolean() })

const rulesOf = ({ percent }: Pick<Sent, 'percent'>, { decimals, taxAfterDiscount }: Money): QuoteRules => ({
  unit: 10n ** BigInt(4 - decimals),
  taxAfterDiscount,
  discountPercent: BigInt(percent),
})

const number = (scaled: number): Decimal => new Exact(scaled).div(10_000)
const sum = (values: Decimal[]): Decimal => values.reduce((all, each) => all.plus(each), new Exact(0))

/** Computes the totals with the decimal library. */
function expected({ lines, percent, adjustment }: Sent, { decimals, taxAfterDiscount }: Money = usual) {
  const rounded = (value: Decimal): Decimal => value.toDecimalPlaces(decimals)
  const part = (of: Decimal, scaledPercent: number): Decimal => of.times(number(scaledPercent)).div(100)
  const items = lines.map((line) => {
    const total = rounded(number(line.price).times(number(line.quantity)))
    const discount = rounded(
      line.discount_percent > 0 ? part(total, line.discount_percent) : number(line.discount_amount),
    )
    const net = total.minus(discount)
    const base = taxAfterDiscount ? net.minus(part(net, percent)) : net
    const tax = rounded(line.tax_percent > 0 ? part(base, line.tax_percent) : number(line.tax_amount))
    return { total, discount, tax }
  })
  const subtotal = sum(items.map(({ total }) => total))
  const itemDiscount = sum(items.map(({ discount }) => discount))
  const discount = itemDiscount.plus(rounded(part(subtotal.minus(itemDiscount), percent)))
  const tax = sum(items.map(({ tax }) => tax))
  const adjusted = rounded(number(adjustment))
  return { items, subtotal, discount, tax, grandTotal: subtotal.minus(discount).plus(tax).plus(adjusted) }
}

const big = (line: Line, rules: QuoteRules) =>
  lineTotals(Object.fromEntries(Object.entries(line).map(([name, value]) => [name, BigInt(value)])) as never, rules)
const text = (scaled: bigint): string => new Exact(scaled.toString()).div(10_000).toFixed(4)

describe('the totals of a quote', () => {
  it('are exact for ten thousand quotes', () => {
    fc.assert(
      fc.property(quote(6), money, (sent, money) => {
        const wanted = expected(sent, money)
        const rules = rulesOf(sent, money)
        const lines = sent.lines.map((line) => big(line, rules))
        expect(lines.map((each) => [each.total, each.discount_amount, each.tax_amount].map(text))).toEqual(
          wanted.items.map((each) => [each.total, each.discount, each.tax].map((value) => value.toFixed(4))),
        )
        const totals = quoteTotals(lines, BigInt(sent.adjustment), rules)
        expect([totals.subtotal, totals.discount_amount, totals.tax_amount, totals.grand_total].map(text)).toEqual(
          [wanted.subtotal, wanted.discount, wanted.tax, wanted.grandTotal].map((value) => value.toFixed(4)),
        )
      }),
      { seed: 12, numRuns: 10_000 },
    )
  })

  it('do not depend on the order of its lines', () => {
    const shuffled = quote(8).chain((sent) =>
      fc.tuple(
        fc.constant(sent),
        fc.shuffledSubarray(sent.lines, { minLength: sent.lines.length, maxLength: sent.lines.length }),
      ),
    )
    fc.assert(
      fc.property(shuffled, ([sent, lines]) => {
        const rules = rulesOf(sent, usual)
        const totals = (each: Line[]) =>
          quoteTotals(
            each.map((line) => big(line, rules)),
            BigInt(sent.adjustment),
            rules,
          )
        expect(totals(lines)).toEqual(totals(sent.lines))
      }),
      { seed: 13, numRuns: 500 },
    )
  })
})

describe('updateQuote', () => {
  const server = useSharedServer()

  it('answers and keeps the exact totals, or says which field makes them impossible and keeps what was there', async () => {
    const make = given(server.admin)
    const [{ id }, product] = [await make.quote(), await make.product()]
    const max = number(largest)
    const outcomes = { kept: 0, refused: 0 }
    await fc.assert(
      fc.asyncProperty(quote(5), async (sent) => {
        const { items, subtotal, discount, tax, grandTotal } = expected(sent)
        const { body: before } = await server.admin.get(`/quotes/${id}`)
        const { status, body } = await server.admin.put(`/quotes/${id}`, {
          discount_percent: sent.percent / 10_000,
          adjustment_amount: sent.adjustment / 10_000,
          items: sent.lines.map((line) => ({
            product_id: product.id,
            ...Object.fromEntries(Object.entries(line).map(([name, scaled]) => [name, scaled / 10_000])),
          })),
        })
        const beyond = items.flatMap(({ total, discount }, index) => [
          ...(total.gt(max) ? [`items.${index}.quantity`] : []),
          ...(total.lte(max) && discount.gt(total) ? [`items.${index}.discount_amount`] : []),
        ])
        const together = [subtotal, tax, subtotal.minus(discount).plus(tax)].some((each) => each.gt(max))
        const wrong =
          beyond.length > 0
            ? beyond
            : together
              ? ['items']
              : grandTotal.lt(0) || grandTotal.gt(max)
                ? ['adjustment_amount']
                : []
        if (wrong.length > 0) {
          outcomes.refused++
          expect([status, Object.keys(body.errors ?? {}).sort()]).toEqual([422, wrong.sort()])
          expect((await server.admin.get(`/quotes/${id}`)).body).toEqual(before)
          return
        }
        outcomes.kept++
        expect([status, body.data]).toMatchObject([
          200,
          {
            subtotal: subtotal.toNumber(),
            discount_amount: discount.toNumber(),
            tax_amount: tax.toNumber(),
            grand_total: grandTotal.toNumber(),
            items: items.map(({ total, discount, tax }) => ({
              total: total.toNumber(),
              discount_amount: discount.toNumber(),
              tax_amount: tax.toNumber(),
            })),
          },
        ])
        expect((await server.admin.get(`/quotes/${id}`)).body.data).toEqual(body.data)
      }),
      { seed: 14, numRuns: 60 },
    )
    expect(Math.min(outcomes.kept, outcomes.refused)).toBeGreaterThan(10)
  })
})
