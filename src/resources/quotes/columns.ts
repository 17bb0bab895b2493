// The columns of the CSV export of quotes.
import type { Schema } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import {
  addressColumns,
  bookkeeping,
  type CsvColumns,
  line,
  listColumn,
  nameColumn,
  plain,
} from '../../kernel/resource/csv-cells.ts'
import { customColumns } from '../attributes/export-columns.ts'
import { tagNames } from '../tags/columns.ts'

type Quote = Schema<'Quote'>

export const quoteColumns = async (ctx: Context): Promise<CsvColumns<Quote>> => [
  ...plain('id', 'subject', 'description', 'person_id'),
  nameColumn('person'),
  ...plain('user_id'),
  nameColumn('user'),
  ...addressColumns<Quote>('billing_address', ({ billing_address }) => billing_address),
  ...addressColumns<Quote>('shipping_address', ({ shipping_address }) => shipping_address),
  ...plain('expiry_date', 'is_expired', 'discount_percent', 'adjustment_amount'),
  ...plain('subtotal', 'discount_amount', 'tax_amount', 'grand_total'),
  // A cell lists the items in the same format as the column `product` of leads.
  listColumn('items', ({ items }) =>
    items.map(({ product_id: id, price, quantity, discount_amount, tax_amount }) =>
      line({ id, price, quantity, discount_amount, tax_amount }),
    ),
  ),
  listColumn('lead_ids', ({ leads }) => leads.map(({ id }) => id)),
  tagNames,
  ...(await customColumns(ctx, 'quotes')),
  ...bookkeeping,
]
