// The columns of the CSV export of products.
import type { Schema } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import { type CsvColumns, externalIds, recordColumns } from '../../kernel/resource/csv-cells.ts'
import { customColumns } from '../attributes/export-columns.ts'
import { tagNames } from '../tags/columns.ts'

export const productColumns = async (ctx: Context): Promise<CsvColumns<Schema<'Product'>>> =>
  recordColumns<Schema<'Product'>>(ctx.services.contract, 'Product', {
    tags: [tagNames],
    external_ids: [externalIds],
    custom_attributes: await customColumns(ctx, 'products'),
  })
