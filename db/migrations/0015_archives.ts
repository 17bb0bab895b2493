// Creates the table of archives. An archive contains the rows that a deletion removed, so that a
// restore can insert them again. It belongs to the event of the deletion.

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
      /** `[{table, row}]` in the order in which a restore inserts them. */
      rows: json(),
      /**
       * `[{table, column, to, ids}]`: references from other records that the deletion set to null.
       */
      pointers: json('[]'),
      /**
       * `[{entity, id, event}]`: records that were deleted together with this record. They have
       * their own archives.
       */
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
