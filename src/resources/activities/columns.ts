// The CSV columns of activities.
import type { Schema } from '../../contract/types.ts'
import {
  bookkeeping,
  type CsvColumns,
  idLists,
  line,
  listColumn,
  nameColumn,
  plain,
} from '../../kernel/resource/csv-cells.ts'

export const activityColumns = (): CsvColumns<Schema<'Activity'>> => [
  ...plain(
    'id',
    'type',
    'title',
    'comment',
    'location',
    'schedule_from',
    'schedule_to',
    'is_all_day',
    'is_done',
    'notify',
    'user_id',
  ),
  nameColumn('user'),
  listColumn('participants', ({ participants }) =>
    participants.map(({ user, person }) =>
      user ? line({ user_id: user.id }) : line({ person_id: person?.id ?? null }),
    ),
  ),
  listColumn('files', ({ files }) => files.map(({ id }) => id)),
  ...idLists('lead_ids', 'person_ids', 'organization_ids', 'product_ids', 'warehouse_ids', 'quote_ids'),
  ...plain('parent_id'),
  ...bookkeeping,
]
