// Creates the tables of the items of quotes, and their links to leads, tags and activities.

import type { Kysely } from 'kysely'
import type { Dialect } from '../dialect.ts'
import { createTable, id, integer, money, nullable, references, text, timestamps } from '../schema/columns.ts'

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await createTable(db, dialect, 'quote_items', {
    id: id(),
    quote_id: references('quotes', 'cascade'),
    product_id: references('products', 'set null'),
    sku: text(),
    name: text(),
    quantity: money(),
    price: money(),
    coupon_code: nullable(text()),
    discount_percent: money(0),
    discount_amount: money(0),
    tax_percent: money(0),
    tax_amount: money(0),
    total: money(0),
    sort_order: integer(),
    ...timestamps(),
  })
  for (const [table, first, target, second, other] of [
    ['lead_quotes', 'lead_id', 'leads', 'quote_id', 'quotes'],
    ['quote_tags', 'quote_id', 'quotes', 'tag_id', 'tags'],
    ['quote_activities', 'quote_id', 'quotes', 'activity_id', 'activities'],
  ] as const) {
    await createTable(
      db,
      dialect,
      table,
      { [first]: references(target, 'cascade'), [second]: references(other, 'cascade') },
      { primaryKey: [first, second] },
    )
  }
}
