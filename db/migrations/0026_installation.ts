// Creates the table with the check value of the installation's secret, and an index for the total
// size of its uploads.

import { type Kysely, sql } from 'kysely'
import type { Dialect } from '../dialect.ts'
import { createTable, id, text, timestamps } from '../schema/columns.ts'

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await createTable(db, dialect, 'installation', {
    id: id(),
    /** An HMAC made with the secret. It identifies the secret without revealing it. */
    secret_check: text(),
    ...timestamps(),
  })
  await db.schema
    .createIndex('files_unattached_index')
    .on('files')
    .columns(['user_id', 'size'])
    .where(sql<boolean>`owner_type is null`)
    .execute()
}
