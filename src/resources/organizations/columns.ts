// The columns of the CSV export of organizations.
import type { Schema } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import {
  addressColumns,
  type CsvColumns,
  externalIds,
  nameColumn,
  recordColumns,
} from '../../kernel/resource/csv-cells.ts'
import { customColumns } from '../attributes/export-columns.ts'
import { tagNames } from '../tags/columns.ts'

export const organizationColumns = async (ctx: Context): Promise<CsvColumns<Schema<'Organization'>>> =>
  recordColumns<Schema<'Organization'>>(ctx.services.contract, 'Organization', {
    address: addressColumns('address', ({ address }) => address),
    user: [nameColumn('user')],
    tags: [tagNames],
    external_ids: [externalIds],
    custom_attributes: await customColumns(ctx, 'organizations'),
  })
