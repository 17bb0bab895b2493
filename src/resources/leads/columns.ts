// The columns of the CSV export of leads.
import type { Schema } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import {
  type CsvColumns,
  externalIds,
  line,
  listColumn,
  nameColumn,
  recordColumns,
} from '../../kernel/resource/csv-cells.ts'
import { customColumns } from '../attributes/export-columns.ts'
import { tagNames } from '../tags/columns.ts'

type Lead = Schema<'Lead'>

export const leadColumns = async (ctx: Context): Promise<CsvColumns<Lead>> =>
  recordColumns<Lead>(ctx.services.contract, 'Lead', {
    user: [nameColumn('user')],
    person: [nameColumn('person')],
    organization: [
      { name: 'organization_id', cell: ({ organization }) => organization?.id ?? null },
      nameColumn('organization'),
    ],
    source: [nameColumn('source')],
    type: [nameColumn('type')],
    pipeline: [nameColumn('pipeline')],
    stage: [nameColumn('stage')],
    tags: [tagNames],
    external_ids: [externalIds],
    // The column name is `product`, because the CSV import reads product lines from that column.
    products: [
      listColumn('product', ({ products: lines }) =>
        lines.map(({ product_id: id, price, quantity }) => line({ id, price, quantity })),
      ),
    ],
    custom_attributes: await customColumns(ctx, 'leads'),
  })
