// Ranks sources, types, products and persons by the revenue from won leads. The
// highest revenue comes first.
import { sql } from 'kysely'
import { operations } from '../../contract/operations.gen.ts'
import type { Schema } from '../../contract/types.ts'
import { type Context, canCall } from '../../kernel/context.ts'
import { fromScaled, fromSum, sumOf, sumOrder } from '../../kernel/values/money.ts'
import { type ReportFilters, withoutIndex, wonLeads } from './counted-leads.ts'
import { type Period, periodBounds } from './period.ts'

const maxRanked = 5

/** Returns the revenue from won leads for each lead source or each lead type. */
export async function revenueBy(
  ctx: Context,
  period: Period,
  filters: ReportFilters,
  by: 'lead_sources' | 'lead_types',
): Promise<Schema<'ReportShare'>[]> {
  const column = by === 'lead_sources' ? 'lead_source_id' : 'lead_type_id'
  const rows = await ctx.db
    .selectFrom(wonBy(ctx, period, filters, column).as('won'))
    // `by` may name either of two tables. The cast to one table is safe, because both tables have
    // the columns `id` and `name`.
    .innerJoin(`${by as 'lead_sources'} as named`, 'named.id', 'won.id')
    .select(['named.id', 'named.name', 'won.sum'])
    .orderBy('won.units', 'desc')
    .orderBy('won.rest', 'desc')
    .orderBy('named.id')
    .execute()
  return rows.map(({ id, name, sum }) => ({ id, name, revenue: fromSum(sum) }))
}

/** Selects the values of won leads, summed by a column of leads, with the keys of their order. */
function wonBy(
  ctx: Context,
  period: Period,
  filters: ReportFilters,
  column: 'lead_source_id' | 'lead_type_id' | 'person_id',
) {
  const [units, rest] = sumOrder('leads.lead_value')
  const id = withoutIndex(column)
  return wonLeads(ctx, filters, periodBounds(period))
    .where(id, 'is not', null)
    .select([id.as('id'), sumOf('leads.lead_value').as('sum'), units.as('units'), rest.as('rest')])
    .groupBy(id)
}

/**
 * Ranks the products before it reads them. The lines of deleted products are one product if their
 * names and SKUs are equal.
 */
export async function topProducts(
  ctx: Context,
  period: Period,
  filters: ReportFilters,
): Promise<Schema<'ReportProduct'>[]> {
  const [units, rest] = sumOrder('lead_products.amount')
  const ofDeleted = (column: 'name' | 'sku') =>
    sql<string | null>`case when lead_products.product_id is null then ${sql.ref(`lead_products.${column}`)} end`
  const ranked = wonLeads(ctx, filters, periodBounds(period))
    .innerJoin('lead_products', 'lead_products.lead_id', 'leads.id')
    .select([
      'lead_products.product_id as id',
      ofDeleted('name').as('name'),
      sumOf('lead_products.amount').as('sum'),
      sumOf('lead_products.quantity').as('quantity'),
      units.as('units'),
      rest.as('rest'),
    ])
    .groupBy(['lead_products.product_id', ofDeleted('name'), ofDeleted('sku')])
    .orderBy(units, 'desc')
    .orderBy(rest, 'desc')
    .orderBy('lead_products.product_id')
    .limit(maxRanked)
  const rows = await ctx.db
    .selectFrom(ranked.as('ranked'))
    .leftJoin('products', 'products.id', 'ranked.id')
    .select([
      'ranked.id',
      sql<string>`coalesce(products.name, ranked.name)`.as('name'),
      'products.price',
      'ranked.sum',
      'ranked.quantity',
    ])
    .orderBy('ranked.units', 'desc')
    .orderBy('ranked.rest', 'desc')
    .orderBy('ranked.id')
    .execute()
  return rows.map(({ id, name, price, sum, quantity }) => ({
    id,
    name,
    price: price === null ? null : fromScaled(price),
    revenue: fromSum(sum),
    quantity: fromSum(quantity),
  }))
}

/** Ranks the persons before it reads them. */
export async function topPersons(
  ctx: Context,
  period: Period,
  filters: ReportFilters,
): Promise<Schema<'ReportPerson'>[]> {
  const ranked = wonBy(ctx, period, filters, 'person_id')
    .orderBy('units', 'desc')
    .orderBy('rest', 'desc')
    .orderBy('id')
    .limit(maxRanked)
  const rows = await ctx.db
    .selectFrom(ranked.as('ranked'))
    .innerJoin('persons', 'persons.id', 'ranked.id')
    .select(['persons.id', 'persons.name', 'persons.emails', 'ranked.sum'])
    .orderBy('ranked.units', 'desc')
    .orderBy('ranked.rest', 'desc')
    .orderBy('persons.id')
    .execute()
  return rows.map(({ id, name, emails, sum }) => {
    const all = JSON.parse(emails) as Schema<'ContactPoint'>[]
    // A caller who may not read persons gets only the first address, as in every reference.
    const isRead = canCall(ctx, operations.getPerson)
    return { id, name, emails: isRead ? all : all.slice(0, 1), revenue: fromSum(sum) }
  })
}
