// The figures of the reports, computed from the files alone.
import type { Opportunity, Sales } from './data.ts'

interface Days {
  start: string
  end: string
}

// Amounts have at most 4 decimals; in ten-thousandths their sum is exact.
const sum = (amounts: readonly number[]): number =>
  amounts.reduce((total, amount) => total + Math.round(amount * 10_000), 0) / 10_000

export const worth = ({ closeValue, product }: Opportunity): number => closeValue ?? product.price

export const wonIn = ({ opportunities }: Sales, { start, end }: Days): Opportunity[] =>
  opportunities.filter(
    ({ stage, closedOn }) => stage === 'won' && closedOn !== null && closedOn >= start && closedOn <= end,
  )

export const revenueIn = (sales: Sales, days: Days): number => sum(wonIn(sales, days).map(worth))

/** Count and value of the leads of a stage that were closed in each of the months. */
export const byMonth = ({ opportunities }: Sales, stage: 'won' | 'lost', months: readonly string[]) =>
  months.map((label) => {
    const deals = opportunities.filter((deal) => deal.stage === stage && deal.closedOn?.startsWith(label))
    return { label, count: deals.length, total: sum(deals.map(worth)) }
  })

/** The value of won opportunities by a name, the largest first. */
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
