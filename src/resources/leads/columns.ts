// The columns of the CSV export of leads.
import type { Schema } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import { bookkeeping, type CsvColumns, line, listColumn, nameColumn, plain } from '../../kernel/resource/csv-cells.ts'
import { customColumns } from '../attributes/export-columns.ts'
import { tagNames } from '../tags/columns.ts'

type Lead = Schema<'Lead'>

export const leadColumns = async (ctx: Context): Promise<CsvColumns<Lead>> => [
  ...plain('id', 'title', 'description', 'lead_value', 'status', 'lost_reason', 'closed_at', 'expected_close_date'),
  ...plain('rotten_days', 'is_rotten', 'stage_changed_at', 'user_id'),
  nameColumn('user'),
  ...plain('person_id'),
  nameColumn('person'),
  { name: 'organization_id', cell: ({ organization }) => organization?.id ?? null },
  nameColumn('organization'),
  ...plain('lead_source_id'),
  nameColumn('source'),
  ...plain('lead_type_id'),
  nameColumn('type'),
  ...plain('lead_pipeline_id'),
  nameColumn('pipeline'),
  ...plain('lead_pipeline_stage_id'),
  nameColumn('stage'),
  tagNames,
  // The column name is `product`, because the CSV import reads product lines from that column.
  listColumn('product', ({ products: lines }) =>
    lines.map(({ product_id: id, price, quantity }) => line({ id, price, quantity })),
  ),
  ...plain('products_amount', 'quotes_count', 'activities_count', 'emails_count'),
  ...(await customColumns(ctx, 'leads')),
  ...bookkeeping,
]
