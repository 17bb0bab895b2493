// The columns of the CSV export of persons.
import type { Schema } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import { bookkeeping, type CsvColumns, contactPoints, nameColumn, plain } from '../../kernel/resource/csv-cells.ts'
import { customColumns } from '../attributes/export-columns.ts'
import { tagNames } from '../tags/columns.ts'

export const personColumns = async (ctx: Context): Promise<CsvColumns<Schema<'Person'>>> => [
  ...plain('id', 'name'),
  ...contactPoints('emails', 'contact_numbers'),
  ...plain('job_title', 'organization_id'),
  nameColumn('organization'),
  ...plain('user_id'),
  nameColumn('user'),
  tagNames,
  ...plain(
    'subscribed',
    'subscribed_source',
    'subscribed_at',
    'unsubscribed_at',
    'leads_count',
    'quotes_count',
    'activities_count',
  ),
  ...(await customColumns(ctx, 'persons')),
  ...bookkeeping,
]
