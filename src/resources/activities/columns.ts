// The CSV columns of activities.
import type { Schema } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import {
  type CsvColumns,
  externalIds,
  idLists,
  line,
  listColumn,
  nameColumn,
  recordColumns,
} from '../../kernel/resource/csv-cells.ts'

export const activityColumns = ({ services }: Context): CsvColumns<Schema<'Activity'>> =>
  recordColumns<Schema<'Activity'>>(services.contract, 'Activity', {
    user: [nameColumn('user')],
    external_ids: [externalIds],
    participants: [
      listColumn('participants', ({ participants }) =>
        participants.map(({ user, person }) =>
          user ? line({ user_id: user.id }) : line({ person_id: person?.id ?? null }),
        ),
      ),
    ],
    files: [listColumn('files', ({ files }) => files.map(({ id }) => id))],
    lead_ids: idLists('lead_ids'),
    person_ids: idLists('person_ids'),
    organization_ids: idLists('organization_ids'),
    product_ids: idLists('product_ids'),
    warehouse_ids: idLists('warehouse_ids'),
    quote_ids: idLists('quote_ids'),
    // Always null.
    additional: [],
    // The columns of ids have these records.
    leads: [],
    persons: [],
    organizations: [],
    products: [],
    warehouses: [],
    quotes: [],
  })
