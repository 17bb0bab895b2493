// Ranks sources, types, products and persons by the revenue from won leads. The
// highest revenue comes first.
import { sql } from 'kysely'
import { operations } from '../../contract/operations.gen.ts'
import type { Schema } from '../../contract/types.ts'
import { type Context, canCall } from '../../kernel/context.ts'
import { fromScaled, fromSum, sumOf, sumOrder } from '../../kernel/values/money.ts'
import { type Filter, outcomes, rowOfWin, within, withoutIndex } from './engine.ts'
import { type GroupRow, sumsByGroup } from './groups.ts'
import { type Period, periodBounds } from './period.ts'

const maxRanked = 5

/** Returns the revenue from won leads for each lead source or each lead type. */
export async function revenueBy(
  ctx: Context,
  period: Period,
  filter: Filter,
  by: 'source' | 'type',
): Promise<Schema<'ReportShare'>[]> {
  const rows = await sumsByGroup(ctx, outcomes('won'), by, { filter, bounds: periodBounds(period) })
  const shares = rows.map(({ key, label, sum }: GroupRow) => ({ id: Number(key), name: label, revenue: fromSum(sum) }))
  return shares.sort((one, other) => other.revenue - one.revenue || one.id - other.id)
}

/**
 * Ranks the products before it reads them. The lines of deleted products are one product if their
 * names and SKUs are equal.
 */
export async function topProducts(ctx: Context, period: Period, filter: Filter): Promise<Schema<'ReportProduct'>[]> {
  const amount = sql<number>`(line.amount * lead_outcomes.sign)`
  const [units, rest] = sumOrder(amount)
  const ofDeleted = (column: 'name' | 'sku') =>
    sql<string | null>`case when line.product_id is null then ${sql.ref(`line.${column}`)} end`
  const ranked = within(ctx, outcomes('won'), filter, periodBounds(period))
    .innerJoin('lead_outcome_products as line', (join) => join.on('line.outcome_id', '=', rowOfWin))
    .select([
      'line.product_id as id',
      sql<string>`max(line.name)`.as('name'),
      sumOf(amount).as('sum'),
      sumOf(sql`(line.quantity * lead_outcomes.sign)`).as('quantity'),
      units.as('units'),
      rest.as('rest'),
    ])
    .groupBy(['line.product_id', ofDeleted('name'), ofDeleted('sku')])
    .orderBy(units, 'desc')
    .orderBy(rest, 'desc')
    .orderBy('line.product_id')
    .limit(maxRanked)
  const rows = await ctx.db
    .selectFrom(ranked.as('ranked'))
    .leftJoin('products', 'products.id', 'ranked.id')
    .select([
      'products.id',
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

/** Ranks the persons that exist before it reads them. */
export async function topPersons(ctx: Context, period: Period, filter: Filter): Promise<Schema<'ReportPerson'>[]> {
  const [units, rest] = sumOrder('lead_outcomes.amount')
  const id = withoutIndex('lead_outcomes.person_id')
  const ranked = within(ctx, outcomes('won'), filter, periodBounds(period))
    .select([id.as('id'), sumOf('lead_outcomes.amount').as('sum'), units.as('units'), rest.as('rest')])
    .groupBy(id)
    .having(sql<boolean>`${id} in (select persons.id from persons)`)
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
