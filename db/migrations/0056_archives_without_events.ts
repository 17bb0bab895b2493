// Makes archives independent of the event log, so that a shorter retention of events does not end
// the time for a restore. An archive gets the columns of its event that a restore reads.

import { type Kysely, sql } from 'kysely'
import type { Dialect } from '../dialect.ts'
import { createTable, id, integer, json, nullable, text, timestamp } from '../schema/columns.ts'

const table = 'archives'
const before = 'archives_before'
const kept = ['id', 'event_id', 'entity_type', 'entity_id', 'rows', 'pointers', 'companions', 'created_at']
const unique = [['event_id']]
const indexes = [
  ['entity_type', 'entity_id', 'id'],
  ['created_at', 'id'],
]

/** SQLite cannot remove a foreign key, so the rows are moved to a new table. */
export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  const lastIds = await dialect.lastIds(db)
  for (const [columns, kind] of [
    ...unique.map((each) => [each, 'unique'] as const),
    ...indexes.map((each) => [each, 'index'] as const),
  ])
    await db.schema.dropIndex(`${table}_${columns.join('_')}_${kind}`).execute()
  await db.schema.alterTable(table).renameTo(before).execute()
  await createTable(
    db,
    dialect,
    table,
    {
      id: id(),
      /** The event of the deletion, which the log may no longer have. */
      event_id: integer(),
      entity_type: text(),
      entity_id: integer(),
      /** The owner and the representation of the record, as in the event. */
      owner_id: nullable(integer()),
      before: nullable(json()),
      rows: json(),
      pointers: json('[]'),
      companions: json('[]'),
      created_at: timestamp(),
    },
    { unique, indexes },
  )
  const columns = sql.join(kept.map((column) => sql.ref(column)))
  const found = sql.join(kept.map((column) => sql.ref(`${before}.${column}`)))
  await sql`insert into ${sql.table(table)} (${columns}, owner_id, before)
    select ${found}, events.owner_id, events.before
    from ${sql.table(before)} join events on events.id = ${sql.ref(`${before}.event_id`)}`.execute(db)
  await db.schema.dropTable(before).execute()
  await dialect.resetSequences(db, lastIds)
}
