// Creates the event log, with one row for each event in the order of the commits, and the table of
// archives. An archive contains the rows that a deletion removed, so that a restore can insert them
// again. Neither has foreign keys: events outlive their records, and archives may outlive events.

import { type Kysely, sql } from 'kysely'
import type { Dialect } from '../dialect.ts'
import { createTable, flag, id, integer, json, nullable, text, timestamp } from '../schema/columns.ts'

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await createTable(
    db,
    dialect,
    'events',
    {
      id: id(),
      name: text(),
      entity_type: text(),
      entity_id: nullable(integer()),
      related_type: nullable(text()),
      related_id: nullable(integer()),
      actor_type: text(),
      actor_id: nullable(integer()),
      actor_name: nullable(text()),
      token_id: nullable(integer()),
      request_id: nullable(text()),
      origin: text(),
      ip: nullable(text()),
      before: nullable(json()),
      after: nullable(json()),
      changed: json('[]'),
      restored: flag(false),
      /** The owner of the record, for the visibility of the event after the record is deleted. */
      owner_id: nullable(integer()),
      created_at: timestamp(),
      workflow_run_id: nullable(integer()),
      /** The first event of the same transaction. Null for the first event itself. */
      first_event_id: nullable(integer()),
    },
    {
      indexes: [['entity_type', 'entity_id', 'id'], ['name', 'id'], ['actor_id', 'id'], ['request_id'], ['created_at']],
    },
  )
  // Writers lock the only row of this table before they insert an event (`enterCommitOrder` in
  // db/postgres/dialect.ts).
  if (dialect.name === 'postgres') {
    await sql`create table commit_order (id bigint primary key)`.execute(db)
    await sql`insert into commit_order (id) values (1)`.execute(db)
  }
  await createTable(
    db,
    dialect,
    'archives',
    {
      id: id(),
      /** The event of the deletion, which the log may no longer have. */
      event_id: integer(),
      entity_type: text(),
      entity_id: integer(),
      /** The owner and the representation of the record, as in the event. */
      owner_id: nullable(integer()),
      before: nullable(json()),
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
