// Creates the table of facts about the installation, such as the check of its secret, and an
// index that adds up the size of its uploads.

import { type Kysely, sql } from 'kysely'
import type { Dialect } from '../dialect.ts'
import { createTable, id, text, timestamps } from '../schema/columns.ts'

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await createTable(db, dialect, 'installation', {
    id: id(),
    /** An HMAC made with the secret. It recognizes the secret and reveals nothing about it. */
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
