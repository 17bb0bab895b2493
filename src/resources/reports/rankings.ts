// Ranks sources, types, products and persons by the revenue from won leads. The
// highest revenue comes first.
import { sql } from 'kysely'
import { operations } from '../../contract/operations.gen.ts'
import type { Schema } from '../../contract/types.ts'
import { type Context, canCall } from '../../kernel/context.ts'
import { canSeeOwner } from '../../kernel/query/visibility.ts'
import { fromScaled, fromSum, sumOf, sumOrder } from '../../kernel/values/money.ts'
import { type ReportFilters, wonLeads } from './counted-leads.ts'
import { type Period, periodBounds } from './period.ts'

const maxRanked = 5

/** Returns the revenue from won leads for each lead source or each lead type. */
export async function revenueBy(
  ctx: Context,
  period: Period,
  filters: ReportFilters,
  by: 'lead_sources' | 'lead_types',
): Promise<Schema<'ReportShare'>[]> {
  const column = by === 'lead_sources' ? 'leads.lead_source_id' : 'leads.lead_type_id'
  const [units, rest] = sumOrder('leads.lead_value')
  const rows = await wonLeads(ctx, filters, periodBounds(period))
    // `by` may name either of two tables. The cast to one table is safe, because both tables have
    // the columns `id` and `name`.
    .innerJoin(`${by as 'lead_sources'} as named`, 'named.id', column)
    .select(['named.id', 'named.name', sumOf('leads.lead_value').as('sum')])
    .groupBy(['named.id', 'named.name'])
    .orderBy(units, 'desc')
    .orderBy(rest, 'desc')
    .orderBy('named.id')
    .execute()
  return rows.map(({ id, name, sum }) => ({ id, name, revenue: fromSum(sum) }))
}

export async function topProducts(
  ctx: Context,
  period: Period,
  filters: ReportFilters,
): Promise<Schema<'ReportProduct'>[]> {
  const [units, rest] = sumOrder('lead_products.amount')
  const name = sql<string>`coalesce(products.name, lead_products.name)`
  const sku = sql<string>`coalesce(products.sku, lead_products.sku)`
  const rows = await wonLeads(ctx, filters, periodBounds(period))
    .innerJoin('lead_products', 'lead_products.lead_id', 'leads.id')
    .leftJoin('products', 'products.id', 'lead_products.product_id')
    .select([
      'products.id',
      name.as('name'),
      'products.price',
      sumOf('lead_products.amount').as('sum'),
      sumOf('lead_products.quantity').as('quantity'),
    ])
    .groupBy(['products.id', 'products.price', name, sku])
    .orderBy(units, 'desc')
    .orderBy(rest, 'desc')
    .orderBy('products.id')
    .limit(maxRanked)
    .execute()
  return rows.map(({ id, name, price, sum, quantity }) => ({
    id,
    name,
    price: price === null ? null : fromScaled(price),
    revenue: fromSum(sum),
    quantity: fromSum(quantity),
  }))
}

export async function topPersons(
  ctx: Context,
  period: Period,
  filters: ReportFilters,
): Promise<Schema<'ReportPerson'>[]> {
  const [units, rest] = sumOrder('leads.lead_value')
  const rows = await wonLeads(ctx, filters, periodBounds(period))
    .innerJoin('persons', 'persons.id', 'leads.person_id')
    .select(['persons.id', 'persons.name', 'persons.emails', 'persons.user_id', sumOf('leads.lead_value').as('sum')])
    .groupBy('persons.id')
    .orderBy(units, 'desc')
    .orderBy(rest, 'desc')
    .orderBy('persons.id')
    .limit(maxRanked)
    .execute()
  return rows.map(({ id, name, emails, user_id, sum }) => {
    const all = JSON.parse(emails) as Schema<'ContactPoint'>[]
    // A caller who may not read the person gets only the person's first address, as in every
    // reference.
    const isRead = canSeeOwner(ctx, user_id) && canCall(ctx, operations.getPerson)
    return { id, name, emails: isRead ? all : all.slice(0, 1), revenue: fromSum(sum) }
  })
}
