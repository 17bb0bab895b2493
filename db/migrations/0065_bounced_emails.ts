// Adds the time at which a sent e-mail came back. Such an e-mail has the status `bounced`. The
// column `status` keeps `sent`, because SQLite cannot change its check constraint.
import type { Kysely } from 'kysely'
import type { Dialect } from '../dialect.ts'
import { addColumn, createIndex, nullable, timestamp } from '../schema/columns.ts'

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await addColumn(db, dialect, 'emails', 'bounced_at', nullable(timestamp()))
  await db.schema.dropIndex('emails_status_id_index').execute()
  await createIndex(db, dialect, 'emails', { columns: ['status', 'bounced_at', 'id'] })
}
