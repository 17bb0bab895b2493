// The columns of the CSV export of persons.
import type { Schema } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import {
  type CsvColumns,
  contactPoints,
  externalIds,
  nameColumn,
  recordColumns,
} from '../../kernel/resource/csv-cells.ts'
import { customColumns } from '../attributes/export-columns.ts'
import { tagNames } from '../tags/columns.ts'

export const personColumns = async (ctx: Context): Promise<CsvColumns<Schema<'Person'>>> =>
  recordColumns<Schema<'Person'>>(ctx.services.contract, 'Person', {
    emails: contactPoints('emails'),
    contact_numbers: contactPoints('contact_numbers'),
    organization: [nameColumn('organization')],
    user: [nameColumn('user')],
    tags: [tagNames],
    external_ids: [externalIds],
    custom_attributes: await customColumns(ctx, 'persons'),
  })
