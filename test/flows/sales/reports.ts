// Computes the figures of the reports from the files.
import type { Opportunity, Sales } from './data.ts'

interface Days {
  start: string
  end: string
}

// Amounts have at most 4 decimals, so the sum of ten-thousandths is exact.
const sum = (amounts: readonly number[]): number =>
  amounts.reduce((total, amount) => total + Math.round(amount * 10_000), 0) / 10_000

export const worth = ({ closeValue, product }: Opportunity): number => closeValue ?? product.price

export const wonIn = ({ opportunities }: Sales, { start, end }: Days): Opportunity[] =>
  opportunities.filter(
    ({ stage, closedOn }) => stage === 'won' && closedOn !== null && closedOn >= start && closedOn <= end,
  )

export const revenueIn = (sales: Sales, days: Days): number => sum(wonIn(sales, days).map(worth))

/** Returns the count and value of the leads of a stage that were closed in each month. */
export const byMonth = ({ opportunities }: Sales, stage: 'won' | 'lost', months: readonly string[]) =>
  months.map((label) => {
    const deals = opportunities.filter((deal) => deal.stage === stage && deal.closedOn?.startsWith(label))
    return { label, count: deals.length, lead_value: sum(deals.map(worth)) }
  })

/** Returns the value of won opportunities by name, largest first. */
export function ranked(
  deals: readonly Opportunity[],
  nameOf: (deal: Opportunity) => string | null,
): { name: string; revenue: number; quantity: number }[] {
  const names = [...new Set(deals.map(nameOf))].filter((name) => name !== null)
  return names
    .map((name) => {
      const own = deals.filter((deal) => nameOf(deal) === name)
      return { name, revenue: sum(own.map(worth)), quantity: own.length }
    })
    .sort((one, other) => other.revenue - one.revenue)
}
