// What restore puts back: the rows a deletion took away, exactly as they were, beside the event that tells of it.

import type { Kysely } from 'kysely'
import type { Dialect } from '../dialect.ts'
import { createTable, id, integer, json, references, text, timestamp } from '../schema/columns.ts'

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await createTable(
    db,
    dialect,
    'archives',
    {
      id: id(),
      event_id: references('events', 'cascade'),
      entity_type: text(),
      entity_id: integer(),
      /** `[{table, row}]` in the order they go back. */
      rows: json(),
      /** `[{table, column, to, ids}]`: rows of others that named one of these and name nothing now. */
      pointers: json('[]'),
      /** `[{entity, id, event}]`: records that were deleted because this one was, with archives of their own. */
      companions: json('[]'),
      created_at: timestamp(),
    },
    {
      unique: [['event_id']],
      indexes: [
        ['entity_type', 'entity_id', 'id'],
        ['created_at', 'id'],
      ],
    },
  )
}
