// Adds three events that start workflows. By default, workflows ignore restored records.

import { type Kysely, sql } from 'kysely'
import type { Dialect } from '../dialect.ts'
import { addColumn, createIndex, flag, oneOf } from '../schema/columns.ts'

const triggers = [
  'lead.won',
  'lead.lost',
  'lead.reopened',
  ...['lead', 'activity', 'contacts.person', 'quote'].flatMap((noun) => [
    `${noun}.create.after`,
    `${noun}.update.after`,
    `${noun}.delete.before`,
  ]),
]

const index = ['event', 'sort_order', 'id']

/**
 * Replaces the column by a new one, because SQLite cannot change a check constraint. The table
 * cannot be recreated, because runs refer to it.
 */
export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await addColumn(db, dialect, 'workflows', 'run_on_restore', flag(false))
  await addColumn(db, dialect, 'workflows', 'event_next', oneOf(triggers, 'lead.create.after'))
  await sql`update workflows set event_next = event`.execute(db)
  await db.schema.dropIndex(`workflows_${index.join('_')}_index`).execute()
  await db.schema.alterTable('workflows').dropColumn('event').execute()
  await db.schema.alterTable('workflows').renameColumn('event_next', 'event').execute()
  await createIndex(db, dialect, 'workflows', { columns: index })
}
