// Creates the event log: one row for each event, in the order of the commits. The log has no
// foreign keys, because events outlive their records. `owner_id` is the owner of the record, so
// that the visibility of an event can be checked after its record is deleted.

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
      owner_id: nullable(integer()),
      created_at: timestamp(),
    },
    { indexes: [['entity_type', 'entity_id', 'id'], ['name', 'id'], ['actor_id', 'id'], ['request_id']] },
  )
  // Writers lock the only row of this table before they insert an event (`enterCommitOrder` in
  // db/postgres/dialect.ts).
  if (dialect.name === 'postgres') {
    await sql`create table commit_order (id bigint primary key)`.execute(db)
    await sql`insert into commit_order (id) values (1)`.execute(db)
  }
}
