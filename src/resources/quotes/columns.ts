// The columns of the CSV export of quotes.
import type { Schema } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import {
  addressColumns,
  type CsvColumns,
  externalIds,
  line,
  listColumn,
  nameColumn,
  recordColumns,
} from '../../kernel/resource/csv-cells.ts'
import { customColumns } from '../attributes/export-columns.ts'
import { tagNames } from '../tags/columns.ts'

export const quoteColumns = async (ctx: Context): Promise<CsvColumns<Schema<'Quote'>>> =>
  recordColumns<Schema<'Quote'>>(ctx.services.contract, 'Quote', {
    person: [nameColumn('person')],
    user: [nameColumn('user')],
    billing_address: addressColumns('billing_address', (quote) => quote.billing_address),
    shipping_address: addressColumns('shipping_address', (quote) => quote.shipping_address),
    // A cell lists the items in the same format as the column `product` of leads.
    customer: [
      { name: 'customer.person', cell: ({ customer }) => customer?.person ?? null },
      { name: 'customer.organization', cell: ({ customer }) => customer?.organization ?? null },
    ],
    taxes: [
      listColumn('taxes', ({ taxes }) =>
        taxes.map(({ tax_percent, taxable_amount, tax_amount }) => line({ tax_percent, taxable_amount, tax_amount })),
      ),
    ],
    items: [
      listColumn('items', ({ items }) =>
        items.map(({ product_id: id, price, quantity, discount_amount, tax_amount }) =>
          line({ id, price, quantity, discount_amount, tax_amount }),
        ),
      ),
    ],
    leads: [listColumn('lead_ids', ({ leads }) => leads.map(({ id }) => id))],
    tags: [tagNames],
    external_ids: [externalIds],
    custom_attributes: await customColumns(ctx, 'quotes'),
  })
