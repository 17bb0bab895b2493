// What an installation knows of itself: by which secret its values are encrypted. And what its uploads take, cheap to count.

import { type Kysely, sql } from 'kysely'
import type { Dialect } from '../dialect.ts'
import { createTable, id, text, timestamps } from '../schema/columns.ts'

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await createTable(db, dialect, 'installation', {
    id: id(),
    /** A keyed hash: it tells whether a secret is the one, to nobody who does not have it. */
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
