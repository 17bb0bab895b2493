// The columns of the CSV export of products.
import type { Schema } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import { bookkeeping, type CsvColumns, plain } from '../../kernel/resource/csv-cells.ts'
import { customColumns } from '../attributes/export-columns.ts'
import { tagNames } from '../tags/columns.ts'

export const productColumns = async (ctx: Context): Promise<CsvColumns<Schema<'Product'>>> => [
  ...plain('id', 'sku', 'name', 'description', 'quantity', 'price', 'in_stock', 'allocated', 'available'),
  tagNames,
  ...(await customColumns(ctx, 'products')),
  ...bookkeeping,
]
