// The columns of the CSV export of organizations.
import type { Schema } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import { addressColumns, bookkeeping, type CsvColumns, nameColumn, plain } from '../../kernel/resource/csv-cells.ts'
import { customColumns } from '../attributes/export-columns.ts'
import { tagNames } from '../tags/columns.ts'

export const organizationColumns = async (ctx: Context): Promise<CsvColumns<Schema<'Organization'>>> => [
  ...plain('id', 'name'),
  ...addressColumns<Schema<'Organization'>>('address', ({ address }) => address),
  ...plain('user_id'),
  nameColumn('user'),
  tagNames,
  ...plain('persons_count', 'leads_count'),
  ...(await customColumns(ctx, 'organizations')),
  ...bookkeeping,
]
